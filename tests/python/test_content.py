"""What a content is over its life: hashed once, then no more than its digests."""

from __future__ import annotations

import gc
import io
import pickle
import subprocess
import sys
import weakref
from typing import ClassVar

import numpy as np
import pytest

import mmkey
import reference
from mmkey import Content
from mmkey.errors import InvalidRequest, MmkeyError, UnsupportedType

ALGORITHMS = reference.ALGORITHMS


def sha256(data):
    return reference.digest("sha256", bytes(data))


def test_a_content_is_hashed_when_it_is_asked_for_and_not_before():
    buffer = bytearray(b"before")
    content = Content.from_bytes(buffer)
    buffer[:] = b"after!"
    assert content.digest("sha256") == sha256(b"after!")


def test_a_content_is_hashed_once_and_remembered():
    buffer = bytearray(b"before")
    content = Content.from_bytes(buffer)
    assert content.digest("sha256") == sha256(b"before")
    buffer[:] = b"after!"
    assert content.digest("sha256") == sha256(b"before")
    pixels = np.arange(12, dtype=np.uint8)
    content = Content.from_array(pixels)
    before = content.digest("blake3")
    pixels[0] = 9
    assert content.digest("blake3") == before


def test_a_content_is_hashed_by_prepare_at_the_latest():
    buffer = bytearray(b"before")
    item = mmkey.Item(Content.from_bytes(buffer), num_visual_tokens=1)
    engine = mmkey.KeyEngine("B")
    prepared = engine.prepare(mmkey.Request([7], [item], [(0, 1)]))
    buffer[:] = b"after!"
    expected = reference.keys(
        "B", "sha256", [7], 16, items=[[0, 0, reference.of_bytes("sha256", b"before")]], layout=[(0, 1)]
    )
    assert engine.key(prepared) == expected.request
    assert item.content.digest("sha256") == sha256(b"before")


def test_a_stream_is_read_once(tmp_path):
    stream = io.BytesIO(b"once")
    content = Content.of(stream)
    assert [content.digest("sha256") for _ in range(3)] == [sha256(b"once")] * 3
    path = tmp_path / "file"
    path.write_bytes(b"one")
    content = Content.from_file(path)
    assert content.digest("sha256") == sha256(b"one")
    path.unlink()
    assert content.digest("sha256") == sha256(b"one")


def test_a_stream_is_read_from_where_it_stands():
    stream = io.BytesIO(b"skipped|read")
    stream.seek(8)
    assert Content.of(stream).digest("sha256") == sha256(b"read")


def test_a_stream_that_fails_half_way_gives_no_digest():
    class Broken(io.RawIOBase):
        calls = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            self.calls += 1
            if self.calls > 3:
                raise ConnectionResetError("gone")
            buffer[:4] = b"data"
            return 4

    content = Content.of(Broken())
    for _ in range(2):  # and never one of what was read so far
        with pytest.raises((ConnectionResetError, MmkeyError)):
            content.digest("sha256")


def test_what_is_left_of_a_stream_that_failed_is_no_content():
    """A reader that goes on after an error must not make a digest of the second half."""

    class Hiccup(io.RawIOBase):
        pieces: ClassVar[list] = []

        def readable(self):
            return True

        def readinto(self, buffer):
            piece = self.pieces.pop(0) if self.pieces else b""
            if piece is None:
                raise TimeoutError("try again")
            buffer[: len(piece)] = piece
            return len(piece)

    for ask in (lambda c: c.digest("sha256"), lambda c: c.digest("blake3"), hash, pickle.dumps, prepared_with):
        Hiccup.pieces = [b"first half", None, b"second half", b""]
        content = Content.of(Hiccup())
        with pytest.raises(TimeoutError):
            ask(content)
        for again in (lambda c: c.digest("sha256"), lambda c: c.digest("blake3"), prepared_with, pickle.dumps):
            with pytest.raises(InvalidRequest, match="stream"):
                again(content)


@pytest.mark.parametrize("first", reference.ALGORITHMS)
def test_comparing_contents_costs_neither_of_them_an_algorithm(first):
    """Whoever puts requests into a set before an engine sees them must not lose the bytes that the engine asks for."""
    makers = [
        lambda: Content.from_bytes(bytearray(b"data")),
        lambda: Content.from_bytes(memoryview(bytearray(b"data"))),
        lambda: Content.of(io.BytesIO(b"data")),
        lambda: Content.from_frames([Content.from_bytes(bytearray(b"data")), Content.of(io.BytesIO(b"data"))]),
        lambda: Content.from_array(np.arange(4, dtype=np.uint8)),
    ]
    for make in makers:
        one, other = make(), make()
        assert len({one, other, make()}) == 1
        for content in (one, other):
            for algorithm in (first, *ALGORITHMS):
                assert content.digest(algorithm) == make().digest(algorithm)


def test_a_picture_may_be_closed_before_it_is_hashed(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    path = tmp_path / "picture.png"
    image_module.frombytes("RGB", (3, 2), bytes(range(18))).save(path)
    with image_module.open(path) as image:
        content = Content.from_image(image)
    path.unlink()
    expected = reference.of_array("sha256", "u1", [2, 3, 3], bytes(range(18)), {"mode": "RGB"})[2]
    assert content.digest("sha256") == expected


def test_the_buffer_is_let_go_once_it_is_hashed():
    buffer = bytearray(b"x" * 100)
    content = Content.from_bytes(buffer)
    content.digest("sha256")
    buffer.extend(b"resized, which a held buffer forbids")
    view = memoryview(bytearray(100))
    content = Content.from_bytes(view)
    content.digest("sha256")
    view.release()


def test_the_array_is_let_go_once_it_is_hashed():
    for attempt in (lambda c: c.digest("sha256"), lambda c: c.text("sha256"), prepared_with):
        pixels = np.arange(1000, dtype=np.float32)
        watch = weakref.ref(pixels)
        content = Content.from_array(pixels)
        attempt(content)
        del pixels
        gc.collect()
        assert watch() is None
        assert content.kind == "array"


def prepared_with(content):
    engine = mmkey.KeyEngine("B")
    return engine.prepare(mmkey.Request([7], [mmkey.Item(content)], [(0, 1)]))


def test_frames_are_let_go_once_they_are_hashed():
    frame = np.zeros((4, 4, 3), np.uint8)
    watch = weakref.ref(frame)
    content = Content.from_frames([Content.from_array(frame)])
    content.digest("sha256")
    del frame
    gc.collect()
    assert watch() is None


def test_an_array_that_had_to_be_copied_is_let_go_as_well():
    pixels = np.arange(1000, dtype=">u4")[::2]
    watch = weakref.ref(pixels)
    content = Content.from_array(pixels)
    content.digest("sha256")
    del pixels
    gc.collect()
    assert watch() is None


def test_a_content_made_from_a_digest_has_that_algorithm_alone():
    for kind in ("bytes", "array", "frames", "opaque"):
        for algorithm, other in (ALGORITHMS, ALGORITHMS[::-1]):
            content = Content.from_digest(kind, algorithm, b"d" * 32)
            assert content.kind == kind
            assert content.digest(algorithm) == b"d" * 32
            assert content.text(algorithm) == f"mmkey1:content:{kind}:{algorithm}:{(b'd' * 32).hex()}"
            with pytest.raises(InvalidRequest, match=algorithm):
                content.digest(other)
            with pytest.raises(InvalidRequest, match=algorithm):
                content.text(other)


def test_a_digest_of_either_algorithm_enters_an_engine_of_the_other():
    for made_with, algorithm in (ALGORITHMS, ALGORITHMS[::-1]):
        content = Content.from_digest("bytes", made_with, b"d" * 32)
        engine = mmkey.KeyEngine("B", algorithm=algorithm)
        twin = reference.keys("B", algorithm, [7], 16, items=[[0, 0, ["bytes", made_with, b"d" * 32]]], layout=[(0, 1)])
        assert engine.key(mmkey.Request([7], [mmkey.Item(content)], [(0, 1)])) == twin.request


def test_frames_of_digests_of_another_algorithm_keep_theirs():
    frames = [Content.from_digest("array", "blake3", bytes([n]) * 32) for n in range(3)]
    expected = reference.of_frames("sha256", [["array", "blake3", bytes([n]) * 32] for n in range(3)])[2]
    assert Content.from_frames(frames).digest("sha256") == expected


def test_frames_of_frames_are_contents_like_others():
    inner = Content.from_frames([Content.from_bytes(b"a"), Content.opaque("b")])
    twin = reference.of_frames("sha256", [reference.of_bytes("sha256", b"a"), reference.of_identifier("sha256", "b")])
    assert Content.from_frames([inner]).digest("sha256") == reference.of_frames("sha256", [twin])[2]


@pytest.mark.parametrize("order", [ALGORITHMS, ALGORITHMS[::-1]])
def test_what_cannot_change_has_a_digest_by_both_algorithms(order, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"data")
    makers = {
        "bytes": (lambda: Content.from_bytes(b"data"), lambda a: reference.of_bytes(a, b"data")),
        "a file": (lambda: Content.from_file(path), lambda a: reference.of_bytes(a, b"data")),
        "an identifier": (lambda: Content.opaque("x", namespace="n"), lambda a: reference.of_identifier(a, "x", "n")),
        "frames of bytes": (
            lambda: Content.from_frames([Content.from_bytes(b"a"), Content.from_bytes(b"b")]),
            lambda a: reference.of_frames(a, [reference.of_bytes(a, b"a"), reference.of_bytes(a, b"b")]),
        ),
    }
    for name, (made, twin) in makers.items():
        content = made()
        for algorithm in (*order, *order):
            assert content.digest(algorithm) == twin(algorithm)[2], name


@pytest.mark.parametrize("change", [False, True])
def test_a_second_algorithm_never_sees_other_bytes_than_the_first(change):
    buffer = bytearray(b"before")
    pixels = np.arange(6, dtype=np.uint8)
    cases = [
        (Content.from_bytes(buffer), reference.of_bytes("blake3", b"before")[2]),
        (Content.from_bytes(memoryview(buffer)), reference.of_bytes("blake3", b"before")[2]),
        (Content.from_array(pixels), reference.of_array("blake3", "u1", [6], pixels.tobytes())[2]),
        (Content.from_array(pixels[::2]), reference.of_array("blake3", "u1", [3], pixels[::2].tobytes())[2]),
    ]
    for content, _ in cases:
        content.digest("sha256")
    if change:
        buffer[:] = b"after!"
        pixels += 1
    for content, expected in cases:
        try:
            found = content.digest("blake3")
        except MmkeyError as error:
            assert "sha256" in str(error)
        else:
            assert found == expected


def test_a_second_algorithm_never_sees_another_file_than_the_first(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    content = Content.from_file(path)
    content.digest("sha256")
    path.write_bytes(b"after, and longer")
    try:
        found = content.digest("blake3")
    except (MmkeyError, OSError):
        return
    assert found == reference.digest("blake3", b"before")


TOUCH = """
import os, sys
n = 0
while True:
    n += 1
    os.utime(sys.argv[1], ns=(n, n))
    if n == 1: print(flush=True)
"""
APPEND = """
import sys
with open(sys.argv[1], "ab", buffering=0) as file:
    file.write(b"x"); print(flush=True)
    while True: file.write(b"x" * 64)
"""


@pytest.mark.parametrize("writer", [TOUCH, APPEND], ids=["touched", "appended to"])
def test_a_file_that_changes_while_it_is_read_is_an_error(writer, algorithm, tmp_path):
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(64 << 20)  # takes a while to hash and no room on the disk
    process = subprocess.Popen([sys.executable, "-c", writer, str(path)], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        content = Content.from_file(path)
        with pytest.raises(MmkeyError, match="changed"):
            content.digest(algorithm)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    with path.open("r+b") as file:
        file.truncate(1000)
    assert content.digest(algorithm) == reference.digest(algorithm, path.read_bytes())


def test_a_file_that_shrinks_while_it_is_mapped_does_not_kill_the_process(tmp_path):
    path = tmp_path / "file"
    script = f"""
import os, threading, mmkey
path = {str(path)!r}
for attempt in range(5):
    with open(path, "wb") as file:
        file.truncate(64 << 20)
    timer = threading.Timer(0.005, os.truncate, (path, 100))
    timer.start()
    try:
        mmkey.Content.from_file(path).digest("sha256")
    except mmkey.errors.MmkeyError:
        pass
    timer.join()
print("alive")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


def test_of_knows_what_is_unambiguous(tmp_path):
    (tmp_path / "file").write_bytes(b"data")
    content = Content.from_bytes(b"data")
    assert Content.of(content) is content or Content.of(content) == content
    assert Content.of(b"data").kind == "bytes"
    assert Content.of(tmp_path / "file").digest("sha256") == sha256(b"data")
    assert Content.of(np.zeros(3, np.uint8)).kind == "array"
    with pytest.raises(UnsupportedType, match="opaque"):
        Content.of("picture")


def test_contents_are_compared_by_value(tmp_path):
    (tmp_path / "file").write_bytes(b"data")
    pixels = np.arange(6, dtype=np.uint8).reshape(2, 3)
    equal = [
        [Content.from_bytes(b"data"), Content.from_bytes(bytearray(b"data")), Content.from_file(tmp_path / "file")],
        [
            Content.from_array(pixels),
            Content.from_array(np.asfortranarray(pixels)),
            Content.from_array(pixels.copy(), {}),
        ],
        [Content.opaque("data"), Content.opaque("data", namespace="")],
        [Content.from_frames([Content.from_bytes(b"data")]), Content.from_frames((Content.from_bytes(b"data"),))],
        [
            Content.from_digest("bytes", "sha256", b"d" * 32),
            Content.from_digest("bytes", "sha256", bytearray(b"d" * 32)),
        ],
        [Content.from_digest("array", "sha256", b"d" * 32)],
        [Content.from_digest("bytes", "blake3", b"d" * 32)],
        [Content.from_array(pixels.T)],
        [Content.from_array(pixels.astype(np.int8))],
        [Content.from_array(pixels, {"mode": "L"})],
        [Content.from_array(pixels, {"n": 1})],
        [Content.from_array(pixels, {"n": 1.0})],
        [Content.from_array(pixels, {"n": True})],
        [Content.from_bytes(b"other")],
        [Content.opaque("data", namespace="n")],
    ]
    for n, group in enumerate(equal):
        for m, other in enumerate(equal):
            for a in group:
                for b in other:
                    assert (a == b) == (n == m), (a, b)
                    assert (a != b) == (n != m)
                    if n == m:
                        assert hash(a) == hash(b)
    assert Content.from_bytes(b"data") != b"data"
    assert Content.from_bytes(b"data") != "data"


def test_equality_outlives_the_buffer():
    buffer = bytearray(b"data")
    one, other = Content.from_bytes(buffer), Content.from_bytes(b"data")
    one.digest("sha256")
    hashed = hash(one)
    buffer[:] = b"DATA"
    assert one == other
    assert hash(one) == hashed == hash(other)
    assert len({one, other}) == 1


def test_contents_cannot_be_written_to():
    content = Content.from_bytes(b"data")
    for name in ("kind", "digest", "text", "other", "_data"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(content, name, "array")
    with pytest.raises((AttributeError, TypeError)):
        del content.kind
    with pytest.raises(TypeError):
        Content()


def test_a_content_tells_what_it_is():
    assert "bytes" in repr(Content.from_bytes(b"data"))
    assert "array" in repr(Content.from_array(np.zeros(3)))
    assert "opaque" in repr(Content.opaque("x"))
    hashed = Content.from_bytes(b"data")
    hashed.digest("sha256")
    assert len(repr(hashed)) < 300
    assert len(repr(Content.from_bytes(b"x" * 100_000))) < 300


def test_an_identifier_is_told_apart_by_its_namespace():
    pairs = [("ab", ""), ("b", "a"), ("a", "b"), ("", "ab")]
    digests = {Content.opaque(i, namespace=n).digest("sha256") for i, n in pairs if i}
    assert len(digests) == 3


def test_a_bytes_content_is_what_sha256sum_prints(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"what the tool says")
    printed = subprocess.run(["sha256sum", str(path)], capture_output=True, text=True, check=True).stdout.split()[0]
    assert Content.from_file(path).digest("sha256").hex() == printed


def test_many_contents_of_all_sizes_are_hashed_in_one_batch(algorithm, tmp_path):
    random = np.random.default_rng(11)
    data = [
        random.bytes(int(n)) for n in [1, 55, 64, 65, 1023, 1024, 1025, 5000, 70_000, *random.integers(1, 4000, 60)]
    ]
    for n, blob in enumerate(data[:3]):
        (tmp_path / str(n)).write_bytes(blob)
    held = [Content.from_file(tmp_path / str(n)) for n in range(3)] + [Content.from_bytes(b) for b in data[3:]]
    items = [mmkey.Item(c) for c in held]
    request = mmkey.Request([7] * len(items), items, [(n, 1) for n in range(len(items))])
    twins = [[0, 0, reference.of_bytes(algorithm, b)] for b in data]
    expected = reference.keys(
        "B", algorithm, [7] * len(items), 16, items=twins, layout=[(n, 1) for n in range(len(items))]
    )
    for threads in (1, 2):
        engine = mmkey.KeyEngine("B", algorithm=algorithm, threads=threads)
        assert engine.key(request) == expected.request
        assert [c.digest(algorithm) for c in held] == [reference.digest(algorithm, b) for b in data]


def test_one_content_in_two_items_is_hashed_once():
    stream = io.BytesIO(b"can be read once only")
    content = Content.of(stream)
    items = [mmkey.Item(content), mmkey.Item(content)]
    twin = [0, 0, reference.of_bytes("sha256", b"can be read once only")]
    expected = reference.keys("B", "sha256", [7, 7], 16, items=[twin, twin], layout=[(0, 1), (1, 1)]).request
    assert mmkey.KeyEngine("B").key(mmkey.Request([7, 7], items, [(0, 1), (1, 1)])) == expected
