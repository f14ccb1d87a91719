"""Digests against hashlib and PyPI blake3."""

from __future__ import annotations

import array
import gc
import hashlib
import os
import pickle
import random
import subprocess
import sys
import threading
import weakref

import blake3 as pypi
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmkey import hashing
from mmkey.errors import InvalidRequest, UnsupportedType

KEY = b"whats the Elvish word for friend"
CONTEXT = "BLAKE3 2019-12-27 16:29:52 test vectors context"
PATTERN = bytes(i % 251 for i in range(102_400))
EDGES = [0, 1, 2, 3, 54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129, 1023, 1024, 1025, 2047, 2048, 2049]
EDGES += [3072, 3073, 4096, 4097, 5120, 5121, 6144, 6145, 7168, 7169, 8192, 8193, 16384, 16385, 31744]
EDGES += [65536, 65537, 102_400]

ORACLE = {"sha256": lambda data: hashlib.sha256(data).digest(), "blake3": lambda data: pypi.blake3(data).digest()}
ALGORITHMS = list(ORACLE)
MODES = [{}, {"key": KEY}, {"derive_key_context": CONTEXT}]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_length_edge_has_the_digest_of_the_standard(algorithm: str) -> None:
    for length in EDGES:
        for start in (0, 1, 3):
            data = memoryview(PATTERN)[start : start + length]
            assert hashing.digest(data, algorithm) == ORACLE[algorithm](data), (length, start)
            assert hashing.new(algorithm, data).digest() == ORACLE[algorithm](data), (length, start)


@pytest.mark.parametrize("mode", MODES)
def test_the_official_blake3_recipe_holds_in_every_mode(mode: dict[str, object]) -> None:
    for length in EDGES:
        expected = pypi.blake3(PATTERN[:length], **mode)
        ours = hashing.blake3(PATTERN[:length], **mode)
        assert ours.digest(131) == expected.digest(131)
        assert ours.hexdigest() == expected.hexdigest()


@given(data=st.data(), algorithm=st.sampled_from(ALGORITHMS), size=st.integers(0, 20_000))
def test_a_message_may_come_in_any_pieces(data: st.DataObject, algorithm: str, size: int) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=8)))
    hasher = hashing.new(algorithm)
    for begin, end in zip([0, *cuts], [*cuts, size], strict=True):
        hasher.update(PATTERN[begin:end])
    assert hasher.digest() == ORACLE[algorithm](PATTERN[:size])


@given(length=st.integers(0, 300), seek=st.one_of(st.integers(0, 300), st.integers(2**63, 2**64 - 301)))
def test_blake3_output_of_any_length_from_any_position(length: int, seek: int) -> None:
    ours, theirs = hashing.blake3(b"media"), pypi.blake3(b"media")
    assert ours.digest(length, seek=seek) == theirs.digest(length, seek=seek)
    assert ours.hexdigest(length, seek) == theirs.hexdigest(length, seek=seek)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_batch_agrees_with_one_by_one(algorithm: str) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    for count in [0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16, 17, 31, 33, 100]:
        for scale in (130, 1100, 5000, 70_000):
            sizes = [rng.choice([rng.randrange(scale), rng.choice(EDGES[:30])]) for _ in range(count)]
            starts = [rng.randrange(64) for _ in sizes]
            batch = [memoryview(PATTERN)[start : start + size] for start, size in zip(starts, sizes, strict=True)]
            for threads in (1, 3):
                got = hashing.digest_many(batch, algorithm, threads=threads)
                assert got.shape == (count, 32)
                assert got.dtype == np.uint8
                assert [bytes(row) for row in got] == [ORACLE[algorithm](data) for data in batch], (count, sizes)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_equal_sizes_in_a_batch_agree_with_one_by_one(algorithm: str) -> None:
    for size in [0, 1, 55, 56, 63, 64, 65, 96, 119, 120, 128, 192, 1023, 1024, 1025, 4096, 16_384, 20_000]:
        for count in (1, 2, 5, 8, 16, 17, 40):
            batch = [PATTERN[i : i + size] for i in range(count)]
            got = hashing.digest_many(batch, algorithm)
            assert [bytes(row) for row in got] == [ORACLE[algorithm](data) for data in batch], (size, count)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_large_messages_have_one_digest_whatever_the_threads(threads: int) -> None:
    data = np.random.default_rng(7).integers(0, 256, 9_000_001, dtype=np.uint8)
    for size in (1_000_000, 6_220_800, 8 << 20, 9_000_001):
        expected = pypi.blake3(data[:size].data).digest()
        assert hashing.digest(data[:size], "blake3", threads=threads) == expected
        hasher = hashing.blake3(max_threads=threads)
        hasher.update(data[:777])
        hasher.update(data[777:size])
        assert hasher.digest() == expected


def test_rows_of_an_array_are_a_batch() -> None:
    rows = np.arange(7 * 96, dtype=np.uint32).reshape(7, 96)
    expected = [hashlib.sha256(row.tobytes()).digest() for row in rows]
    assert [bytes(d) for d in hashing.digest_many(rows)] == expected
    assert [bytes(d) for d in hashing.digest_many(rows[::2])] == expected[::2]
    assert hashing.digest_many(np.zeros((0, 5), np.uint8)).shape == (0, 32)


@pytest.mark.parametrize("size", [0, 1, 96, 256, 257])
@pytest.mark.parametrize("count", [511, 512, 513, 1025, 2100])
def test_a_batch_of_many_short_messages_has_their_digests_in_order(count: int, size: int, algorithm: str) -> None:
    data = random.Random(count).randbytes(count * size)
    messages = [data[i * size : (i + 1) * size] for i in range(count)]
    expected = [ORACLE[algorithm](message) for message in messages]
    rows = np.frombuffer(data, np.uint8).reshape(count, size)
    mixed = [*messages[:-1], bytearray(messages[-1])]
    for batch in (messages, tuple(messages), iter(messages), mixed, rows):
        assert [bytes(d) for d in hashing.digest_many(batch, algorithm)] == expected
    assert [bytes(d) for d in hashing.digest_many(messages, algorithm, threads=2)] == expected
    assert [bytes(d) for d in hashing.digest_many(rows[::-1], algorithm)] == expected[::-1]


def test_many_short_messages_of_unequal_sizes_have_their_digests(algorithm: str) -> None:
    draw = random.Random(5)
    messages = [draw.randbytes(draw.choice([0, 3, 63, 64, 119, 120, 500])) for _ in range(3000)]
    expected = [ORACLE[algorithm](message) for message in messages]
    assert [bytes(d) for d in hashing.digest_many(messages, algorithm)] == expected


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_buffer_counts_by_its_bytes_in_c_order(algorithm: str) -> None:
    numbers = np.arange(60, dtype="<u4").reshape(3, 4, 5)
    buffers = [
        b"abc",
        bytearray(b"abc"),
        memoryview(b"abcdef")[::2],
        memoryview(b"abcdef")[::-1],
        array.array("H", [1, 2, 3]),
        numbers,
        np.asfortranarray(numbers),
        numbers[::-1, ::2],
        numbers.astype(">u4"),
        np.array(3.5),
        np.zeros((0, 3)),
    ]
    for buffer in buffers:
        data = buffer.tobytes() if hasattr(buffer, "tobytes") else bytes(buffer)
        assert hashing.digest(buffer, algorithm) == ORACLE[algorithm](data)
        assert hashing.new(algorithm, buffer).digest() == ORACLE[algorithm](data)
        assert bytes(hashing.digest_many([buffer], algorithm)[0]) == ORACLE[algorithm](data)


@pytest.mark.parametrize("wrong", ["text", None, 12, 1.5, [1, 2], np.array([None])])
def test_what_has_no_bytes_is_refused_by_name(wrong: object) -> None:
    for call in (hashing.digest, hashing.sha256, hashing.blake3, hashing.sha256().update, hashing.blake3().update):
        with pytest.raises(UnsupportedType) as error:
            call(wrong)
        assert error.value.field == "data"
    with pytest.raises(UnsupportedType) as error:
        hashing.digest_many([b"", wrong])
    assert error.value.field == "buffers[1]"


def test_a_released_buffer_is_an_error_as_in_hashlib() -> None:
    view = memoryview(bytearray(b"abc"))
    view.release()
    with pytest.raises(ValueError, match="released"):
        hashlib.sha256(view)
    for call in (hashing.digest, hashing.sha256, hashing.blake3().update):
        with pytest.raises(ValueError, match="released"):
            call(view)


def test_a_buffer_is_let_go_after_the_call() -> None:
    data = bytearray(100)
    hasher = hashing.sha256(data)
    hasher.update(data)
    hashing.digest(data)
    hashing.digest_many([data, memoryview(data)[::2]])
    data.extend(b"still free to grow")
    held = np.zeros(10)
    gone = weakref.ref(held)
    hashing.digest_many([held])
    del held
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("wrong", ["text", b"bytes", bytearray(3), memoryview(b"abc"), None, 5, np.zeros(4)])
def test_one_buffer_is_no_batch(wrong: object) -> None:
    with pytest.raises(UnsupportedType) as error:
        hashing.digest_many(wrong)
    assert error.value.field == "buffers"


@pytest.mark.parametrize("wrong", ["SHA-256", "md5", "", None, 256])
def test_an_unknown_algorithm_is_refused_by_name(wrong: object) -> None:
    for call in (hashing.digest, hashing.digest_many, hashing.digest_file):
        with pytest.raises(InvalidRequest) as error:
            call([], wrong) if call is hashing.digest_many else call(b"x", wrong)
        assert error.value.field == "algorithm"
    with pytest.raises(InvalidRequest) as error:
        hashing.new(wrong)
    assert error.value.field == "name"


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (0, InvalidRequest),
        (-1, InvalidRequest),
        (1 << 70, InvalidRequest),
        (1.0, UnsupportedType),
        (True, UnsupportedType),
        ("2", UnsupportedType),
    ],
)
def test_a_wrong_number_of_threads_is_refused_by_name(wrong: object, kind: type) -> None:
    for call in (hashing.digest, hashing.digest_many):
        with pytest.raises(kind) as error:
            call([b"x"] if call is hashing.digest_many else b"x", threads=wrong)
        assert error.value.field == "threads"


def test_wrong_calls_are_type_errors_as_in_python() -> None:
    for call in (
        hashing.digest,
        lambda: hashing.digest(b"", "sha256", 1),
        lambda: hashing.digest(b"", data=b""),
        lambda: hashing.digest(b"", nonsense=1),
        lambda: hashing.sha256(b"", key=KEY),
        lambda: hashing.blake3(b"", KEY),
        lambda: hashing.sha256().update(),
        lambda: hashing.blake3().digest(1, 2, 3),
    ):
        with pytest.raises(TypeError):
            call()


def test_wrong_options_of_blake3_are_refused_by_name() -> None:
    cases = [
        ({"key": b"short"}, "key", InvalidRequest),
        ({"key": "x" * 32}, "key", UnsupportedType),
        ({"derive_key_context": b"bytes"}, "derive_key_context", UnsupportedType),
        ({"key": KEY, "derive_key_context": CONTEXT}, "derive_key_context", InvalidRequest),
        ({"max_threads": 0}, "max_threads", InvalidRequest),
        ({"max_threads": -2}, "max_threads", InvalidRequest),
    ]
    for options, field, kind in cases:
        with pytest.raises(kind) as error:
            hashing.blake3(b"", **options)
        assert error.value.field == field
    for options, field in [((-1,), "length"), ((32, -1), "seek"), ((32, 2**64), "seek"), ((32, 2**64 - 16), "seek")]:
        with pytest.raises(InvalidRequest) as error:
            hashing.blake3().digest(*options)
        assert error.value.field == field


def test_objects_have_the_surface_of_their_peers() -> None:
    for ours, theirs in ((hashing.sha256(b"a"), hashlib.sha256(b"a")), (hashing.blake3(b"a"), pypi.blake3(b"a"))):
        for name in dir(theirs):
            assert name == "update_mmap" or hasattr(ours, name), name
        assert (ours.name, ours.digest_size, ours.block_size) == (theirs.name, theirs.digest_size, theirs.block_size)
        clone = ours.copy()
        ours.update(b"b")
        theirs.update(b"b")
        assert ours.digest() == theirs.digest() != clone.digest()
        clone.update(b"b")
        assert clone.hexdigest() == theirs.hexdigest()
        ours.reset()
        assert ours.digest() == hashing.new(ours.name).digest()
        with pytest.raises(TypeError):
            pickle.dumps(ours)
        with pytest.raises(TypeError):
            type(ours).__new__(type(ours))
    assert hashing.blake3.AUTO == pypi.blake3.AUTO
    assert hashing.blake3.key_size == 32
    assert hashing.blake3(b"a", max_threads=hashing.blake3.AUTO).digest() == pypi.blake3(b"a").digest()
    assert hashing.blake3(b"a", key=None, derive_key_context=None).digest() == pypi.blake3(b"a").digest()
    assert hashing.blake3().update(b"a").update(b"b").digest() == pypi.blake3(b"ab").digest()
    assert hashing.sha256(b"a", usedforsecurity=False).digest() == hashlib.sha256(b"a").digest()
    assert hashing.new("SHA256", b"a").digest() == hashlib.new("SHA256", b"a").digest()
    assert hashing.new("blake3", b"a", key=KEY).digest() == pypi.blake3(b"a", key=KEY).digest()


def test_a_thousand_threads_on_one_object_agree_with_one() -> None:
    piece = bytes(64)  # equal pieces: any order of them is one message
    hasher = {name: hashing.new(name) for name in ALGORITHMS}

    def work() -> None:
        for _ in range(100):
            for one in hasher.values():
                one.update(piece)

    threads = [threading.Thread(target=work) for _ in range(1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, one in hasher.items():
        assert one.digest() == ORACLE[name](piece * 100_000)


def test_long_updates_from_many_threads_are_whole() -> None:
    pieces = [bytes([i]) * 50_000 for i in range(4)]
    hasher = hashing.sha256()
    snapshots = []

    def work(piece: bytes) -> None:
        hasher.update(piece)
        snapshots.append(hasher.copy().digest())

    threads = [threading.Thread(target=work, args=(piece,)) for piece in pieces]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    import itertools

    orders = {hashlib.sha256(b"".join(order)).digest() for order in itertools.permutations(pieces)}
    assert hasher.digest() in orders
    assert len(snapshots) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_threads_work_again_in_a_forked_child() -> None:
    script = (
        "import os, sys\n"
        "from mmkey import hashing\n"
        "data = bytes(4_000_000)\n"
        "want = hashing.digest(data, 'blake3')\n"
        "assert hashing.digest(data, 'blake3', threads=3) == want\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    ok = hashing.digest(data, 'blake3', threads=3) == want\n"
        "    ok = ok and bytes(hashing.digest_many([data] * 5, 'blake3', threads=3)[4]) == want\n"
        "    os._exit(0 if ok else 1)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "assert hashing.digest(data, 'blake3', threads=3) == want\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
