"""The prefix index, case by case; expectations come from counting by hand."""

from __future__ import annotations

import gc
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmkey
from mmkey import HoldError, InvalidRequest, KeyEngine, RadixIndex, Request, UnsupportedType
from mmkey.errors import CapacityError

TEXT = KeyEngine("A", block_size=4)
FULL = KeyEngine("C", block_size=4, model_id="m", config={})


def image(number: int, tokens: int, grid: tuple[int, int] = (2, 2)) -> mmkey.Item:
    return mmkey.Image(
        mmkey.Content.from_bytes(b"picture %d" % number),
        original_size=(28, 28),
        resized_size=(28, 28),
        patch_grid=grid,
        num_visual_tokens=tokens,
    )


def prompt(
    ids: Any, items: Any = (), layout: Any = (), order: Any = None, *, engine: KeyEngine = FULL
) -> mmkey.Prepared:
    return engine.prepare(Request(ids, items, layout, order))


# ---------------------------------------------------------------- match


def test_what_was_inserted_is_matched_as_far_as_it_is_the_same() -> None:
    index = RadixIndex(4)
    inserted = index.insert(prompt(range(18)), [7, 8, 9, 10])
    assert (inserted.new, inserted.duplicates.tolist(), inserted.evicted.tolist()) == (4, [], [])
    match = index.match(prompt(range(18)))
    assert (match.blocks, match.tokens, match.slots.tolist()) == (4, 16, [7, 8, 9, 10])
    assert match.slots.dtype == np.int64
    assert index.match(prompt([*range(9), 99, *range(10, 18)])).slots.tolist() == [7, 8]
    assert index.match(prompt(range(1, 18))).blocks == 0
    assert len(index) == 4


def test_one_token_short_of_a_block_matches_nothing_and_leaves_the_tree_unchanged() -> None:
    index = RadixIndex(4)
    assert index.insert(prompt(range(3)), []).new == 0
    assert index.match(prompt(range(3))).blocks == 0
    assert (len(index), index.stats()["nodes"], index.stats()["roots"]) == (0, 0, 0)


def test_with_block_1_gone_blocks_2_and_3_are_not_found() -> None:
    index = RadixIndex(4)
    index.insert(prompt(range(12)), [1, 2, 3])
    assert index.remove(prompt(range(12))).tolist() == [3, 2, 1]
    assert index.match(prompt(range(12))).blocks == 0
    assert len(index) == 0


def test_a_limit_one_below_the_length_leaves_one_token_of_the_identical_prompt_to_compute() -> None:
    index = RadixIndex(4)
    index.insert(prompt(range(16)), range(4))
    assert index.match(prompt(range(16)), limit=15).tokens == 12
    assert index.match(prompt(range(16)), limit=16).tokens == 16
    assert index.match(prompt(range(17)), limit=16).tokens == 16
    assert index.match(prompt(range(16)), limit=0).tokens == 0


def test_whole_items_does_not_end_inside_an_item() -> None:
    index = RadixIndex(4)
    ids = [1, 2, 3, 4, 5, *[9] * 9, 6, 7]  # the picture stands at 5 to 13
    full = prompt(ids, [image(0, 9)], [(5, 9)])
    index.insert(full, range(4))
    assert [index.match(full, limit=n, whole_items=True).blocks for n in (4, 8, 12, 16)] == [1, 1, 1, 4]
    other_end = prompt([*ids[:14], 8, 8], [image(0, 9)], [(5, 9)])
    assert index.match(other_end).blocks == 3
    assert index.match(other_end, whole_items=True).blocks == 1


# ---------------------------------------------------------------- identity


@pytest.mark.parametrize("block_size", [1, 16])
def test_equal_ids_with_another_picture_match_up_to_the_picture(block_size: int) -> None:
    a = KeyEngine("A", block_size=block_size)
    b = KeyEngine("B", block_size=block_size)
    c = KeyEngine("C", block_size=block_size, model_id="m", config={})
    ids, layout = [*range(40), *[9] * 20, *range(20)], [(40, 20)]
    for engine, expected in ((a, 80), (b, 40), (c, 40)):
        index = RadixIndex(block_size)
        first = prompt(ids, [image(0, 20)], layout, engine=engine)
        index.insert(first, range(80 // block_size))
        same = index.match(prompt(ids, [image(0, 20)], layout, engine=engine))
        other = index.match(prompt(ids, [image(1, 20)], layout, engine=engine))
        assert (same.tokens, other.tokens) == (80, expected // block_size * block_size)


def test_67_pictures_under_one_prompt_are_67_prompts() -> None:
    index = RadixIndex(4)
    slot = iter(range(10_000))
    for number in range(67):
        request = prompt([1, 2, 3, 4, *[9] * 8], [image(number, 8)], [(4, 8)])
        match = index.match(request)
        assert match.blocks == (0 if number == 0 else 1)
        index.insert(request, [*match.slots, *(next(slot) for _ in range(3 - match.blocks))])
    assert len(index) == 1 + 2 * 67
    assert index.stats()["collisions"] == 0


def test_a_text_only_request_with_the_ids_of_a_media_request_matches_none_of_its_media() -> None:
    index = RadixIndex(4)
    index.insert(prompt([9] * 8, [image(0, 8)], [(0, 8)]), [0, 1])
    assert index.match(prompt([9] * 8)).blocks == 0


def test_equal_count_and_another_grid_is_a_miss() -> None:
    index = RadixIndex(4)
    index.insert(prompt([9] * 4, [image(0, 4, (8, 2))], [(0, 4)]), [0])
    assert index.match(prompt([9] * 4, [image(0, 4, (2, 8))], [(0, 4)])).blocks == 0
    assert index.match(prompt([9] * 4, [image(0, 4, (8, 2))], [(0, 4)])).blocks == 1


def test_another_part_of_the_same_picture_is_a_miss() -> None:
    index = RadixIndex(4)
    ids = [9] * 8
    index.insert(prompt(ids, [image(0, 8)], [(0, 8)]), [0, 1])
    assert index.match(prompt(ids[:4], [image(0, 4)], [(0, 4)])).blocks == 0
    # One picture in two ranges, and two pictures that are equal, fill the same positions otherwise.
    two_ranges = prompt([9, 9, 1, 1, 9, 9, 1, 1], [image(0, 4)], [(0, 2), (4, 2)], [0, 0])
    two_items = prompt([9, 9, 1, 1, 9, 9, 1, 1], [image(0, 2), image(0, 2)], [(0, 2), (4, 2)])
    index.insert(two_ranges, [2, 3])
    assert index.match(two_items).blocks == 0


def test_three_times_the_same_picture_is_three_blocks() -> None:
    index = RadixIndex(4)
    ids, items, layout = [9] * 12, [image(0, 4)] * 3, [(0, 4), (4, 4), (8, 4)]
    assert index.insert(prompt(ids, items, layout), [0, 1, 2]).new == 3
    assert index.match(prompt(ids, items, layout)).slots.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "other",
    [
        {"salt": b"s2"},
        {"adapter": "X", "salt": b"s1"},
        {"adapter": ("X", "r1"), "salt": b"s1"},
        {"revision": "r2", "salt": b"s1"},
        {"config": {"rope": 1}, "salt": b"s1"},
        {"model_id": "n", "salt": b"s1"},
        {"algorithm": "blake3", "salt": b"s1"},
    ],
)
def test_requests_of_engines_that_differ_share_no_block(other: dict[str, Any]) -> None:
    index = RadixIndex(4)
    base = {"block_size": 4, "model_id": "m", "config": {}, "salt": b"s1"}
    index.insert(prompt(range(8), engine=KeyEngine("C", **base)), [0, 1])
    assert index.match(prompt(range(8), engine=KeyEngine("C", **base))).blocks == 2
    assert index.match(prompt(range(8), engine=KeyEngine("C", **{**base, **other}))).blocks == 0
    assert index.match(prompt(range(8), engine=TEXT)).blocks == 0


def test_a_forced_collision_of_the_short_hash_is_a_miss_and_a_count_never_a_hit() -> None:
    index = RadixIndex(4, _hash_mask=0)
    for i in range(30):
        request = prompt(range(100 * i, 100 * i + 8))
        assert index.match(request).blocks == 0
        index.insert(request, [2 * i, 2 * i + 1])
    assert index.stats()["collisions"] >= 29
    for i in range(30):
        assert index.match(prompt(range(100 * i, 100 * i + 8))).slots.tolist() == [2 * i, 2 * i + 1]
    index.check()


# ---------------------------------------------------------------- insert, evict, remove


def test_blocks_stored_already_are_reported_and_stay_in_their_slots() -> None:
    index = RadixIndex(4)
    index.insert(prompt(range(12)), [0, 1, 2])
    inserted = index.insert(prompt(range(16)), [0, 11, 12, 13])
    assert (inserted.new, inserted.duplicates.tolist()) == (1, [11, 12])
    assert index.match(prompt(range(16))).slots.tolist() == [0, 1, 2, 13]


def test_least_recently_used_goes_first_from_the_leaves() -> None:
    engine = KeyEngine("A", block_size=1)
    index = RadixIndex(1)
    index.insert(prompt([1, 2, 3], engine=engine), [1, 2, 3])
    index.insert(prompt([1, 4, 5], engine=engine), [1, 4, 5])
    index.match(prompt([1, 2], engine=engine))
    assert index.evict(1).tolist() == [3]
    assert index.evict(10).tolist() == [5, 4, 2, 1]
    assert index.evict(1).tolist() == []


def test_at_capacity_insert_evicts_what_it_needs_or_changes_nothing() -> None:
    engine = KeyEngine("A", block_size=1)
    index = RadixIndex(1, capacity=3)
    index.insert(prompt([1, 2, 3], engine=engine), [1, 2, 3])
    assert index.insert(prompt([1, 4], engine=engine), [1, 4]).evicted.tolist() == [3]
    with index.match(prompt([1, 2], engine=engine), hold=True):
        before = index.stats()
        with pytest.raises(CapacityError, match="no room for 2 blocks: of a capacity of 3, 3 are stored and 1 can"):
            index.insert(prompt([7, 8], engine=engine), [7, 8])
        assert index.stats() == before
    assert index.insert(prompt([7, 8], engine=engine), [7, 8]).evicted.tolist() == [4, 2]


def test_removing_from_a_block_on_takes_what_follows_it_in_any_prompt() -> None:
    engine = KeyEngine("A", block_size=1)
    index = RadixIndex(1)
    index.insert(prompt([1, 2, 3], engine=engine), [1, 2, 3])
    index.insert(prompt([1, 2, 4], engine=engine), [1, 2, 4])
    assert sorted(index.remove(prompt([1, 2, 9], engine=engine), 1).tolist()) == [2, 3, 4]
    assert index.remove(prompt([1, 2, 9], engine=engine), 1).tolist() == []
    assert index.match(prompt([1, 2, 3], engine=engine)).slots.tolist() == [1]
    assert index.clear().tolist() == [1]
    assert index.stats()["roots"] == 0


# ---------------------------------------------------------------- holds


def test_what_is_held_stays_until_it_is_released_once() -> None:
    index = RadixIndex(4)
    index.insert(prompt(range(12)), [0, 1, 2])
    match = index.match(prompt(range(8)), hold=True)
    assert match.held
    assert (index.stats()["held"], index.stats()["evictable"]) == (2, 1)
    assert index.evict(9).tolist() == [2]
    for refused in (index.clear, lambda: index.remove(prompt(range(12)), 1)):
        with pytest.raises(HoldError):
            refused()
    match.release()
    assert not match.held
    with pytest.raises(HoldError, match="nothing to release"):
        match.release()
    assert index.evict(9).tolist() == [1, 0]


def test_a_match_is_a_context_manager_that_releases() -> None:
    index = RadixIndex(4)
    index.insert(prompt(range(8)), [0, 1])
    with index.match(prompt(range(8)), hold=True) as match:
        assert match.slots.tolist() == [0, 1]
        assert index.stats()["holds"] == 1
    assert index.stats()["holds"] == 0
    with index.match(prompt(range(8)), hold=True) as match:
        match.release()
    with index.match(prompt(range(8))) as match:
        assert not match.held
    with pytest.raises(ZeroDivisionError), index.match(prompt(range(8)), hold=True):
        raise ZeroDivisionError
    assert index.stats()["held"] == 0


def test_insert_holds_in_the_same_step() -> None:
    index = RadixIndex(4, capacity=2)
    with index.insert(prompt(range(8)), [0, 1], hold=True) as inserted:
        assert inserted.held
        assert index.evict(2).tolist() == []
    assert index.evict(2).tolist() == [1, 0]


def test_a_stale_match_cannot_be_held_nor_a_held_one_again() -> None:
    index = RadixIndex(4)
    index.insert(prompt(range(8)), [0, 1])
    match = index.match(prompt(range(8)))
    match.hold()
    with pytest.raises(HoldError, match="held already"):
        match.hold()
    match.release()
    index.evict(1)
    with pytest.raises(HoldError, match="stale"):
        match.hold()
    index.insert(prompt(range(8)), [0, 5])  # another slot: what was matched is gone all the same
    with pytest.raises(HoldError, match="stale"):
        match.hold()


def test_a_held_match_that_is_dropped_keeps_its_blocks_and_warns() -> None:
    index = RadixIndex(4)
    index.insert(prompt(range(8)), [0, 1])
    match = index.match(prompt(range(8)), hold=True)
    with pytest.warns(ResourceWarning, match="dropped without release"):
        del match
    assert index.evict(2).tolist() == []
    slots = index.match(prompt(range(8)), hold=True).slots  # an array keeps its match, and so its hold, alive
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gc.collect()
    assert not caught
    with pytest.warns(ResourceWarning):
        del slots


# ---------------------------------------------------------------- events


def test_events_tell_what_was_stored_and_removed_in_order_with_keys() -> None:
    index = RadixIndex(4, capacity=3, events=True)
    items, layout = [image(0, 5)], [(2, 5)]
    first, second = (
        prompt([1, 1, *[9] * 5, *range(5)], items, layout),
        prompt([1, 1, *[9] * 5, 7, 7, 7, 7, 7], items, layout),
    )
    index.insert(first, [0, 1, 2])
    index.insert(second, [0, 3, 4])
    index.remove(second, 1)
    stored, evicted, stored_again, removed = index.events()
    keys, keys_again = FULL.block_keys(first), FULL.block_keys(second)
    assert isinstance(stored, mmkey.BlocksStored)
    assert np.array_equal(stored.keys, keys)
    assert (stored.parent_key, stored.slots.tolist()) == (FULL.root, [0, 1, 2])
    assert stored.token_ids.tolist() == [1, 1, *[9] * 5, *range(5)]
    assert isinstance(evicted, mmkey.BlocksRemoved)
    assert np.array_equal(evicted.keys, keys[[2, 1]])
    assert evicted.slots.tolist() == [2, 1]
    assert isinstance(stored_again, mmkey.BlocksStored)
    assert stored_again.parent_key == bytes(keys[0])
    assert np.array_equal(stored_again.keys, keys_again[1:])
    assert stored_again.token_ids.tolist() == [9, 9, 9, 7, 7, 7, 7, 7]
    assert isinstance(removed, mmkey.BlocksRemoved)
    assert removed.slots.tolist() == [4, 3]
    assert index.events() == []


def test_no_events_are_recorded_unless_asked_for() -> None:
    index = RadixIndex(4)
    index.insert(prompt(range(8)), [0, 1])
    index.clear()
    assert index.events() == []


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("block_size", [0, -1, 2**64])
def test_a_block_size_below_1_is_refused(block_size: int) -> None:
    with pytest.raises(InvalidRequest) as caught:
        RadixIndex(block_size)
    assert caught.value.field == "block_size"


@pytest.mark.parametrize("value", [True, 1.0, "16", None])
def test_a_block_size_that_is_no_integer_is_refused(value: object) -> None:
    with pytest.raises(UnsupportedType) as caught:
        RadixIndex(value)  # type: ignore[arg-type]
    assert caught.value.field == "block_size"


@pytest.mark.parametrize("capacity", [0, -5])
def test_a_capacity_below_1_is_refused(capacity: int) -> None:
    with pytest.raises(InvalidRequest) as caught:
        RadixIndex(capacity=capacity)
    assert caught.value.field == "capacity"


@pytest.mark.parametrize(
    ("slots", "field"),
    [
        ([0], "slots"),
        ([0, 1, 2], "slots"),
        ([0, -1], "slots[1]"),
        ([5, 5], "slots[1]"),
        ([0, 2**63], "slots[1]"),
        ([40, 0], "slots[0]"),
        (np.array([[0, 1]]), "slots[0]"),
        ([0, 1.0], "slots[1]"),
        ([True, 0], "slots[0]"),
        (np.array([0.0, 1.0]), "slots[0]"),
        (7, "slots"),
        (None, "slots"),
        ("01", "slots"),
        (b"01", "slots"),
    ],
)
def test_bad_slots_are_refused_by_name_and_change_nothing(slots: Any, field: str) -> None:
    index = RadixIndex(4)
    index.insert(prompt(range(50, 54)), [40])
    with pytest.raises((InvalidRequest, UnsupportedType)) as caught:
        index.insert(prompt(range(8)), slots)
    assert caught.value.field == field
    assert len(index) == 1
    index.check()


@pytest.mark.parametrize(
    "slots",
    [
        (3, 2**62),
        np.array([3, 2**62]),
        np.array([3, 0, 2**62, 0])[::2],
        np.array([3, 2**62], dtype=np.uint64),
        np.array([3, 2**62], dtype=">i8"),
        [np.int64(3), 2**62],
        memoryview(np.array([3, 2**62])),
    ],
)
def test_slots_are_read_from_any_integer_sequence(slots: Any) -> None:
    index = RadixIndex(4)
    index.insert(prompt(range(8)), slots)
    assert index.match(prompt(range(8))).slots.tolist() == [3, 2**62]


def test_a_request_that_was_prepared_for_other_blocks_is_refused() -> None:
    index = RadixIndex(16)
    for call in (index.match, lambda p: index.insert(p, []), index.remove):
        with pytest.raises(InvalidRequest) as caught:
            call(prompt(range(8)))
        assert caught.value.field == "block_size"


def test_media_without_a_layout_stand_in_no_block() -> None:
    engine = KeyEngine("B", block_size=4)
    unknown = engine.prepare(Request(range(8), [image(0, 4)], None))
    with pytest.raises(InvalidRequest) as caught:
        RadixIndex(4).match(unknown)
    assert caught.value.field == "layout"


def test_what_was_not_prepared_is_refused() -> None:
    for bad in (Request(range(8)), [1, 2], None):
        with pytest.raises(UnsupportedType) as caught:
            RadixIndex(4).match(bad)  # type: ignore[arg-type]
        assert caught.value.field == "prepared"


@pytest.mark.parametrize(("name", "call"), [("limit", lambda i, v: i.match(prompt([]), limit=v)),
                                            ("blocks", lambda i, v: i.evict(v)),
                                            ("from_block", lambda i, v: i.remove(prompt([]), v))])  # fmt: skip
def test_counts_are_integers_of_at_least_0(name: str, call: Any) -> None:
    for value, error in ((-1, InvalidRequest), (1.5, UnsupportedType), (True, UnsupportedType)):
        with pytest.raises(error) as caught:
            call(RadixIndex(4), value)
        assert caught.value.field == name


# ---------------------------------------------------------------- memory


STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not STATM.exists(), reason="reads the resident size from Linux's /proc")
def test_a_million_blocks_added_and_removed_ten_times_leave_no_memory_behind() -> None:
    engine = KeyEngine("A", block_size=4)
    index = RadixIndex(4)
    empty = index.stats()["bytes"]
    random = np.random.default_rng(5)
    sizes = []
    for turn in range(10):
        prompts = []
        for i in range(1000):
            ids = random.integers(0, 1000, 4000, dtype=np.uint32)
            ids[: 400 * (i % 5)] = i % 5  # a fifth each share nothing, 100, 200, 300 and 400 blocks
            prompts.append(prompt(ids, engine=engine))
            match = index.match(prompts[-1])
            index.insert(prompts[-1], [*match.slots, *range(1000 * i + match.blocks, 1000 * i + 1000)])
        assert index.stats()["blocks"] > 800_000
        if turn % 3 == 0:
            index.clear()
        elif turn % 3 == 1:
            while len(index):
                index.evict(10_007)
        else:
            for request in prompts:
                index.remove(request)
        assert len(index) == 0
        assert index.stats()["bytes"] <= empty + 4096
        sizes.append(resident_bytes())
    assert max(sizes[2:]) <= 1.1 * sizes[1]
