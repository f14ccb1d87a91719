"""The prefix index against its yardsticks, each pair in one run: ``python benchmarks/bench_index.py``.

The tree holds 10,000 prompts of 16 shared 1,024-token prefixes and 512 tokens of their own, block 16. Ours and the
yardstick are timed in turns, and each figure is the median of the turns. Where PyPI's ``ai-dynamo-runtime`` is
installed its RadixTree is measured too; where cmake and a compiler are, two threads of C++ as well. Prints a Markdown
table.
"""

# ruff: noqa: B023, T201 - what is timed is called within its turn of the loop; a table is what this prints

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import mmkey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

try:
    from dynamo.llm import RadixTree, compute_block_hash_for_seq
except ImportError:
    RadixTree = compute_block_hash_for_seq = None

BLOCK = 16
ENGINE = mmkey.KeyEngine("A", block_size=BLOCK)
RANDOM = np.random.default_rng(7)
ROOT = Path(__file__).resolve().parents[1]


def tokens(count: int) -> np.ndarray:
    return RANDOM.integers(0, 150_000, count, dtype=np.uint32)


def prepare(ids: Any) -> mmkey.Prepared:
    return ENGINE.prepare(mmkey.Request(ids))


class Cache:
    """An index with slots handed out in order."""

    def __init__(self) -> None:
        self.index = mmkey.RadixIndex(BLOCK)
        self.next_slot = 0

    def insert(self, prepared: mmkey.Prepared) -> None:
        there = self.index.match(prepared).slots
        fresh = prepared.num_tokens // BLOCK - len(there)
        slots = np.concatenate([there, np.arange(self.next_slot, self.next_slot + fresh)])
        self.next_slot += fresh
        self.index.insert(prepared, slots)


def prompts(count: int, own: int = 512) -> Iterator[np.ndarray]:
    prefixes = [tokens(1024) for _ in range(16)]
    for i in range(count):
        yield np.concatenate([prefixes[i % 16], tokens(own)])


def workload(count: int = 10_000) -> Cache:
    cache = Cache()
    for ids in prompts(count):
        cache.insert(prepare(ids))
    return cache


def seconds(call: Callable[[], object], loops: int) -> float:
    begun = time.perf_counter()
    for _ in range(loops):
        call()
    return (time.perf_counter() - begun) / loops


def in_turns(*calls: Callable[[], object], rounds: int = 25, budget: float = 0.01) -> list[float]:
    """The median seconds of each call, timed in turns, `budget` seconds a turn."""
    loops = []
    for call in calls:
        call()
        loops.append(max(1, int(budget / max(seconds(call, 3), 1e-7))))
    times = [[seconds(call, n) for call, n in zip(calls, loops, strict=True)] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def us(value: float) -> str:
    return f"{value * 1e6:,.2f} us"


class Table:
    def __init__(self) -> None:
        print("| | ours | yardstick | ratio | at least | aim |\n| --- | --- | --- | --- | --- | --- |")

    def row(self, name: str, ours: str, yardstick: str, ratio: str, least: str, aim: str) -> None:
        print(f"| {name} | {ours} | {yardstick} | {ratio} | {least} | {aim} |", flush=True)

    def faster(self, name: str, ours: float, theirs: float, who: str, least: str = "", aim: str = "") -> None:
        self.row(name, us(ours), f"{us(theirs)} {who}", f"{theirs / ours:.1f} x faster", least, aim)

    def times(self, name: str, ours: float, theirs: float, who: str, least: str = "", aim: str = "") -> None:
        self.row(name, us(ours), f"{us(theirs)} {who}", f"{ours / theirs:.2f} x its time", least, aim)


class Dynamo:
    """Dynamo's RadixTree, which is told of stored blocks by events and is asked by block hashes."""

    def __init__(self) -> None:
        self.tree = RadixTree()
        self.events = 0
        self.known: dict[tuple[int | None, int], int] = {}

    def insert(self, ids: np.ndarray) -> list[int]:
        hashes = compute_block_hash_for_seq(ids.tolist(), BLOCK)
        parent, fresh, above = None, [], None
        for local in hashes:
            known = self.known.get((parent, local))
            if known is None:
                known = self.known[parent, local] = len(self.known) + 1
                fresh.append({"block_hash": known, "tokens_hash": local})
            elif not fresh:
                above = known
            parent = known
        self.events += 1
        stored = {"stored": {"parent_hash": above, "blocks": fresh}}
        self.tree.apply_event(0, json.dumps({"event_id": self.events, "data": stored, "dp_rank": 0}).encode())
        return hashes

    def check(self, hashes: list[int]) -> None:
        assert list(self.tree.find_matches(hashes).scores.values()) == [len(hashes)]


def dict_match(keys: list[bytes], stored: dict[bytes, int]) -> list[int]:
    slots = []
    for key in keys:
        slot = stored.get(key)
        if slot is None:
            break
        slots.append(slot)
    return slots


def bench_match(table: Table, cache: Cache) -> None:
    long, short = tokens(131_072), tokens(8192)
    cache.insert(prepare(long))
    cache.insert(prepare(short))
    dynamo = None
    if RadixTree:
        dynamo = Dynamo()
        for ids in prompts(10_000):
            dynamo.insert(ids)
    for ids in (short, long):
        mine = prepare(ids.copy())
        name = f"match {len(ids):,}, all hit"
        match = cache.index.match
        assert match(mine).tokens == len(ids)
        keys = [bytes(key) for key in ENGINE.block_keys(mine)]
        stored = {bytes(key): i for i, key in enumerate(keys)}
        ours, theirs = in_turns(lambda: match(mine), lambda: dict_match(keys, stored))
        table.faster(name, ours, theirs, "dict of block keys, keys given")
        if dynamo:
            hashes = dynamo.insert(ids)
            dynamo.check(hashes)
            ours, theirs = in_turns(lambda: match(mine), lambda: dynamo.tree.find_matches(hashes))
            table.faster(name, ours, theirs, "Dynamo, hashes given", "6 x", "12 x")
    copy = long.copy()
    ours, theirs = in_turns(lambda: match(mine), lambda: np.array_equal(long, copy))
    table.times("match 131,072, all hit", ours, theirs, "numpy.array_equal", "5 x", "2.5 x")
    part, alone = prepare(np.concatenate([long[:1024], tokens(131_072 - 1024)])), prepare(long[:1024])
    ours, theirs = in_turns(lambda: match(part), lambda: match(alone))
    table.times("match 131,072, only 1,024 shared", ours, theirs, "the 1,024-token query", "1 x", "")
    if dynamo:
        asked, hashes = short.tolist(), compute_block_hash_for_seq(short.tolist(), BLOCK)
        ours, theirs = in_turns(
            lambda: match(prepare(asked)),
            lambda: dynamo.tree.find_matches(compute_block_hash_for_seq(asked, BLOCK)),
        )
        table.faster("prepare + match 8,192, from a list", ours, theirs, "Dynamo, hashing + find", "4 x", "8 x")


def bench_turns(table: Table, cache: Cache) -> None:
    one, turns = tokens(8192), tokens(8192)
    cache.insert(prepare(one))
    before = cache.index.stats()["nodes"]
    for end in range(256, 8193, 256):  # after each turn another conversation goes its own way
        cache.insert(prepare(np.concatenate([turns[:end], tokens(BLOCK)])))
    assert cache.index.stats()["nodes"] - before == 2 * 32 - 1
    a, b = prepare(turns.copy()), prepare(one.copy())
    assert cache.index.match(a).tokens == 8192
    ours, theirs = in_turns(lambda: cache.index.match(a), lambda: cache.index.match(b))
    table.times("match 8,192 down a 32-turn path", ours, theirs, "the one-node path", "2 x", "1.5 x")


def bench_insert(table: Table) -> None:
    cache, kept = Cache(), []
    slots = np.arange(8192)
    new = [prepare(tokens(131_072)) for _ in range(60)]
    arrays = [tokens(131_072) for _ in range(60)]
    ours, theirs = [], []
    for i in range(60):  # what is inserted stays, and so do the copies
        mine = slots + 8192 * i
        ours.append(seconds(lambda: cache.index.insert(new[i], mine), 1))
        theirs.append(seconds(lambda: kept.append(arrays[i].copy()), 1))
    table.times("insert 131,072 new", statistics.median(ours), statistics.median(theirs), ".copy()", "8 x", "4 x")
    ours, theirs = [], []
    for i in range(60):  # into memory that was used before
        cache.index.remove(new[i])
        mine = slots + 8192 * i
        ours.append(seconds(lambda: cache.index.insert(new[i], mine), 1))
        kept[i] = None
        theirs.append(seconds(lambda: kept.append(arrays[i].copy()), 1))
    a, b = statistics.median(ours), statistics.median(theirs)
    table.times("the same into memory used before", a, b, ".copy()", "8 x", "4 x")


def leaves(count: int) -> Cache:
    cache = Cache()
    for ids in prompts(count):
        cache.insert(prepare(ids))
    return cache


def bench_evict(table: Table) -> None:
    few, many = [], []
    for _ in range(5):
        small, large = leaves(100), leaves(10_000)
        for _ in range(20):
            many.append(seconds(lambda: large.index.evict(1), 100))
            few.append(seconds(lambda: small.index.evict(1), 100))
    table.times(
        "evict one block, 10,000 leaves",
        statistics.median(many),
        statistics.median(few),
        "100 leaves",
        "1.5 x",
        "1.1 x",
    )

    ours, theirs = [], []
    for _ in range(5):
        cache, plain = Cache(), DictCache()
        for ids in prompts(10_000):
            prepared = prepare(ids)
            cache.insert(prepared)
            plain.insert([bytes(key) for key in ENGINE.block_keys(prepared)])
        blocks = len(cache.index)
        ours.append(seconds(lambda: cache.index.evict(blocks), 1) / blocks / BLOCK)
        theirs.append(seconds(lambda: plain.evict(blocks), 1) / blocks / BLOCK)
    a, b = statistics.median(ours), statistics.median(theirs)
    table.row("bulk eviction", f"{1e-6 / a:,.0f} M tokens/s", f"{1e-6 / b:,.1f} M tokens/s, dict + OrderedDict",
              f"{b / a:.0f} x faster", "50 x", "150 x")  # fmt: skip


class DictCache:
    """The same rules in plain Python: a dict of block keys, and an OrderedDict in order of last use, a prompt's later
    blocks before its earlier ones, so that what comes first is a leaf.
    """

    def __init__(self) -> None:
        self.blocks: dict[bytes, list[Any]] = {}  # slot, parent's key, children
        self.lru: OrderedDict[bytes, None] = OrderedDict()  # of blocks that are not held

    def insert(self, keys: list[bytes]) -> None:
        parent = None
        for key in keys:
            if key not in self.blocks:
                self.blocks[key] = [len(self.blocks), parent, 0]
                if parent is not None:
                    self.blocks[parent][2] += 1
            parent = key
        for key in reversed(keys):
            self.lru[key] = None
            self.lru.move_to_end(key)

    def evict(self, count: int) -> list[int]:
        freed = []
        for _ in range(count):
            key, _ = self.lru.popitem(last=False)
            slot, parent, _ = self.blocks.pop(key)
            if parent is not None:
                self.blocks[parent][2] -= 1
            freed.append(slot)
        return freed


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def bench_memory() -> None:
    """In a process of its own: what it prints is what `main` shows."""
    cache = workload(100)
    cache.index.clear()
    gc.collect()
    before = resident()
    own = cache.index.stats()["bytes"]
    for ids in prompts(10_000):
        cache.insert(prepare(ids))
    held = len(cache.index) * BLOCK
    print((resident() - before) / held, (cache.index.stats()["bytes"] - own) / held)


def bench_size(table: Table, large: int) -> None:
    """As many queries, each with memory of its own, against a tree of 1,000 prompts and a large one."""
    count, few = 20_000, 1000
    small_tree, large_tree = Cache(), Cache()
    made, asked = [], []
    for i, ids in enumerate(prompts(large)):
        large_tree.insert(prepare(ids))
        if i % (large // count) == 0 and len(asked) < count:
            asked.append(prepare(ids.copy()))
            made.append(ids)
    for ids in made[:few]:
        small_tree.insert(prepare(ids))
    again = [prepare(made[i % few].copy()) for i in range(count)]
    random.Random(1).shuffle(asked)
    random.Random(1).shuffle(again)

    def ask(cache: Cache, queries: list[mmkey.Prepared]) -> None:
        match = cache.index.match
        for query in queries:
            match(query)

    times = in_turns(lambda: ask(large_tree, asked), lambda: ask(small_tree, again))
    ours, theirs = (seconds / count for seconds in times)
    table.times(f"match 1,536 at {large:,} prompts", ours, theirs, "at 1,000 prompts", "2 x", "1.5 x")


def bench_threads(table: Table) -> None:
    if not shutil.which("cmake"):
        return
    with tempfile.TemporaryDirectory() as build:
        options = ["-DMMKEY_BUILD_PYTHON=OFF", "-DMMKEY_BUILD_BENCHMARKS=ON", "-DSKBUILD_PROJECT_VERSION=0"]
        subprocess.run(["cmake", "-S", ROOT, "-B", build, *options], check=True, capture_output=True)
        make = ["cmake", "--build", build, "--target", "bench_index_threads", "-j2"]
        subprocess.run(make, check=True, capture_output=True)
        program = Path(build, "benchmarks", "cpp", "bench_index_threads")
        rate, ratio = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    one, two = float(rate) / 1e3, float(rate) * float(ratio) / 1e3
    table.row(
        "match 8,192 in two threads (C++)", f"{two:,.0f} k/s", f"{one:,.0f} k/s in one", f"{ratio} x", "1.6 x", ""
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=1_000_000, help="of the largest tree (%(default)s: 2.7 GB)")
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        bench_memory()
        return
    table = Table()
    cache = workload()
    bench_match(table, cache)
    bench_turns(table, cache)
    bench_insert(table)
    bench_evict(table)
    if Path("/proc/self/statm").exists():
        done = subprocess.run([sys.executable, __file__, "--memory"], check=True, capture_output=True, text=True)
        rss, own = map(float, done.stdout.split())
        table.row("memory, bytes a token", f"{own:.2f} asked for", "RSS", f"{rss:.2f}", "7", "5.5")
    bench_threads(table)
    bench_size(table, arguments.prompts)


if __name__ == "__main__":
    main()
