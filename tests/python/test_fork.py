"""After a fork the child makes the same keys, whatever the parent had going."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# In a process of its own, since pytest's may have threads, which a fork does not take along.
SCRIPT = """
import os, sys, threading
import numpy as np
import logical, mmkey

threads = int(sys.argv[1])
vectors = logical.load_vectors()[::4]

def all_keys(engines):
    return [[v.plain.twin("C") == tuple_keys(e, v)] for e, v in zip(engines, vectors)]

def tuple_keys(engine, vector):
    prepared = engine.prepare(vector.plain.request())
    return engine.key(prepared), logical.blocks_of(engine, prepared, partial=True)

engines = [v.plain.engine("C", threads=threads) for v in vectors]
assert all(same for [same] in all_keys(engines))
big = np.zeros((64, 100_000), np.uint8)
before = {a: mmkey.digest_many(list(big), a, threads=threads).tobytes() for a in ("sha256", "blake3")}
whole = {a: mmkey.digest(big.reshape(-1), a, threads=threads) for a in ("sha256", "blake3")}
chain = engines[0].chain(mmkey.Request([]))
chain.extend(range_ids := list(range(100)))

for child in range(3):
    pid = os.fork()
    if pid == 0:
        ok = all(same for [same] in all_keys(engines))
        for a in ("sha256", "blake3"):
            ok = ok and mmkey.digest_many(list(big), a, threads=threads).tobytes() == before[a]
            ok = ok and mmkey.digest(big.reshape(-1), a, threads=threads) == whole[a]
        chain.extend(range_ids)
        other = engines[0].chain(mmkey.Request(range_ids + range_ids))
        ok = ok and np.array_equal(chain.keys, other.keys)
        os._exit(0 if ok else 1)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status
assert all(same for [same] in all_keys(engines))
print("equal")
"""

WHILE_BUSY = """
import os, threading, sys
import mmkey
data = bytes(50_000_000)
expected = mmkey.digest(b"x" * 100_000)
stop = threading.Event()
content = mmkey.Content.from_bytes(data)

def busy():
    while not stop.is_set():
        mmkey.digest(data[:5_000_000])
        mmkey.Content.from_bytes(data[:1_000_000]).digest("blake3")

workers = [threading.Thread(target=busy, daemon=True) for _ in range(2)]
for worker in workers: worker.start()
for _ in range(10):
    pid = os.fork()
    if pid == 0:
        fresh = mmkey.KeyEngine("A").key(mmkey.Request([1, 2, 3])) == mmkey.text_only_cache_key([1, 2, 3])
        os._exit(0 if fresh and mmkey.digest(b"x" * 100_000) == expected else 1)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status
stop.set()
for worker in workers: worker.join()
print("equal")
"""


def run(script: str, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, *arguments],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "equal\n"), done.stderr


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_forked_child_gives_the_same_keys(threads):
    run(SCRIPT, threads)


def test_a_child_forked_while_threads_are_hashing_gives_the_same_keys():
    run(WHILE_BUSY)
