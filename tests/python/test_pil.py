"""PIL pictures: what of them is hashed, by the published vectors."""

from __future__ import annotations

import copy
import io
import json

import numpy as np
import pytest

import logical
import mmkey
import reference
from mmkey import _core, _pictures
from mmkey.content import resolve

PIL = pytest.importorskip("PIL")
Image = pytest.importorskip("PIL.Image")
OFFERS_PIXELS = int(PIL.__version__.partition(".")[0]) >= 13

CASES = json.loads((logical.VECTORS / "pil-v1.json").read_text())["cases"]
PLAIN = [case for case in CASES if case["recipe"]["orientation"] is None]
TURNED = [case for case in CASES if case["recipe"]["orientation"] is not None]


def picture(recipe, folder):
    image = Image.frombytes(recipe["mode"], tuple(recipe["size"]), bytes.fromhex(recipe["bytes"]))
    if recipe["palette"] is not None:
        mode, data = recipe["palette"]
        image.putpalette(bytes.fromhex(data), mode)
    if recipe["transparency"] is not None:
        value = logical.uncoded(recipe["transparency"])
        image.info["transparency"] = tuple(value) if isinstance(value, list) else value
    if recipe["orientation"] is not None:
        exif = Image.Exif()
        exif[0x0112] = recipe["orientation"]
        path = folder / "turned.png"
        image.save(path, exif=exif)
        return Image.open(path)
    return image


def expected_array(case):
    array = case["array"]
    return array["dtype"], array["shape"], bytes.fromhex(array["data"]), logical.uncoded(array["attrs"])


@pytest.fixture(params=["in place", "copied"])
def reading(request, monkeypatch):
    """Both ways to a picture's pixels."""
    if request.param == "copied":
        monkeypatch.setattr(_pictures, "KEPT_AS_THEY_ARE", {})
    return request.param


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
@pytest.mark.usefixtures("reading")
def test_pictures_have_the_digests_of_the_vectors(case, algorithm, tmp_path):
    assert reference.of_array(algorithm, *expected_array(case))[2].hex() == case["digest"][algorithm]
    with picture(case["recipe"], tmp_path) as image:
        content = mmkey.Content.from_image(image)
        assert content.kind == "array"
        assert content.digest(algorithm).hex() == case["digest"][algorithm]
        assert mmkey.Content.of(image).digest(algorithm).hex() == case["digest"][algorithm]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_picture_is_the_array_that_it_is_said_to_be(case):
    dtype, shape, data, attrs = expected_array(case)
    content = mmkey.Content.from_array(logical.ndarray(dtype, shape, data), attrs)
    assert content.digest("sha256").hex() == case["digest"]["sha256"]


def test_the_vectors_name_every_mode():
    modes = {case["recipe"]["mode"] for case in CASES}
    named = [
        "1",
        "L",
        "LA",
        "La",
        "RGB",
        "YCbCr",
        "LAB",
        "HSV",
        "RGBX",
        "RGBA",
        "RGBa",
        "CMYK",
        "I;16",
        "I;16L",
        "I;16B",
        "I",
        "F",
        "P",
        "PA",
    ]
    assert modes >= set(named)


@pytest.mark.parametrize("orientation", [2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("form", ["PNG", "JPEG", "TIFF", "WEBP"])
def test_a_file_that_is_opened_lazily_is_loaded_and_keeps_its_orientation(form, orientation, tmp_path):
    pixels = np.random.default_rng(orientation).integers(0, 256, (9, 5, 3), dtype=np.uint8)
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "picture"
    Image.fromarray(pixels).save(path, form, exif=exif)
    with Image.open(path) as loaded:
        loaded.load()
        data = loaded.tobytes()
        height, width = loaded.height, loaded.width
        told = loaded.getexif().get(0x0112)  # none from a TIFF, which Pillow turns as it loads it
    assert told == (None if form == "TIFF" else orientation)
    with Image.open(path) as lazy:
        attrs = {"mode": "RGB"} if told is None else {"mode": "RGB", "orientation": told}
        expected = reference.of_array("sha256", "u1", [height, width, 3], data, attrs)[2]
        assert mmkey.Content.from_image(lazy).digest("sha256") == expected


@pytest.mark.parametrize("orientation", [0, 1, 9, 65535])
def test_an_orientation_that_turns_nothing_does_not_enter(orientation, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = orientation
    flat = Image.new("RGB", (3, 2), (1, 2, 3))
    flat.save(tmp_path / "picture.png", exif=exif)
    expected = reference.of_array("sha256", "u1", [2, 3, 3], bytes([1, 2, 3]) * 6, {"mode": "RGB"})[2]
    with Image.open(tmp_path / "picture.png") as image:
        assert mmkey.Content.from_image(image).digest("sha256") == expected


def test_a_palette_read_from_a_file_is_whole(tmp_path):
    for form, modes in (("PNG", ["RGB", "RGBA"]), ("GIF", ["RGB"])):
        for mode in modes:
            image = Image.frombytes("P", (4, 1), bytes(range(4)))
            image.putpalette(bytes(range(4 * len(mode))), mode)
            path = tmp_path / f"picture.{form.lower()}"
            image.save(path)
            with Image.open(path) as opened:
                content = mmkey.Content.from_image(opened)
            with Image.open(path) as opened:
                opened.load()
                of = opened.palette.mode
                palette = bytes(opened.im.getpalette(of, of))
                attrs = {"mode": "P", "palette": [of, palette]}
                if "transparency" in opened.info:
                    attrs["transparency"] = opened.info["transparency"]
                expected = reference.of_array("sha256", "u1", [1, 4], opened.tobytes(), attrs)[2]
            assert content.digest("sha256") == expected, (form, mode)


def test_metadata_of_the_file_other_than_orientation_does_not_enter(tmp_path):
    pixels = Image.new("RGB", (8, 8), (9, 8, 7))
    digests = set()
    for number, options in enumerate([{}, {"dpi": (72, 72)}, {"exif": described(b"one")}, {"exif": described(b"two")}]):
        path = tmp_path / f"{number}.png"
        pixels.save(path, **options)
        with Image.open(path) as image:
            digests.add(mmkey.Content.from_image(image).digest("sha256"))
    assert len(digests) == 1


def described(identifier):
    exif = Image.Exif()
    exif[0xA420] = identifier.decode()  # ImageUniqueID
    return exif


def test_the_fourth_byte_of_rgbx_means_nothing():
    one = Image.frombytes("RGBX", (2, 1), bytes([1, 2, 3, 0, 4, 5, 6, 0]))
    other = Image.frombytes("RGBX", (2, 1), bytes([1, 2, 3, 255, 4, 5, 6, 7]))
    assert mmkey.Content.from_image(one).digest("sha256") == mmkey.Content.from_image(other).digest("sha256")


def test_modes_that_share_their_bytes_are_distinct_pictures():
    data = bytes(range(24))
    for modes, size in ((["RGB", "YCbCr", "LAB", "HSV"], (4, 2)), (["RGBA", "RGBa", "CMYK"], (3, 2))):
        digests = {mmkey.Content.from_image(Image.frombytes(m, size, data)).digest("sha256") for m in modes}
        assert len(digests) == len(modes)


def test_a_transparent_colour_is_part_of_the_picture():
    image = Image.frombytes("RGB", (2, 1), bytes(6))
    digests = {mmkey.Content.from_image(image).digest("sha256")}
    for transparency in ((1, 2, 3), (3, 2, 1)):
        image.info["transparency"] = transparency
        digests.add(mmkey.Content.from_image(copy.copy(image)).digest("sha256"))
    assert len(digests) == 3


@pytest.mark.parametrize("form", ["GIF", "WEBP", "TIFF", "PNG"])
def test_a_picture_of_several_frames_is_refused_and_its_frames_are_taken(form, tmp_path):
    frames = [Image.new("RGB", (8, 8), (n * 40, 0, 0)) for n in range(3)]
    path = tmp_path / "moving"
    frames[0].save(path, form, save_all=True, append_images=frames[1:])
    with Image.open(path) as moving:
        assert moving.n_frames == 3
        with pytest.raises(mmkey.errors.MmkeyError, match="frames"):
            mmkey.Content.from_image(moving).digest("sha256")
        contents = []
        for n in range(3):
            moving.seek(n)
            contents.append(mmkey.Content.from_image(moving.copy()))
    assert mmkey.Content.from_frames(contents).kind == "frames"
    assert len({c.digest("sha256") for c in contents}) == 3


@pytest.mark.parametrize("mode", ["I;32", "P;1", "BGR;15", "RGB;16"])
def test_a_picture_of_another_mode_is_refused(mode):
    image = Image.new("L", (2, 2))
    image._mode = mode
    with pytest.raises(mmkey.errors.MmkeyError, match="mode"):
        mmkey.Content.from_image(image).digest("sha256")


def test_a_picture_without_pixels_is_refused():
    for size in ((0, 0), (0, 5), (5, 0)):
        with pytest.raises(mmkey.errors.MmkeyError):
            mmkey.Content.from_image(Image.new("RGB", size)).digest("sha256")


def test_what_is_no_picture_is_refused():
    for other in (b"x", np.zeros((2, 2), np.uint8), None, "path"):
        with pytest.raises(mmkey.errors.UnsupportedType):
            mmkey.Content.from_image(other)


def test_hashing_leaves_the_picture_as_it_was():
    for mode in ("1", "L", "P", "RGBX", "I;16", "RGB"):
        image = Image.new(mode, (5, 3))
        before = (image.mode, image.size, image.tobytes(), dict(image.info))
        mmkey.Content.from_image(image).digest("sha256")
        assert (image.mode, image.size, image.tobytes(), dict(image.info)) == before


def test_a_picture_in_memory_and_its_file_are_two_contents():
    image = Image.new("RGB", (4, 4), (1, 2, 3))
    file = io.BytesIO()
    image.save(file, "PNG")
    of_file = mmkey.Content.from_bytes(file.getvalue())
    of_pixels = mmkey.Content.from_image(image)
    assert (of_file.kind, of_pixels.kind) == ("bytes", "array")
    assert of_file.digest("sha256") != of_pixels.digest("sha256")


# ---------------------------------------------------------------- pixels in place


def noise(mode, size, seed=1):
    """A picture of random pixels, and the digests that its bytes have as an array."""
    width, height = size
    image = Image.new(mode, size)
    depth = len(image.tobytes()) // (width * height)
    data = np.random.default_rng(seed).integers(0, 128, width * height * depth, dtype=np.uint8).tobytes()
    return Image.frombytes(mode, size, data)


def expected_digest(image, algorithm):
    width, height = image.size
    dtype, shape, data = "u1", [height, width], image.tobytes()
    if image.mode in ("I", "F", "I;16"):
        dtype = {"I": "i4", "F": "f4", "I;16": "u2"}[image.mode]
    elif image.mode == "RGBX":
        data, shape = bytes(np.frombuffer(data, np.uint8).reshape(-1, 4)[:, :3].tobytes()), [height, width, 3]
    elif len(data) != width * height:
        shape = [height, width, len(data) // (width * height)]
    return reference.of_array(algorithm, dtype, shape, data, {"mode": image.mode})[2]


IN_PLACE = ["L", "I;16", "RGB", "YCbCr", "HSV", "RGBX", "RGBA", "RGBa", "CMYK", "I", "F"]


@pytest.mark.parametrize("mode", IN_PLACE)
def test_pixels_in_place_are_those_of_the_copy(mode, algorithm):
    # Around a BLAKE3 chunk, where a picture fills the lanes, and where one piece of it gives way to the next.
    for size in [(1, 1), (7, 5), (17, 20), (341, 1), (342, 1), (73, 75), (99, 111), (336, 336), (640, 481)]:
        image = noise(mode, size)
        assert (_pictures._pixels_in_place(image) is not None) == OFFERS_PIXELS
        assert mmkey.Content.from_image(image).digest(algorithm) == expected_digest(image, algorithm), size


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
@pytest.mark.usefixtures("reading")
def test_a_picture_in_several_blocks_of_memory_has_the_digest_of_its_bytes(mode, algorithm):
    image = noise(mode, (5000, 3500))
    if OFFERS_PIXELS:
        assert _pictures._pixels_in_place(image) is None
    assert mmkey.Content.from_image(image).digest(algorithm) == expected_digest(image, algorithm)


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "F"])
@pytest.mark.usefixtures("reading")
def test_a_picture_whose_rows_lie_apart_has_the_digest_of_its_bytes(mode, algorithm):
    alignment = Image.core.get_alignment()
    Image.core.set_alignment(64)
    try:
        image = noise(mode, (21, 13))
    finally:
        Image.core.set_alignment(alignment)  # told by no picture that was made before
    assert mmkey.Content.from_image(image).digest(algorithm) == expected_digest(image, algorithm)


@pytest.mark.parametrize("mode", ["L", "RGBX", "CMYK", "I;16", "RGBA"])
@pytest.mark.usefixtures("reading")
def test_a_picture_over_memory_of_others_has_the_digest_of_its_bytes(mode, algorithm):
    plain = noise(mode, (21, 13))
    data = bytearray(plain.tobytes())
    for orientation in (1, -1):
        mapped = Image.frombuffer(mode, plain.size, data, "raw", mode, 0, orientation)
        assert mmkey.Content.from_image(mapped).digest(algorithm) == expected_digest(mapped, algorithm)


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
@pytest.mark.usefixtures("reading")
def test_a_mapped_file_and_what_is_cut_out_of_a_picture_have_the_digests_of_their_bytes(mode, algorithm, tmp_path):
    image = noise(mode, (40, 30))
    image.save(tmp_path / "plain.tiff")
    with Image.open(tmp_path / "plain.tiff") as opened:
        digest = mmkey.Content.from_image(opened).digest(algorithm)
    assert digest == expected_digest(image, algorithm)
    for made in (image.crop((3, 4, 20, 29)), image.rotate(90, expand=True), image.resize((11, 13)), image.copy()):
        assert mmkey.Content.from_image(made).digest(algorithm) == expected_digest(made, algorithm)


@pytest.mark.parametrize("version", ["11.3.0", "12.3.0"])
def test_a_pillow_that_offers_pixels_carelessly_is_not_asked_for_them(version, monkeypatch):
    image = noise("RGB", (5, 3))
    expected = expected_digest(image, "sha256")

    def crash(self):
        raise AssertionError

    monkeypatch.setattr(PIL, "__version__", version)
    monkeypatch.setattr(Image.Image, "__arrow_c_array__", crash, raising=False)
    assert mmkey.Content.from_image(image).digest("sha256") == expected


def test_a_batch_of_pictures_files_and_arrays_has_the_digests_of_each(algorithm):
    pictures = [noise(mode, size, seed) for seed, size in enumerate([(9, 9), (200, 150)]) for mode in IN_PLACE]
    contents = [mmkey.Content.of(thing) for thing in [*pictures, b"a file", np.arange(12, dtype=np.uint8)]]
    found = [content.digest for content in resolve(contents, algorithm)]
    assert found[:-2] == [expected_digest(picture, algorithm) for picture in pictures]
    assert found[-2] == reference.digest(algorithm, b"a file")
    assert found[-1] == reference.of_array(algorithm, "u1", [12], bytes(range(12)), {})[2]


def test_a_second_algorithm_sees_that_pixels_in_place_were_changed():
    image = noise("RGB", (64, 64))
    content = mmkey.Content.from_image(image)
    content.digest("sha256")
    image.putpixel((63, 63), (255, 255, 255))
    with pytest.raises(mmkey.errors.InvalidRequest, match="changed"):
        content.digest("blake3")


@pytest.mark.skipif(not OFFERS_PIXELS, reason="this Pillow's Arrow data is not read")
def test_arrow_data_of_another_form_is_refused():
    schema, array = noise("RGB", (4, 3)).__arrow_c_array__()
    assert _core.Pixels(schema, array, 12, 4, 3).nbytes == 36
    wrong = [(schema, array, 11, 4, 3), (schema, array, 13, 4, 3), (schema, array, 12, 1, 1), (schema, array, 12, 2, 2)]
    wrong += [(schema, array, 12, 4, 2), (array, schema, 12, 4, 3), (*noise("L", (4, 3)).__arrow_c_array__(), 12, 4, 4)]
    for arguments in wrong:
        with pytest.raises(ValueError, match=r"Arrow|PyCapsule"):
            _core.Pixels(*arguments)
    with pytest.raises(TypeError):
        _core.Pixels(b"", b"", 12, 4, 3)
