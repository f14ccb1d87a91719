"""Inputs that change, answer otherwise the second time, or vanish between being given and being hashed."""

from __future__ import annotations

import copy
import io
import mmap
import pickle
from typing import Any

import numpy as np
import pytest
from PIL import Image

import mmkey

FULL = {"original_size": (48, 64), "resized_size": (56, 56), "patch_grid": (4, 4), "num_visual_tokens": 4}
ENGINE = mmkey.KeyEngine("C", model_id="m", config={}, block_size=4)


def asking(content: Any, **metadata: Any) -> mmkey.Request:
    return mmkey.Request([1, 9, 9, 9, 9, 2], [mmkey.Image(content, **(FULL | metadata))], [(1, 4)])


@pytest.mark.parametrize("size", [3, (8 << 20) + 1])
def test_a_file_emptied_before_it_is_hashed_has_no_key(tmp_path, size):
    path = tmp_path / "picture"
    path.write_bytes(b"x" * size)
    request = asking(mmkey.Content.from_file(path))
    path.write_bytes(b"")
    with pytest.raises(mmkey.InvalidRequest) as error:
        ENGINE.key(request)
    assert error.value.field == "content"


def test_a_bytearray_emptied_before_it_is_hashed_has_no_key():
    data = bytearray(b"a picture")
    request = asking(mmkey.Content.from_bytes(data))
    data.clear()
    with pytest.raises(mmkey.InvalidRequest) as error:
        ENGINE.key(request)
    assert error.value.field == "content"


def test_contents_of_a_file_that_grew_before_it_was_hashed_are_equal_and_hash_alike(tmp_path):
    path = tmp_path / "picture"
    path.write_bytes(b"abc")
    content = mmkey.Content.from_file(path)
    path.write_bytes(b"abcdef")
    assert content == mmkey.Content.from_bytes(b"abcdef")
    assert hash(content) == hash(mmkey.Content.from_bytes(b"abcdef"))


def test_a_list_of_requests_is_read_once():
    class Moody(list):  # type: ignore[type-arg]
        reads = 0

        def __iter__(self) -> Any:
            type(self).reads += 1
            return iter([asking(b"a picture")] if type(self).reads % 2 else [mmkey.Request([1])])

    (prepared,) = ENGINE.prepare_many(Moody())
    assert Moody.reads == 1
    assert ENGINE.key(prepared) == ENGINE.key(asking(b"a picture"))
    (from_generator,) = ENGINE.prepare_many(asking(b"a picture") for _ in range(1))
    assert ENGINE.key(from_generator) == ENGINE.key(prepared)


@pytest.mark.parametrize("wrong", [None, 5, asking(b"one request")])
def test_what_is_no_list_of_requests_is_told_by_name(wrong):
    for work in (ENGINE.prepare_many, ENGINE.block_keys_many):
        with pytest.raises(mmkey.UnsupportedType) as error:
            work(wrong)
        assert error.value.field == "requests"


def test_an_error_of_one_among_many_requests_says_which():
    with pytest.raises(mmkey.InvalidRequest) as error:
        ENGINE.prepare_many([asking(b"x"), asking(b"x", num_visual_tokens=5)])
    assert error.value.field == "requests[1].items[0].num_visual_tokens"


def test_a_released_view_is_no_salt():
    view = memoryview(b"sixteen secret b")
    view.release()
    with pytest.raises(mmkey.UnsupportedType) as error:
        mmkey.KeyEngine("A", salt=view)
    assert error.value.field == "salt"


def test_a_sampling_that_changes_while_it_is_read_is_keyed_as_it_was_or_not_at_all():
    class Changing:
        @property
        def __array_interface__(self) -> Any:
            held = np.arange(4, dtype=np.uint32)
            keep.append(held)
            sampling.clear()
            sampling.update({f"z{i}": [i] for i in range(1000)})
            return held.__array_interface__

    keep: list[Any] = []
    sampling: dict[str, Any] = {"frame_indices": Changing(), **{f"k{i}": str(i) * 50 for i in range(20)}}
    with pytest.raises(mmkey.InvalidRequest):
        mmkey.Video(b"x", sampling=sampling)


def test_a_map_that_counts_as_false_is_kept_all_the_same():
    class Falsy(dict):  # type: ignore[type-arg]
        def __bool__(self) -> bool:
            return False

    request = asking(b"x", processing=Falsy(a=1))
    assert dict(request.items[0].processing) == {"a": 1}
    assert ENGINE.key(pickle.loads(pickle.dumps(request))) == ENGINE.key(request)


def test_a_map_that_answers_otherwise_the_second_time_is_refused():
    class Moody(dict):  # type: ignore[type-arg]
        reads = 0

        def items(self) -> Any:
            type(self).reads += 1
            return {"a": type(self).reads}.items()

    with pytest.raises(mmkey.InvalidRequest) as error:
        mmkey.Image(b"x", processing=Moody(a=0))
    assert error.value.field == "processing"


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, mmkey.BlockChain.copy])
def test_a_copied_chain_grows_by_itself(how):
    chain = ENGINE.chain(mmkey.Request([1, 2, 3]))
    other = how(chain)
    chain.extend([4])
    other.extend([5, 6, 7, 8])
    assert (len(chain), len(other)) == (4, 7)
    for grown, ids in ((chain, [1, 2, 3, 4]), (other, [1, 2, 3, 5])):
        assert grown.keys[0].tobytes() == ENGINE.block_keys(mmkey.Request(ids))[0].tobytes()


def test_a_copy_of_an_engine_is_the_engine_and_an_index_has_no_copy():
    assert copy.copy(ENGINE) is ENGINE
    assert copy.deepcopy(ENGINE) is ENGINE
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.copy(mmkey.RadixIndex())


def test_an_interrupt_while_ids_are_read_stays_an_interrupt():
    class Interrupted:
        def __dlpack_device__(self) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mmkey.Request(Interrupted())


@pytest.mark.parametrize("device", [("cpu", 0), (1.5, 0), (2**80, 0), (2, 0), None, ()])
def test_a_device_that_is_not_the_cpu_is_told(device):
    class Elsewhere:
        def __dlpack_device__(self) -> Any:
            return device

    for work, field in ((mmkey.Request, "token_ids"), (mmkey.Content.from_array, "content")):
        with pytest.raises(mmkey.UnsupportedType) as error:
            work(Elsewhere())
        assert error.value.field == field


def test_frames_within_frames_have_an_end():
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(mmkey.InvalidRequest) as error:
        mmkey.Content.of(endless)
    assert error.value.field == "content"
    content = mmkey.Content.from_bytes(b"x")
    for _ in range(32):
        content = mmkey.Content.from_frames([content])
    assert len(content.digest("sha256")) == 32
    with pytest.raises(mmkey.InvalidRequest):
        mmkey.Content.from_frames([content])


@pytest.mark.parametrize("lie", [10**12, -1])
def test_a_stream_that_lies_about_what_it_read_is_refused(lie):
    class Lying:
        def readinto(self, buffer: Any) -> int:
            return lie

        def read(self, size: int = -1) -> bytes:
            return b""

    with pytest.raises(mmkey.InvalidRequest) as error:
        mmkey.Content.from_file(Lying()).digest("sha256")  # type: ignore[arg-type]
    assert error.value.field == "content"


@pytest.mark.parametrize("algorithm", [[], None, 5, "md5"])
def test_an_algorithm_that_is_none_is_told_whatever_made_the_content(algorithm):
    for content in (mmkey.Content.from_bytes(b"x"), mmkey.Content.from_digest("bytes", "sha256", bytes(32))):
        with pytest.raises(mmkey.InvalidRequest) as error:
            content.digest(algorithm)
        assert error.value.field == "algorithm"


@pytest.mark.parametrize(
    "slots", [b"ab", memoryview(b"ab"), np.ma.array([5, 6], mask=[1, 0]), np.array([0, 1], "m8[s]")]
)
def test_masked_slots_and_bytes_are_no_slots(slots):
    index = mmkey.RadixIndex(4)
    prepared = ENGINE.prepare(mmkey.Request(range(8)))
    with pytest.raises(mmkey.UnsupportedType) as error:
        index.insert(prepared, slots)
    assert error.value.field == "slots"
    assert len(index) == 0


@pytest.mark.parametrize("ask", [lambda c: c.digest("sha256"), lambda c: c.digest("blake3"), hash, pickle.dumps])
@pytest.mark.parametrize("within_frames", [False, True])
def test_a_stream_that_asks_for_its_own_content_gets_an_error_and_no_deadlock(ask, within_frames):
    class Asking(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            ask(asked)
            return 0

    content = asked = mmkey.Content.from_file(Asking())  # type: ignore[arg-type]
    if within_frames:
        asked = mmkey.Content.from_frames([content])
    with pytest.raises(mmkey.InvalidRequest, match="own source") as error:
        content.digest("sha256")
    assert error.value.field == "content"


def test_a_stream_that_passes_over_the_error_of_asking_for_its_own_content_is_read():
    class Asking(io.BytesIO):
        def readinto(self, buffer: Any) -> int:
            with pytest.raises(mmkey.InvalidRequest):
                content.digest("sha256")
            return super().readinto(buffer)

    content = mmkey.Content.from_file(Asking(b"a picture"))
    assert content.text("sha256") == mmkey.Content.from_bytes(b"a picture").text("sha256")


def test_a_picture_closed_before_it_is_given_or_hashed_is_told(tmp_path):
    Image.new("RGB", (4, 4)).save(tmp_path / "p.png")
    for image in (Image.open(tmp_path / "p.png"), Image.new("RGB", (4, 4))):
        image.load()
        content = mmkey.Content.from_image(image)
        image.close()
        for work in (lambda c=content: c.digest("sha256"), lambda i=image: mmkey.Content.of(i)):
            with pytest.raises(mmkey.InvalidRequest, match="cannot be read") as error:
                work()
            assert error.value.field == "content"
    lazy = Image.open(tmp_path / "p.png")
    lazy.close()
    with pytest.raises(mmkey.InvalidRequest, match="cannot be read"):
        mmkey.Content.from_image(lazy)


def test_a_buffer_closed_before_it_is_given_or_hashed_is_told():
    view, mapped = memoryview(b"a picture"), mmap.mmap(-1, 10)
    contents = [mmkey.Content.from_bytes(view), mmkey.Content.from_bytes(mapped)]
    view.release()
    mapped.close()
    for content in contents:
        with pytest.raises(mmkey.InvalidRequest, match="cannot be read") as error:
            content.digest("sha256")
        assert error.value.field == "content"
    for closed in (view, mapped):
        for work in (mmkey.digest, mmkey.sha256, mmkey.sha256().update, mmkey.blake3):
            with pytest.raises(mmkey.InvalidRequest, match="cannot be read") as error:
                work(closed)
            assert error.value.field == "data"


def test_text_without_utf8_is_no_context_of_a_derived_key():
    with pytest.raises(mmkey.InvalidRequest, match="lone surrogate") as error:
        mmkey.blake3(b"x", derive_key_context="a\ud800")
    assert error.value.field == "derive_key_context"


def test_a_number_too_long_to_print_is_told():
    for work in (mmkey.digest, mmkey.digest_many):
        with pytest.raises(mmkey.InvalidRequest, match=r"\[1, 1024\]") as error:
            work(b"x" if work is mmkey.digest else [b"x"], threads=10**5000)
        assert error.value.field == "threads"


def test_a_wrong_algorithm_is_shown_in_one_short_line():
    class Endless:
        def __repr__(self) -> str:
            return "line\n" * 100_000

    for wrong in ("x" * 10**6, Endless()):
        for work in (
            lambda w=wrong: mmkey.digest(b"", w),
            lambda w=wrong: mmkey.new(w),
            lambda w=wrong: mmkey.KeyEngine("A", algorithm=w),
            lambda w=wrong: mmkey.Content.from_bytes(b"x").digest(w),
        ):
            with pytest.raises((mmkey.InvalidRequest, mmkey.UnsupportedType)) as error:
                work()
            assert len(str(error.value)) < 300
            assert len(str(error.value).splitlines()) == 1


def test_a_key_is_named_by_its_own_characters_whatever_its_class_says():
    class Mute(str):
        __slots__ = ()

        def __str__(self) -> str:
            raise RuntimeError("no")

    for key in (Mute("rope"), Mute("\u00e9")):
        with pytest.raises(mmkey.UnsupportedType) as error:
            mmkey.KeyEngine("C", model_id="m", config={key: object()})
        assert error.value.field == f"config.{str.__add__(key, '')}"


def test_messages_of_a_layout_speak_of_what_was_given():
    items = [mmkey.Image(b"x", **FULL)]
    with pytest.raises(mmkey.InvalidRequest, match=r"2 ranges for 1 items; .*give an order") as error:
        ENGINE.prepare(mmkey.Request(range(9), items, [(1, 2), (4, 2)]))
    assert error.value.field == "layout"
    chain = ENGINE.chain(mmkey.Request([1]))
    with pytest.raises(mmkey.InvalidRequest, match=r"2\*\*64 - 1") as error:
        chain.extend([1], items, [(5, 2**64 - 1)])
    assert error.value.field == "layout[0]"
    with pytest.raises(mmkey.InvalidRequest, match=r"no layout says where .* give one") as error:
        mmkey.KeyEngine("B").prepare(mmkey.Request([1, 7], items, None), placeholder_ids=[7])
    assert error.value.field == "token_ids[1]"
