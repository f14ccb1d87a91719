"""After a fork the child makes the same keys, whatever the parent had going.

What another thread of the parent was within at the fork is made anew from its source, or refused where it was half
changed; nothing is waited for that nobody will give back.
"""

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

# One thread is within a call that gave up the GIL for long; tried again where the fork came too early or too late.
WITHIN = """
import hashlib, os, sys, threading, time
import numpy as np
import mmkey

what = sys.argv[1]
data = bytes(400_000_000)
once = {name: mmkey.digest(data, name) for name in ("sha256", "blake3")}
engine = mmkey.KeyEngine("A")
long = engine.prepare(mmkey.Request(np.zeros(60_000_000, np.uint32))) if what == "chain" else None
RIGHT, WRONG, REFUSED = 0, 1, 3

def content():
    content = mmkey.Content.from_bytes(data)
    work = content if what == "content" else mmkey.Content.from_frames([content])
    return lambda: work.digest("sha256"), lambda: content.digest("sha256") == once["sha256"], ()

def chain():
    chain = engine.chain(mmkey.Request([]))
    uses = (lambda: len(chain), lambda: chain.keys, lambda: chain.extend([1]), chain.copy)
    return lambda: chain._core.extend_prepared(long), lambda: len(chain) in (0, 60_000_000), uses

def hasher():
    new = getattr(mmkey, what)
    hasher = new()
    uses = (hasher.digest, hasher.hexdigest, hasher.copy, hasher.reset, lambda: hasher.update(b"x"))
    return lambda: hasher.update(data), lambda: hasher.digest() in (new().digest(), once[what]), uses

def index():
    index = mmkey.RadixIndex(1)
    prepared = mmkey.KeyEngine("A", block_size=1).prepare(mmkey.Request(np.arange(1_000_000, dtype=np.uint32)))
    index.insert(prepared, np.arange(1_000_000))
    match = index.match(prepared, hold=True)
    uses = (
        lambda: index.match(prepared, limit=1), lambda: index.insert(prepared, np.arange(1_000_000)),
        lambda: index.evict(1), lambda: index.remove(prepared), index.clear, index.stats, index.check, match.release,
        lambda: match.__exit__(None, None, None), index.match(prepared).hold,
    )
    match_of[:] = [match]
    return lambda: [index.check() for _ in range(5)], lambda: len(index) == 1_000_000, uses

match_of = []

def in_child(right, uses):
    assert mmkey.sha256(b"abc").digest() == mmkey.digest(b"abc") == hashlib.sha256(b"abc").digest()
    try:
        return RIGHT if right() else WRONG
    except mmkey.InvalidRequest as error:
        assert error.field in ("chain", "hasher", "index") and "forked" in str(error)
    for use in uses:
        try:
            use()
        except mmkey.InvalidRequest:
            continue
        return WRONG
    return REFUSED

for _ in range(20):
    work, right, uses = {"content": content, "frames": content, "chain": chain, "index": index}.get(what, hasher)()
    worker = threading.Thread(target=work)
    worker.start()
    time.sleep(0.02)
    pid = os.fork()
    if pid == 0:
        try:
            code = in_child(right, uses)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            code = WRONG
        os._exit(code)
    within = worker.is_alive()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    worker.join()
    assert right()  # in the parent nothing is lost
    assert code in ((RIGHT, REFUSED) if uses else (RIGHT,)), code
    for match in match_of:
        match.release()
    if within and (code == REFUSED or not uses):
        print("equal")
        break
"""

READING = """
import io, os, threading
import mmkey

class Slow(io.RawIOBase):
    def readable(self):
        return True

    def readinto(self, buffer):
        reading.set()
        go_on.wait()
        return 0 if done else done.append(1) or 1

reading, go_on, done = threading.Event(), threading.Event(), []
content = mmkey.Content.from_file(Slow())
worker = threading.Thread(target=content.digest, args=("sha256",))
worker.start()
reading.wait()
pid = os.fork()
if pid == 0:
    try:
        content.digest("sha256")
    except mmkey.InvalidRequest as error:
        os._exit(0 if error.field == "content" else 2)
    os._exit(1)
_, status = os.waitpid(pid, 0)
assert status == 0, status
go_on.set()
worker.join()
assert content.digest("sha256")
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


@pytest.mark.parametrize("what", ["content", "frames", "chain", "index", "sha256", "blake3"])
def test_what_a_thread_is_within_at_a_fork_is_made_anew_in_the_child_or_refused(what):
    run(WITHIN, what)


def test_a_stream_that_is_being_read_at_a_fork_is_refused_in_the_child():
    run(READING)
