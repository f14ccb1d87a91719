"""Cases from the field: media, or its shape, type or framing, missing from the key; and which bytes count."""

from __future__ import annotations

import io
from itertools import combinations

import ml_dtypes
import numpy as np
import pytest

import mmkey
import reference
from holders import DeviceTensor
from logical import Plain, PlainItem, blocks_of, made_content
from mmkey.errors import MmkeyError
from prompts import audio, first_difference, jpeg, pixels, prompt, qwen_image, text, video


@pytest.fixture
def settings(algorithm, block_size):
    return {"algorithm": algorithm, "block_size": block_size}


def assert_distinct(*requests: Plain, strategies: str = "C") -> None:
    """Request keys all differ, and so does every block from the first that overlaps the difference."""
    for strategy in strategies:
        keys = [r.key(strategy) for r in requests]
        assert len(set(keys)) == len(keys), strategy
        for a, b in combinations(requests, 2):
            blocks = a.blocks(strategy), b.blocks(strategy)
            shared = first_difference(*blocks)
            start = min(o for o, _ in a.layout)
            if len(a.token_ids) >= a.block_size * (start // a.block_size + 1):
                assert shared < max(map(len, blocks)), strategy


def assert_same(a: Plain, b: Plain, strategies: str = "C") -> None:
    for strategy in strategies:
        assert a.key(strategy) == b.key(strategy)
        assert a.blocks(strategy) == b.blocks(strategy)


def digests(*contents) -> set[bytes]:
    return {c.digest("sha256") for c in contents}


# The media is missing from the key


def test_equal_ids_with_another_picture_hit_falsely_under_a_and_never_under_b_and_c(settings):
    before, after = text(1, 300), text(2, 300)
    one, other = (prompt(before, qwen_image(jpeg(n), 224, 224), after, **settings) for n in (1, 2))
    assert one.token_ids == other.token_ids
    assert one.key("A") == other.key("A")
    assert one.blocks("A") == other.blocks("A")
    first = one.layout[0][0] // one.block_size  # the block of the first placeholder
    for strategy in "BC":
        assert one.key(strategy) != other.key(strategy)
        assert first_difference(one.blocks(strategy), other.blocks(strategy)) == first


def test_sixty_seven_pictures_under_one_prompt_have_sixty_seven_keys(settings):
    requests = [prompt(text(1, 20), qwen_image(jpeg(n), 112, 112), text(2, 260), **settings) for n in range(67)]
    for strategy in "BC":
        assert len({r.key(strategy) for r in requests}) == 67
        assert len({r.blocks(strategy)[-1] for r in requests}) == 67
    assert len({r.key("A") for r in requests}) == 1


def test_a_text_request_with_the_ids_of_a_media_request_does_not_hit_it(settings):
    media = prompt(text(1, 20), qwen_image(jpeg(1), 112, 112), text(2, 300), **settings)
    typed = media.but(items=[], layout=[])
    for strategy in "BC":
        assert media.key(strategy) != typed.key(strategy)
        first = media.layout[0][0] // media.block_size
        assert first_difference(media.blocks(strategy), typed.blocks(strategy)) == first


@pytest.mark.parametrize("strategy", reference.STRATEGIES)
def test_an_item_without_content_never_becomes_a_key(strategy):
    made = {
        "no content": lambda: mmkey.Item(None, num_visual_tokens=1),
        "zero bytes": lambda: mmkey.Item(mmkey.Content.from_bytes(b""), num_visual_tokens=1),
        "zero pixels": lambda: mmkey.Item(mmkey.Content.from_array(np.zeros((0, 3))), num_visual_tokens=1),
        "an empty identifier": lambda: mmkey.Item(mmkey.Content.opaque(""), num_visual_tokens=1),
        "an empty stream": lambda: mmkey.Item(mmkey.Content.of(io.BytesIO()), num_visual_tokens=1),
    }
    engine = Plain([]).engine(strategy)
    for name, make in made.items():
        if strategy == "A" and name == "an empty stream":
            continue  # A never looks at contents
        with pytest.raises(MmkeyError):
            engine.key(mmkey.Request([7], [make()], [(0, 1)]))


def test_metadata_in_part_or_one_modality_without_content_is_an_error_and_no_text_key(settings):
    whole = prompt(text(1, 5), qwen_image(jpeg(1), 112, 112), **settings)
    for name in ("original_size", "resized_size", "patch_grid", "num_visual_tokens"):
        with pytest.raises(MmkeyError, match=rf"items\[0\]\.{name}"):
            whole.but(items=[whole.items[0].but(**{name: None})]).key()
    mixed = prompt(qwen_image(jpeg(1), 112, 112), audio(("bytes", b"wav")), **settings)
    with pytest.raises(MmkeyError):
        mmkey.Request(mixed.token_ids, [mixed.items[0].made(), None], mixed.layout)
    with pytest.raises(MmkeyError):
        mixed.but(items=mixed.items[:1]).key()


def test_strategy_a_says_that_it_is_unsafe_for_media():
    media = prompt(text(1, 5), qwen_image(jpeg(1), 112, 112))
    unsafe = media.engine("A").prepare(media.request()).unsafe
    assert isinstance(unsafe, tuple)
    assert unsafe
    assert all(isinstance(reason, str) and reason for reason in unsafe)
    assert media.engine("A").prepare(mmkey.Request(media.token_ids)).unsafe == ()
    assert media.engine("C").prepare(media.request()).unsafe == ()


def test_a_shared_system_prompt_keeps_its_blocks_before_either_picture(settings):
    system = text(3, 515)
    one, other = (prompt(system, qwen_image(jpeg(n), 224, 224), text(n, 40), **settings) for n in (1, 2))
    for strategy in reference.STRATEGIES:
        shared = 516 // one.block_size  # the start mark is text too
        assert one.blocks(strategy)[:shared] == other.blocks(strategy)[:shared]


# Shape, type and framing are missing from the content


def test_the_same_bytes_in_another_shape_are_another_picture(settings):
    """Both give 4 tokens of Qwen2-VL, so that no count tells them apart."""
    data = np.random.default_rng(1).bytes(30 * 100 * 3)
    wide, tall = (
        qwen_image(("array", "u1", [h, w, 3], {}, data), h, w, original_size=(50, 50), resized_size=(56, 56))
        for h, w in ((30, 100), (100, 30))
    )
    assert wide.fields["num_visual_tokens"] == tall.fields["num_visual_tokens"] == 4
    assert {wide.fields["patch_grid"], tall.fields["patch_grid"]} == {(2, 8), (8, 2)}
    one, other = (prompt(text(1, 300), item, text(2, 300), **settings) for item in (wide, tall))
    assert_distinct(one, other, strategies="BC")
    assert_distinct(one, one.but(items=[wide.but(content=tall.content)]), strategies="BC")
    assert_distinct(one, one.but(items=[wide.but(patch_grid=(8, 2))]))


def test_palette_pictures_with_equal_indices_and_other_palettes_are_two():
    image_module = pytest.importorskip("PIL.Image")
    contents = []
    for palette in (bytes(range(48)), bytes(range(1, 49))):
        image = image_module.frombytes("P", (4, 4), bytes(range(16)))
        image.putpalette(palette)
        contents.append(mmkey.Content.from_image(image))
    assert len(digests(*contents)) == 2


def test_numbers_in_another_shape_or_of_another_type_are_another_array():
    values = np.arange(24)
    floats = values.astype(np.float32)
    contents = [values.reshape(6, 4), values.reshape(4, 6), values, floats, floats.view(np.int32)]
    flags = np.array([0, 1, 1], np.uint8)
    contents += [flags, flags.astype(bool), flags.view(np.int8), values.astype(np.int32), values.astype(np.uint64)]
    assert len(digests(*map(mmkey.Content.from_array, contents))) == len(contents)


def test_frames_cut_at_another_place_are_other_frames():
    rows = [[1, 2], [3, 4, 5]], [[1, 2, 3], [4, 5]]
    contents = [
        mmkey.Content.from_frames([mmkey.Content.from_array(np.array(r, np.uint8)) for r in frames]) for frames in rows
    ]
    contents.append(mmkey.Content.from_array(np.arange(1, 6, dtype=np.uint8)))
    contents += [
        mmkey.Content.from_frames([mmkey.Content.from_bytes(f) for f in frames])
        for frames in ([b"ab", b"c"], [b"a", b"bc"], [b"abc"], [b"c", b"ab"])
    ]
    assert len(digests(*contents)) == len(contents)


def test_bfloat16_is_not_rounded_into_its_neighbours_nor_taken_for_float16():
    halves = [np.array([x], ml_dtypes.bfloat16) for x in (70000, 80000)]
    assert not np.isinf(halves[0].astype(np.float32)).any()
    contents = [*halves, halves[0].view(np.float16), halves[0].view(np.uint16), halves[0].astype(np.float32)]
    assert len(digests(*map(mmkey.Content.from_array, contents))) == len(contents)


def test_a_tensor_on_another_device_is_refused_by_the_name_of_its_device():
    for make in (mmkey.Content.from_array, mmkey.Content.of):
        with pytest.raises(MmkeyError, match=r"(?i)device|cuda"):
            make(DeviceTensor(np.zeros(3, np.float32))).digest("sha256")


def test_an_array_its_copies_and_its_slices_are_one_content():
    large = np.random.default_rng(2).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    a = large[:, :10]
    same = [a, a.copy(), np.asfortranarray(a), np.ascontiguousarray(a), large[:, :20][:, :10], a[::-1][::-1]]
    assert len(digests(*map(mmkey.Content.from_array, same))) == 1
    assert len(digests(*map(mmkey.Content.from_array, (large[:, ::2], large[:, ::2].copy())))) == 1
    assert len(digests(*map(mmkey.Content.from_array, (a, large[:, 10:20], a[::-1])))) == 3


def test_files_that_differ_first_past_64_kib_are_two(tmp_path):
    data = np.random.default_rng(3).bytes(100_000)
    other = data[:65_536] + bytes([data[65_536] ^ 1]) + data[65_537:]
    (tmp_path / "a").write_bytes(data)
    (tmp_path / "b").write_bytes(other)
    contents = [mmkey.Content.from_file(tmp_path / "a"), mmkey.Content.from_file(tmp_path / "b")]
    assert len(digests(*contents, mmkey.Content.from_bytes(data), mmkey.Content.from_bytes(other))) == 2


def test_two_pictures_in_another_order_are_another_prompt(settings):
    a, b = qwen_image(jpeg(1), 112, 112), qwen_image(jpeg(2), 112, 112)
    one, other = prompt(a, text(1, 9), b, text(2, 300), **settings), prompt(b, text(1, 9), a, text(2, 300), **settings)
    assert one.token_ids == other.token_ids
    assert one.key("A") == other.key("A")
    assert_distinct(one, other, strategies="BC")


def test_one_audio_sample_at_an_odd_index_makes_another_sound(settings):
    samples = np.zeros(16_000, np.float32)
    heard = samples.copy()
    heard[4_001] = 1e-4
    sounds = [("array", "f4", [16_000], {}, s.tobytes()) for s in (samples, heard)]
    one, other = (prompt(audio(s, sampling_rate=16_000), text(1, 300), **settings) for s in sounds)
    assert_distinct(one, other, strategies="BC")


def test_the_rate_and_the_channels_of_sound_are_part_of_it(settings):
    samples = np.random.default_rng(4).standard_normal((100, 2), dtype=np.float32)
    planar = ("array", "f4", [2, 100], {}, samples.tobytes())
    stereo = ("array", "f4", [100, 2], {}, samples.tobytes())
    rates = [prompt(audio(stereo, sampling_rate=r), text(1, 300), **settings) for r in (16_000, 44_100)]
    assert_distinct(*rates)
    assert_distinct(rates[0], prompt(audio(planar, sampling_rate=16_000), text(1, 300), **settings), strategies="BC")
    assert_same(rates[0], prompt(audio(stereo, sampling_rate=16_000.0), text(1, 300), **settings))


def test_an_option_that_changes_the_pixels_is_part_of_the_key(settings):
    item = qwen_image(jpeg(1), 112, 112)
    requests = [
        prompt(text(1, 20), item.but(processing=p), text(2, 300), **settings)
        for p in ({}, {"background": [255, 255, 255]}, {"background": [0, 0, 0]}, {"background": [0, 0, 0, 0]})
    ]
    assert_distinct(*requests)


def test_picture_options_leave_text_and_the_blocks_before_the_picture_alone(settings):
    before = text(1, 600)
    item = qwen_image(jpeg(1), 112, 112)
    one, other = (
        prompt(before, item.but(processing=p), text(2, 300), **settings) for p in ({"crop": True}, {"crop": False})
    )
    shared = 601 // one.block_size
    assert first_difference(one.blocks(), other.blocks()) == shared
    assert prompt(before, **settings).blocks()[: 600 // one.block_size] == one.blocks()[: 600 // one.block_size]


# Which bytes


def test_one_picture_as_png_and_as_jpeg_is_two(settings):
    image_module = pytest.importorskip("PIL.Image")
    image = image_module.new("RGB", (112, 112), (128, 128, 128))
    files = []
    for form in ("PNG", "JPEG"):
        file = io.BytesIO()
        image.save(file, form)
        files.append(("bytes", file.getvalue()))
    one, other = (prompt(qwen_image(f, 112, 112), text(1, 300), **settings) for f in files)
    assert_distinct(one, other, strategies="BC")


def test_equal_digests_of_two_kinds_are_two_contents(settings):
    requests = [
        prompt(qwen_image(("digest", kind, made_with, b"d" * 32), 112, 112), text(1, 300), **settings)
        for kind in ("bytes", "array", "frames", "opaque")
        for made_with in reference.ALGORITHMS
    ]
    assert_distinct(*requests, strategies="BC")


def test_orientation_turns_a_picture_into_another_one(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    image = image_module.frombytes("RGB", (4, 6), bytes(range(72)))
    found = []
    for orientation in (1, 3, 6, 8):
        exif = image_module.Exif()
        exif[0x0112] = orientation
        image.save(tmp_path / "x.png", exif=exif)
        with image_module.open(tmp_path / "x.png") as opened:
            assert opened.size == (4, 6)  # the size that the processor sees: nothing turns it on loading
            found.append(mmkey.Content.from_image(opened))
    assert len(digests(*found)) == 4


def test_an_image_identifier_in_the_metadata_identifies_nothing(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    exif = image_module.Exif()
    exif[0x010D] = "document 1"
    exif[0xA420] = "c5bf3a4d8f0e4d6f9d1b1c0d2e3f4a5b"
    contents = []
    for n, colour in enumerate(((1, 2, 3), (3, 2, 1))):
        path = tmp_path / f"{n}.png"
        image_module.new("RGB", (4, 4), colour).save(path, exif=exif)
        with image_module.open(path) as opened:
            contents.append(mmkey.Content.from_image(opened))
        contents.append(mmkey.Content.from_file(path))
    assert len(digests(*contents)) == 4


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")  # by Pillow, as it opens the file
@pytest.mark.parametrize(
    "broken", [b"Exif\0\0" + b"\xff" * 20, b"Exif\0\0II*\0\xff\xff\xff\xff", b"Exif\0\0", b"MM\0*"]
)
def test_a_picture_with_broken_exif_is_hashed_all_the_same(broken, tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    image = image_module.new("RGB", (8, 8), (9, 9, 9))
    for form in ("JPEG", "PNG"):
        path = tmp_path / f"broken.{form}"
        image.save(path, form, exif=broken)
        with image_module.open(path) as opened:
            content = mmkey.Content.from_image(opened)
            data = opened.tobytes()
        expected = reference.of_array("sha256", "u1", [8, 8, 3], data, {"mode": "RGB"})[2]
        assert content.digest("sha256") == expected
        whole = path.read_bytes()
        assert mmkey.Content.from_file(path).digest("sha256") == reference.digest("sha256", whole)


# Video and audio sampling


def test_other_frames_of_one_file_are_another_video(settings):
    clip = ("bytes", b"mp4" * 100)
    requests = [prompt(text(1, 20), video(clip, i), text(2, 300), **settings) for i in ([0, 15], [0, 16], [1, 15])]
    assert_distinct(*requests)
    for a, b in combinations(requests, 2):
        assert a.key("B") == b.key("B")


def test_the_same_frames_at_another_rate_are_another_video(settings):
    clip = ("frames", [pixels(n, 56, 56) for n in range(2)])
    requests = [
        prompt(video(clip, [0, 15], **{name: fps}), text(2, 300), **settings)
        for name in ("source_fps", "sampled_fps")
        for fps in (1, 2.5, None)
    ]
    assert_distinct(*requests)
    assert_same(
        prompt(video(clip, [0, 15], sampled_fps=2), **settings),
        prompt(video(clip, [0, 15], sampled_fps=2.0), **settings),
    )


def test_two_models_that_take_twenty_frames_at_one_rate_do_not_share_a_key(settings):
    spaced = list(range(0, 300, 15))
    spread = np.linspace(0, 299, 20).round().astype(int).tolist()
    assert (len(spaced), len(spread), spaced[-1], spread[:2], spread[-1]) == (20, 20, 285, [0, 16], 299)
    clip = ("bytes", b"mp4" * 100)
    assert_distinct(*(prompt(video(clip, i), text(1, 300), **settings) for i in (spaced, spread)))


def test_one_video_sampled_twice_keeps_the_order_of_its_samples(settings):
    clip = ("bytes", b"mp4" * 100)
    eight, sixteen = (video(clip, list(range(0, 300, 300 // n))[:n]) for n in (8, 16))
    requests = [prompt(text(1, 20), *order, text(2, 300), **settings) for order in ((eight, sixteen), (sixteen, eight))]
    requests += [
        prompt(text(1, 20), *order, text(2, 300), **settings) for order in ((eight, eight), (sixteen, sixteen))
    ]
    assert_distinct(*requests)
    swapped = requests[0].but(
        items=[eight.but(num_visual_tokens=32), sixteen.but(num_visual_tokens=16)],
        token_ids=requests[1].token_ids,
        layout=requests[1].layout,
    )
    assert swapped.token_ids == requests[1].token_ids
    assert_distinct(swapped, requests[1])


@pytest.mark.parametrize("indices", [[15, 0], [0, 300], [0, 15, 14], [0, 10_000]])
def test_frames_that_descend_or_leave_the_clip_are_an_error(indices):
    with pytest.raises(MmkeyError, match=r"frame_indices|total_frames"):
        prompt(video(("bytes", b"mp4"), indices)).key()


def test_the_number_of_frames_handed_over_is_not_compared_with_the_indices(settings):
    clip = ("frames", [pixels(n, 56, 56) for n in range(3)])
    for indices in ([0, 15], [0, 0, 15, 15], list(range(10))):
        plain = prompt(video(clip, indices), text(1, 9), **settings)
        assert plain.keys() == plain.twin()


def test_all_of_these_prompts_have_the_keys_of_the_twin(settings):
    plain = prompt(
        text(1, 100),
        qwen_image(pixels(1, 30, 100), 30, 100),
        text(2, 30),
        video(("frames", [pixels(n, 56, 56) for n in range(2)]), [0, 15, 30, 45]),
        audio(("array", "f4", [8], {}, bytes(32)), sampling_rate=16_000),
        PlainItem(("array", "bf2", [3, 4], {}, bytes(24)), {"modality": "embeds", "num_visual_tokens": 3}),
        text(3, 300),
        **settings,
    )
    for strategy in reference.STRATEGIES:
        assert plain.keys(strategy) == plain.twin(strategy)
    assert blocks_of(plain.engine(), plain.request()) == plain.twin().blocks[: len(plain.token_ids) // plain.block_size]
    assert made_content(plain.items[0].content).kind == "array"
