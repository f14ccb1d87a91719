"""The two caches that a request may meet: a table of whole requests, and the prefix index.

Each remembers, beside what it stores, whose KV that is, as numbers of the judge's. It looks up by keys alone; the
numbers only say afterwards what was found, and what was stored all the time under another key.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Protocol

import numpy as np

import mmkey
from mmkey.study.verdicts import FALSE_HIT, MISSED_REUSE, SAFE_MISS, TRUE_HIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mmkey.study.identity import Identity
    from mmkey.study.keys import KeyedRequest


@dataclass(frozen=True)
class Configuration:
    """One cache: a strategy's keys, tokens a block, and the most blocks stored (None: no bound)."""

    strategy: str
    algorithm: str = "sha256"
    block_size: int = 12
    capacity: int | None = None


@dataclass(frozen=True)
class Lookup:
    """One lookup, judged by both standards.

    ``by_image`` is true_hit, false_hit or safe_miss; ``by_full`` also missed_reuse. Blocks and tokens: all that could
    be looked up, those that were found (right or wrong), of these the wrong ones by full identity, and those that were
    not found though their KV was stored, under another key. Times are nanoseconds.
    """

    by_image: str
    by_full: str
    blocks: int
    tokens: int
    found_blocks: int
    found_tokens: int
    wrong_blocks: int
    wrong_tokens: int
    missed_blocks: int
    missed_tokens: int
    unsafe: tuple[str, ...] = ()
    hashing: int = 0
    matching: int = 0


class Cache(Protocol):
    """A cache at one granularity."""

    def look_up(self, request: KeyedRequest, identity: Identity) -> Lookup:
        """What the cache says to a request, judged."""

    def store(self, request: KeyedRequest, identity: Identity) -> int:
        """Stores a request, evicting what was used least recently; the nanoseconds spent in the table or the index."""


class RequestCache:
    """One key a request; the first to come stays. ``capacity`` counts the blocks of the expanded prompts."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._stored: OrderedDict[bytes, tuple[Identity, int]] = OrderedDict()
        self._present: Counter[int] = Counter()
        self._blocks = 0

    def _key(self, request: KeyedRequest) -> tuple[bytes, tuple[str, ...], int]:
        c = self._configuration
        return request.request_key(c.strategy, c.algorithm, c.block_size)

    def look_up(self, request: KeyedRequest, identity: Identity) -> Lookup:
        """As :meth:`Cache.look_up`. Blocks are the expanded prompt's, the last one counted though it is not full."""
        key, unsafe, hashing = self._key(request)
        begun = perf_counter_ns()
        found = self._stored.get(key)
        if found is not None:
            self._stored.move_to_end(key)
        matching = perf_counter_ns() - begun
        tokens = len(request.logical.token_ids)
        blocks = -(-tokens // self._configuration.block_size)
        if found is None:
            missed = self._present[identity.full] > 0
            by_image, by_full, counts = SAFE_MISS, MISSED_REUSE if missed else SAFE_MISS, (0, 0, 0, 0)
            not_found = (blocks, tokens) if missed else (0, 0)
        else:
            right, not_found = found[0].full == identity.full, (0, 0)
            by_image = TRUE_HIT if found[0].images == identity.images else FALSE_HIT
            by_full = TRUE_HIT if right else FALSE_HIT
            counts = (blocks, tokens, 0, 0) if right else (blocks, tokens, blocks, tokens)
        return Lookup(by_image, by_full, blocks, tokens, *counts, *not_found, unsafe, hashing, matching)

    def store(self, request: KeyedRequest, identity: Identity) -> int:
        """As :meth:`Cache.store`. A request that is larger than the whole cache is not stored."""
        key, _, _ = self._key(request)
        blocks = -(-len(request.logical.token_ids) // self._configuration.block_size)
        begun = perf_counter_ns()
        if key in self._stored:
            self._stored.move_to_end(key)
            return perf_counter_ns() - begun
        capacity = self._configuration.capacity
        if capacity is not None:
            if blocks > capacity:
                return perf_counter_ns() - begun
            while self._blocks + blocks > capacity:
                _, (gone, freed) = self._stored.popitem(last=False)
                self._present[gone.full] -= 1
                self._blocks -= freed
        self._stored[key] = (identity, blocks)
        self._present[identity.full] += 1
        self._blocks += blocks
        return perf_counter_ns() - begun


class PrefixCache:
    """Full blocks in a :class:`mmkey.RadixIndex`, one slot each; a slot remembers whose KV it holds."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._index = mmkey.RadixIndex(configuration.block_size, capacity=configuration.capacity)
        self._full = np.empty(0, np.int64)  # by slot: the judge's numbers of the prefix that ends with its block
        self._images = np.empty(0, np.int64)
        self._present = np.zeros(0, np.int64)  # by number: how many slots hold that prefix
        self._free: list[int] = []
        self._slots = 0
        # the last lookup, for the store that follows it; no other store may come between
        self._matched: tuple[mmkey.Prepared | None, NDArray[np.int64]] = (None, np.empty(0, np.int64))

    def _prepared(self, request: KeyedRequest) -> tuple[mmkey.Prepared, int]:
        c = self._configuration
        return request.prepared(c.strategy, c.algorithm, c.block_size)

    def look_up(self, request: KeyedRequest, identity: Identity) -> Lookup:
        """As :meth:`Cache.look_up`. The longest stored prefix in full blocks, each judged by what its KV depends on."""
        prepared, hashing = self._prepared(request)
        begun = perf_counter_ns()
        slots = self._index.match(prepared).slots
        matching = perf_counter_ns() - begun
        self._matched = (prepared, slots)
        size = self._configuration.block_size
        full, images = identity.blocks[size]
        found, blocks = len(slots), len(full)
        wrong = int(np.count_nonzero(self._full[slots] != full[:found])) if found else 0
        missed = 0
        if found < blocks:
            self._present = _grown(self._present, int(full.max()) + 1)
            stored = self._present[full[found:]] > 0
            missed = int(stored.argmin()) if not stored.all() else len(stored)
        if found:
            same_images = bool((self._images[slots] == images[:found]).all())
            by_image = TRUE_HIT if same_images else FALSE_HIT
            by_full = FALSE_HIT if wrong else TRUE_HIT
        else:
            by_image, by_full = SAFE_MISS, MISSED_REUSE if missed else SAFE_MISS
        counts = (blocks, blocks * size, found, found * size, wrong, wrong * size, missed, missed * size)
        return Lookup(by_image, by_full, *counts, tuple(prepared.unsafe), hashing, matching)

    def store(self, request: KeyedRequest, identity: Identity) -> int:
        """As :meth:`Cache.store`. A request of more blocks than the whole cache is not stored."""
        prepared, _ = self._prepared(request)
        full, images = identity.blocks[self._configuration.block_size]
        blocks, capacity = len(full), self._configuration.capacity
        if capacity is not None and blocks > capacity:
            return 0
        begun = perf_counter_ns()
        looked_up, there = self._matched
        if looked_up is not prepared:
            there = self._index.match(prepared).slots
        fresh = self._take(blocks - len(there))
        inserted = self._index.insert(prepared, np.concatenate([there, fresh]))
        spent = perf_counter_ns() - begun
        self._matched = (None, there)
        if len(inserted.evicted):
            np.subtract.at(self._present, self._full[inserted.evicted], 1)
            self._free += inserted.evicted.tolist()
        if len(fresh):
            new = full[len(there) :]
            self._full, self._images = _grown(self._full, self._slots), _grown(self._images, self._slots)
            self._full[fresh], self._images[fresh] = new, images[len(there) :]
            self._present = _grown(self._present, int(new.max()) + 1)
            np.add.at(self._present, new, 1)
        return spent

    def _take(self, count: int) -> NDArray[np.int64]:
        """Slots that no block is stored in: freed ones first."""
        reused = [self._free.pop() for _ in range(min(count, len(self._free)))]
        begin, self._slots = self._slots, self._slots + count - len(reused)
        fresh = np.arange(begin, self._slots, dtype=np.int64)
        return np.concatenate([np.array(reused, np.int64), fresh]) if reused else fresh


def _grown(array: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """An array of at least that length, zeros at its end; it doubles, so that growing is cheap."""
    if len(array) >= length:
        return array
    return np.concatenate([array, np.zeros(max(length, 2 * len(array)) - len(array), np.int64)])
