"""One engine, one content, one request, and many threads."""

from __future__ import annotations

import io
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import logical
import mmkey
import reference
from logical import Plain

THREADS = 8


@pytest.fixture(autouse=True)
def switching_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def at_once(work, count=THREADS):
    """The results of work(0), work(1), ..., all begun together."""
    barrier = threading.Barrier(count)

    def begin(n):
        barrier.wait()
        return work(n)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


@pytest.mark.parametrize("strategy", reference.STRATEGIES)
@pytest.mark.parametrize("threads", [1, 2])
def test_one_engine_serves_many_threads(strategy, threads):
    vectors = [v for v in logical.load_vectors() if v.plain.algorithm == "blake3"]
    engines = [v.plain.engine(strategy, threads=threads) for v in vectors]

    def work(n):
        found = []
        for i in range(len(vectors)):
            number = (i + n) % len(vectors)
            prepared = engines[number].prepare(vectors[number].plain.request())
            keys = engines[number].key(prepared), logical.blocks_of(engines[number], prepared, partial=True)
            found.append((number, keys))
        return found

    for found in at_once(work):
        for number, keys in found:
            assert keys == vectors[number].keys(strategy)


@pytest.mark.parametrize(
    "make",
    [
        lambda path: mmkey.Content.from_bytes(bytearray(path.read_bytes())),
        mmkey.Content.from_file,
        lambda path: mmkey.Content.of(io.BytesIO(path.read_bytes())),
        lambda path: mmkey.Content.from_frames([mmkey.Content.from_file(path)] * 3),
        lambda path: mmkey.Content.from_array(np.frombuffer(path.read_bytes(), np.uint8)[::3]),
    ],
    ids=["buffer", "file", "stream", "frames", "strided array"],
)
def test_a_content_hashed_by_many_threads_at_once_has_one_digest(make, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(np.random.default_rng(1).bytes(3_000_000))
    expected = make(path).digest("sha256")
    assert expected == twin_of(make(path), path)
    for _ in range(5):
        content = make(path)
        assert at_once(lambda n, c=content: c.digest("sha256")) == [expected] * THREADS


def twin_of(content, path):
    data = path.read_bytes()
    if content.kind == "frames":
        return reference.of_frames("sha256", [reference.of_bytes("sha256", data)] * 3)[2]
    if content.kind == "array":
        return reference.of_array("sha256", "u1", [1_000_000], data[::3])[2]
    return reference.digest("sha256", data)


def test_both_digests_of_one_content_may_be_asked_for_at_once(tmp_path):
    data = np.random.default_rng(2).bytes(2_000_000)
    expected = [reference.digest(reference.ALGORITHMS[n % 2], data) for n in range(THREADS)]
    for _ in range(5):
        content = mmkey.Content.from_bytes(data)
        assert at_once(lambda n, c=content: c.digest(reference.ALGORITHMS[n % 2])) == expected


def test_one_request_may_be_prepared_by_many_threads_at_once():
    for _ in range(5):
        fields = {"original_size": (56, 56), "resized_size": (28, 56), "patch_grid": (2, 4), "num_visual_tokens": 4}
        items = [logical.PlainItem(("bytes", bytes([n]) * 200_000), fields) for n in range(4)]
        plain = Plain([7] * 16 + [1, 2, 3], items, [(4 * n, 4) for n in range(4)], None, block_size=4)
        request, engine, expected = plain.request(), plain.engine(threads=2), plain.twin()
        assert at_once(lambda n, e=engine, r=request: e.key(e.prepare(r))) == [expected.request] * THREADS


def test_each_thread_may_feed_its_own_chain_of_one_engine():
    plain = Plain(list(range(3000)), block_size=16)
    engine = plain.engine()
    expected = plain.twin().blocks[: 3000 // 16]

    def work(n):
        chain = engine.chain(mmkey.Request([]))
        for start in range(0, 3000, 50 + n):
            chain.extend(plain.token_ids[start : start + 50 + n])
        return logical.rows(chain.keys)

    assert at_once(work) == [expected] * THREADS


def test_a_chain_fed_by_two_threads_at_once_is_refused_or_consistent():
    """Nobody should, but nothing may crash: what comes out is a chain of the same number of tokens."""
    engine = mmkey.KeyEngine("A", block_size=1)
    for _ in range(20):
        chain = engine.chain(mmkey.Request([]))

        def work(n, chain=chain):
            fed = 0
            for _ in range(200):
                try:
                    chain.extend([n, n, n])
                    fed += 3
                except mmkey.errors.MmkeyError:
                    pass
            return fed

        fed = at_once(work, 4)
        assert len(chain.keys) == sum(fed)
