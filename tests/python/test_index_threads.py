"""The prefix index shared by Python threads, as an engine shares it: slots of one pool, taken and freed."""

from __future__ import annotations

import contextlib
import random
import threading

from mmkey import HoldError, KeyEngine, Prepared, RadixIndex, Request
from mmkey.errors import CapacityError

ENGINE = KeyEngine("A", block_size=16)
POOL = 6000
CAPACITY = 4500


class Pool:
    """Hands out block numbers, and notices one that comes back twice."""

    def __init__(self) -> None:
        self.free = set(range(POOL))
        self.lock = threading.Lock()

    def take(self, count: int) -> list[int]:
        with self.lock:
            return [self.free.pop() for _ in range(min(count, len(self.free)))]

    def give(self, slots: list[int]) -> None:
        with self.lock:
            assert not self.free & set(slots), "a slot was freed twice"
            self.free |= set(slots)


class Worker(threading.Thread):
    """Serves prompts as an engine does: match, take slots for the rest, insert, free what came back."""

    def __init__(self, index: RadixIndex, pool: Pool, seed: int) -> None:
        super().__init__()
        self.index = index
        self.pool = pool
        self.random = random.Random(seed)
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            for _ in range(400):
                self.step()
        except Exception as error:  # noqa: BLE001 - the main thread asks for it
            self.failure = error

    def step(self) -> None:
        # Some are long enough that the GIL is given up.
        ids = [0] * self.random.choice([40, 100, 600, 5000, 33_000])
        ids[self.random.randrange(len(ids))] = self.random.randrange(4)
        prepared = ENGINE.prepare(Request(ids))
        self.serve(prepared, len(ids) // 16)
        if self.random.randrange(10) == 0:
            with contextlib.suppress(HoldError):
                self.pool.give(self.index.remove(prepared, self.random.randrange(3)).tolist())
        if self.random.randrange(40) == 0:
            self.index.check()
        stats = self.index.stats()
        assert stats["blocks"] == stats["held"] + stats["evictable"] <= CAPACITY

    def serve(self, prepared: Prepared, blocks: int) -> None:
        with self.index.match(prepared, hold=True) as match:
            there = match.slots.tolist()
            taken = self.pool.take(blocks - len(there))
            inserted = None
            if len(there) + len(taken) == blocks:
                with contextlib.suppress(CapacityError):
                    inserted = self.index.insert(prepared, there + taken, hold=True)
            if inserted is None:
                self.pool.give(taken)
                self.pool.give(self.index.evict(50).tolist())
                return
            with inserted:
                self.pool.give(inserted.duplicates.tolist())
                self.pool.give(inserted.evicted.tolist())
                again = self.index.match(prepared)
                assert again.blocks == blocks
                assert again.slots[: len(there)].tolist() == there


def test_four_threads_lose_no_block_and_share_no_slot() -> None:
    index = RadixIndex(16, capacity=CAPACITY)
    pool = Pool()
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    workers = [Worker(index, pool, seed + number) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.failure for worker in workers] == [None] * 4
    stats = index.stats()
    assert (stats["held"], stats["holds"]) == (0, 0)
    assert len(pool.free) + len(index) == POOL
    index.check()
    pool.give(index.evict(POOL).tolist())
    assert len(pool.free) == POOL
