"""The prefix index against a naive model: a dict of block keys, since two requests share a block if and only if they
share its key.

``MMKEY_INDEX_STEPS=1000000 pytest tests/python/test_index_model.py`` plays a million steps.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

import mmkey
from mmkey import HoldError, KeyEngine, RadixIndex, Request
from mmkey.errors import CapacityError

STEPS = int(os.environ.get("MMKEY_INDEX_STEPS", "10000"))
STEPS_A_RUN = 50
SETUPS = [(1, None), (1, 9), (3, None), (3, 9), (16, None), (16, 9)]  # block size, capacity

PICTURES = [mmkey.Content.from_bytes(b"a"), mmkey.Content.from_bytes(b"b")]


def make_request(block_size: int, length: int, changes: list[int], spans: list[tuple[int, int, int]]) -> Request:
    """Zeros with a few ones, and pictures laid over them: (gap before, length, picture) each."""
    ids = [0] * length
    for place in changes:
        if place < length:
            ids[place] = 1
    layout, order, items, filled = [], [], [], []
    at = 0
    for gap, most, picture in spans:
        at += gap
        size = min(most, length - at)
        if size <= 0:
            break
        layout.append((at, size))
        if picture < len(items):  # another range of an item that has one already
            order.append(picture)
            filled[picture] += size
        else:
            order.append(len(items))
            items.append(PICTURES[picture % 2])
            filled.append(size)
        at += size
    images = [
        mmkey.Image(content, original_size=(1, 1), resized_size=(1, 1), patch_grid=(1, 1), num_visual_tokens=tokens)
        for content, tokens in zip(items, filled, strict=True)
    ]
    return Request(ids, images, layout, order)


def requests(block_size: int) -> st.SearchStrategy[Request]:
    some = st.integers(0, 2 * block_size)
    return st.builds(
        make_request,
        st.just(block_size),
        st.integers(0, 6 * block_size),
        st.lists(st.integers(0, 6 * block_size), max_size=2),
        st.lists(st.tuples(some, st.integers(1, 3 * block_size), st.integers(0, 3)), max_size=3),
    )


@dataclass
class Block:
    slot: int
    parent: bytes | None
    used: int = 0
    holds: int = 0


@dataclass
class Hold:
    path: list[bytes]
    handle: Any = field(repr=False)


class IndexMachine(RuleBasedStateMachine):
    block_size: int
    capacity: int | None

    def __init__(self) -> None:
        super().__init__()
        size = self.block_size
        self.engines = [
            KeyEngine("C", block_size=size, model_id="m", config={}),
            KeyEngine("C", block_size=size, model_id="m", config={}, salt=b"s"),
            KeyEngine("B", block_size=size),
        ]
        self.index = RadixIndex(size, capacity=self.capacity, events=True, _hash_mask=3)  # most lookups collide
        self.blocks: dict[bytes, Block] = {}
        self.mirror: dict[bytes, int] = {}  # what the events tell
        self.holds: list[Hold] = []
        self.now = 0
        self.next_slot = 0

    # ---- the model

    def prepare(self, request: Request, engine: int) -> tuple[mmkey.Prepared, list[bytes]]:
        prepared = self.engines[engine].prepare(request)
        return prepared, [bytes(key) for key in self.engines[engine].block_keys(prepared)]

    def stored(self, path: list[bytes]) -> int:
        return next((i for i, key in enumerate(path) if key not in self.blocks), len(path))

    def use(self, path: list[bytes]) -> None:
        self.now += 1
        for key in path:
            self.blocks[key].used = self.now

    def take_hold(self, path: list[bytes], handle: Any) -> None:
        for key in path:
            self.blocks[key].holds += 1
        self.holds.append(Hold(path, handle))

    def evict_one(self, keep: list[bytes]) -> int | None:
        parents = {block.parent for block in self.blocks.values()}
        free = [k for k, b in self.blocks.items() if k not in parents and not b.holds and k not in keep]
        return self.blocks.pop(min(free, key=lambda k: self.blocks[k].used)).slot if free else None

    def slots(self, path: list[bytes]) -> list[int]:
        return [self.blocks[key].slot for key in path]

    def counts(self) -> dict[str, Any]:
        """All but the collisions, which any search may meet."""
        return {name: value for name, value in self.index.stats().items() if name != "collisions"}

    # ---- what happens

    @rule(data=st.data(), engine=st.integers(0, 2), hold=st.booleans(), again=st.booleans())
    def insert(self, data: st.DataObject, engine: int, hold: bool, again: bool) -> None:
        prepared, path = self.prepare(data.draw(requests(self.block_size)), engine)
        there = self.stored(path)
        given = self.slots(path[:there])
        duplicates = []
        if again and given:
            given[-1] = self.next_slot
            duplicates = [self.next_slot]
        given += range(self.next_slot + 1, self.next_slot + 1 + len(path) - there)
        self.next_slot += 1 + len(path) - there

        excess = max(0, len(self.blocks) + len(path) - there - (self.capacity or 10**9))
        room = sum(not block.holds for key, block in self.blocks.items() if key not in path)
        if excess > room:
            before = self.counts()
            with pytest.raises(CapacityError):
                self.index.insert(prepared, given, hold=hold)
            assert self.counts() == before
            return
        evicted = [self.evict_one(path) for _ in range(excess)]
        for i in range(there, len(path)):
            self.blocks[path[i]] = Block(given[i], path[i - 1] if i else None)
        self.use(path)

        inserted = self.index.insert(prepared, given, hold=hold)
        assert inserted.new == len(path) - there
        assert inserted.duplicates.tolist() == duplicates
        assert inserted.evicted.tolist() == evicted
        if hold:
            self.take_hold(path, inserted)

    @rule(data=st.data(), engine=st.integers(0, 2), hold=st.booleans(), whole=st.booleans())
    def match(self, data: st.DataObject, engine: int, hold: bool, whole: bool) -> None:
        request = data.draw(requests(self.block_size))
        limit = data.draw(st.none() | st.integers(0, 6 * self.block_size))
        prepared, path = self.prepare(request, engine)
        n = self.stored(path)
        if limit is not None:
            n = min(n, limit // self.block_size)
        if whole:
            extents = {}
            for item, (offset, length) in zip(
                request.order or range(len(request.layout or ())), request.layout or (), strict=False
            ):
                extents[item] = (extents.get(item, (offset, 0))[0], offset + length)
            while inside := [a for a, b in extents.values() if a < n * self.block_size < b]:
                n = min(inside) // self.block_size
        match = self.index.match(prepared, limit=limit, hold=hold, whole_items=whole)
        assert match.slots.tolist() == self.slots(path[:n])
        self.use(path[:n])
        if hold:
            self.take_hold(path[:n], match)

    @rule(data=st.data(), engine=st.integers(0, 2))
    def hold_later(self, data: st.DataObject, engine: int) -> None:
        prepared, path = self.prepare(data.draw(requests(self.block_size)), engine)
        match = self.index.match(prepared)
        self.use(path[: match.blocks])
        match.hold()
        self.take_hold(path[: match.blocks], match)

    @precondition(lambda self: self.holds)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        hold = self.holds.pop(data.draw(st.integers(0, len(self.holds) - 1)))
        for key in hold.path:
            self.blocks[key].holds -= 1
        self.use(hold.path)
        hold.handle.release()
        with pytest.raises(HoldError):
            hold.handle.release()

    @rule(count=st.integers(0, 6))
    def evict(self, count: int) -> None:
        expected = [slot for slot in (self.evict_one([]) for _ in range(count)) if slot is not None]
        assert self.index.evict(count).tolist() == expected

    @rule(data=st.data(), engine=st.integers(0, 2), from_block=st.integers(0, 6))
    def remove(self, data: st.DataObject, engine: int, from_block: int) -> None:
        prepared, path = self.prepare(data.draw(requests(self.block_size)), engine)
        gone: set[bytes] = set()
        if from_block < len(path) and path[from_block] in self.blocks:
            gone = {path[from_block]}
            while more := {k for k, b in self.blocks.items() if b.parent in gone} - gone:
                gone |= more
        if any(self.blocks[key].holds for key in gone):
            with pytest.raises(HoldError):
                self.index.remove(prepared, from_block)
            return
        assert sorted(self.index.remove(prepared, from_block).tolist()) == sorted(self.slots(list(gone)))
        for key in gone:
            del self.blocks[key]

    @precondition(lambda self: not any(hold.path for hold in self.holds))
    @rule(really=st.integers(0, 5))
    def clear(self, really: int) -> None:
        if really == 0:
            assert sorted(self.index.clear().tolist()) == sorted(b.slot for b in self.blocks.values())
            self.blocks.clear()

    # ---- what holds

    @invariant()
    def every_invariant_of_the_tree_holds(self) -> None:
        self.index.check()

    @invariant()
    def counts_are_exact(self) -> None:
        stats = self.index.stats()
        held = sum(block.holds > 0 for block in self.blocks.values())
        assert (stats["blocks"], stats["held"], stats["evictable"]) == (len(self.blocks), held, len(self.blocks) - held)
        assert stats["holds"] == sum(bool(hold.path) for hold in self.holds)
        assert len(self.index) == len(self.blocks)

    @invariant()
    def events_tell_what_is_stored(self) -> None:
        for event in self.index.events():
            keys = [bytes(key) for key in event.keys]
            if isinstance(event, mmkey.BlocksStored):
                assert event.parent_key in self.mirror or event.parent_key in {e.root for e in self.engines}
                assert len(event.token_ids) == len(keys) * self.block_size
                assert not set(keys) & set(self.mirror)
                self.mirror.update(zip(keys, event.slots.tolist(), strict=True))
            else:
                assert [self.mirror.pop(key) for key in keys] == event.slots.tolist()
        assert self.mirror == {key: block.slot for key, block in self.blocks.items()}

    def teardown(self) -> None:
        for hold in self.holds:
            hold.handle.release()
        self.index.clear()
        self.index.check()


@pytest.mark.parametrize(("block_size", "capacity"), SETUPS)
def test_the_index_does_what_a_dict_of_block_keys_does(block_size: int, capacity: int | None) -> None:
    machine = type("Machine", (IndexMachine,), {"block_size": block_size, "capacity": capacity})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=-(-STEPS // (STEPS_A_RUN * len(SETUPS))),
            stateful_step_count=STEPS_A_RUN,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
