"""The simulator counts what a naive one counts, and its numbers of the judge are equal where the judge says so."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mmkey
from mmkey.study import identity
from mmkey.study.caches import Configuration
from mmkey.study.counts import DEFINITIONS
from mmkey.study.identity import Identities
from mmkey.study.judge import compare
from mmkey.study.keys import KeyMaker
from mmkey.study.logical import Digested, LogicalItem, LogicalRequest, Scope
from mmkey.study.simulator import Simulator
from mmkey.study.stream import Stream
from mmkey.study.verdicts import GRANULARITIES

SCOPE = Scope(model_id="m", config={"kv_dtype": "float16"})


def item(shows: int, file: int = 0, tokens: int = 4, **changes: Any) -> LogicalItem:
    fields: dict[str, Any] = {
        "modality": "image",
        "media": Digested(shows, bytes([shows, file]) * 16),
        "original_size": (10, 20),
        "resized_size": (28, 28),
        "patch_grid": (1, 2, 2),
        "num_visual_tokens": tokens,
        "processing": {"patch_size": 14},
    }
    return LogicalItem(**(fields | changes))


def request(*items: LogicalItem, text: tuple[int, ...] = (1, 2, 3, 4), scope: Scope = SCOPE) -> LogicalRequest:
    return LogicalRequest.pictures_first(scope, items, text, {"image": 99})


@st.composite
def requests(draw: st.DrawFn) -> LogicalRequest:
    """Small requests of few values, so that two of them often agree for a while; one picture has two files."""
    few = st.integers(0, 1)
    token_ids: list[int] = []
    text_ids: list[int] = []
    layout, items = [], []
    for _ in range(draw(st.integers(0, 2))):
        text = [draw(few) for _ in range(draw(st.integers(0, 3)))]
        token_ids += text
        text_ids += text
        length = draw(st.integers(1, 4))
        items.append(item(draw(few), draw(few), length, resized_size=(28, 28 + 28 * draw(few))))
        layout.append((len(token_ids), length))
        token_ids += [9] * length
    tail = [draw(few) for _ in range(draw(st.integers(1, 5)))]
    scope = dataclasses.replace(SCOPE, revision=draw(st.sampled_from([None, None, None, "r"])))
    everything = (tuple(text_ids + tail), tuple(token_ids + tail))
    return LogicalRequest(scope, *everything, tuple(items), tuple(layout), tuple(range(len(items))))


@given(requests(), requests(), st.integers(1, 4))
def test_two_prefixes_have_one_number_exactly_where_the_judge_says_that_their_kv_is_the_same(
    a: LogicalRequest, b: LogicalRequest, size: int
) -> None:
    identities = Identities([size])
    mine, theirs = identities.of(a), identities.of(b)
    relation = compare(a, b)
    assert (mine.full == theirs.full) == relation.same
    assert (mine.images == theirs.images) == relation.same_images
    for block, (x, y) in enumerate(zip(mine.blocks[size][0], theirs.blocks[size][0], strict=False)):
        assert (x == y) == ((block + 1) * size <= relation.shared_tokens)


def naive(stream: list[LogicalRequest], strategy: str, size: int) -> dict[str, dict[str, int]]:
    """The same counts by the plainest means: a dict of block keys, and a comparison with every request before."""
    keep = KeyMaker()
    by_block: dict[bytes, int] = {}
    by_key: dict[bytes, int] = {}
    seen: list[LogicalRequest] = []
    prefix = dict.fromkeys(("found", "wrong", "missed", "blocks"), 0)
    whole = dict.fromkeys(("true_hit", "false_hit", "safe_miss", "missed_reuse"), 0)
    for wanted in stream:
        relations = [compare(stored, wanted) for stored in seen]
        engine = keep.engine(strategy, wanted.scope, "sha256", size)
        prompt = mmkey.Request(wanted.token_ids, keep.items(wanted), wanted.layout, wanted.order)
        keys = [key.tobytes() for key in engine.block_keys(prompt)]
        run = next((n for n, key in enumerate(keys) if key not in by_block), len(keys))
        prefix["found"] += run
        prefix["blocks"] += len(keys)
        prefix["wrong"] += sum(
            relations[by_block[key]].shared_tokens < (n + 1) * size for n, key in enumerate(keys[:run])
        )
        there = [
            any(
                r.shared_tokens >= (n + 1) * size and len(s.token_ids) >= (n + 1) * size
                for r, s in zip(relations, seen, strict=True)
            )
            for n in range(len(keys))
        ]
        longest = next((n for n, stored in enumerate(there) if not stored), len(keys))
        prefix["missed"] += max(0, longest - run)
        text = mmkey.Request(wanted.text_ids, keep.items(wanted), None)
        key = engine.key(prompt if strategy == "C" else text)
        if key in by_key:
            whole["true_hit" if relations[by_key[key]].same else "false_hit"] += 1
        else:
            whole["missed_reuse" if any(r.same for r in relations) else "safe_miss"] += 1
        for key_of_block in keys:
            by_block.setdefault(key_of_block, len(seen))
        by_key.setdefault(key, len(seen))
        seen.append(wanted)
    return {"prefix": prefix, "request": whole}


@settings(max_examples=60, deadline=None)
@given(st.lists(requests(), min_size=1, max_size=8), st.sampled_from("ABC"), st.integers(1, 4))
def test_the_counts_are_those_of_a_dict_of_keys_and_a_comparison_with_all_that_came_before(
    stream: list[LogicalRequest], strategy: str, size: int
) -> None:
    configuration = Configuration(strategy, "sha256", size)
    simulator = Simulator([configuration])
    for one in stream:
        simulator.serve(one)
    expected = naive(stream, strategy, size)
    counts = simulator.counts["prefix", configuration]
    found = {
        "found": counts.found_blocks,
        "wrong": counts.wrong_blocks,
        "missed": counts.missed_blocks,
        "blocks": counts.blocks,
    }
    assert found == expected["prefix"]
    whole = simulator.counts["request", configuration].by_full
    assert {verdict: whole[verdict] for verdict in expected["request"]} == expected["request"]


@settings(max_examples=40, deadline=None)
@given(st.lists(requests(), min_size=1, max_size=12), st.integers(1, 4), st.integers(1, 9))
def test_a_bounded_cache_holds_no_more_than_its_capacity_and_remembers_just_what_it_holds(
    stream: list[LogicalRequest], size: int, capacity: int
) -> None:
    places = [Configuration(strategy, "sha256", size, capacity) for strategy in "ABC"]
    simulator = Simulator(places)
    for one in stream:
        simulator.serve(one)
        for configuration in places:
            cache: Any = simulator._caches["prefix", configuration]
            cache._index.check()
            assert len(cache._index) <= capacity
            assert cache._present.sum() == len(cache._index)
            table: Any = simulator._caches["request", configuration]
            assert table._blocks == sum(blocks for _, blocks in table._stored.values()) <= capacity
            assert sum(table._present.values()) == len(table._stored)
    for granularity in GRANULARITIES:
        assert simulator.counts[granularity, places[2]].by_full["false_hit"] == 0


def look_up(stored: LogicalRequest, wanted: LogicalRequest, size: int = 4) -> dict[tuple[str, str], Any]:
    simulator = Simulator([Configuration(strategy, "sha256", size) for strategy in "ABC"])
    simulator.store(stored)
    return {(g, c.strategy): found for (g, c), found in simulator.look_up(wanted).items()}


def test_the_same_picture_in_another_file_is_reuse_that_b_and_c_miss() -> None:
    found = look_up(request(item(1, file=0)), request(item(1, file=1)))
    assert found["request", "A"].by_full == "true_hit"
    for strategy in "BC":
        whole, prefix = found["request", strategy], found["prefix", strategy]
        assert (whole.by_image, whole.by_full) == ("safe_miss", "missed_reuse")
        assert (whole.missed_blocks, whole.missed_tokens) == (2, 8)
        assert (prefix.found_blocks, prefix.missed_blocks, prefix.missed_tokens) == (0, 2, 8)


def test_another_picture_is_a_false_hit_of_a_whose_blocks_and_tokens_are_counted() -> None:
    found = look_up(request(item(1), item(2)), request(item(1), item(3)))
    assert found["request", "A"].by_full == found["request", "A"].by_image == "false_hit"
    assert (found["request", "A"].wrong_blocks, found["request", "A"].wrong_tokens) == (3, 12)
    assert (found["prefix", "A"].found_blocks, found["prefix", "A"].wrong_blocks) == (3, 2)
    for strategy in "BC":
        assert found["request", strategy].by_full == "safe_miss"
        assert (found["prefix", strategy].found_blocks, found["prefix", strategy].wrong_blocks) == (1, 0)


def test_the_least_recently_used_request_is_the_first_to_go() -> None:
    one, two, three = (request(item(n), text=(n,)) for n in (1, 2, 3))
    simulator = Simulator([Configuration("C", "sha256", 5, capacity=2)], ["request", "prefix"])
    for served in (one, two, one, three):
        simulator.serve(served)
    verdicts = {n: {g: f.by_full for (g, _), f in simulator.look_up(r).items()} for n, r in ((1, one), (2, two))}
    assert verdicts == {
        1: dict.fromkeys(GRANULARITIES, "true_hit"),
        2: dict.fromkeys(GRANULARITIES, "safe_miss"),
    }


def test_a_request_larger_than_the_whole_cache_is_not_stored() -> None:
    simulator = Simulator([Configuration("C", "sha256", 1, capacity=7)])
    for _ in range(2):
        simulator.serve(request(item(1)))
    assert all(counts.by_full == {"safe_miss": 2} for counts in simulator.counts.values())


@pytest.mark.parametrize("seed", [1, 2])
def test_a_stream_of_conversations_has_false_hits_under_a_and_none_under_c(seed: int) -> None:
    places = [
        Configuration(strategy, algorithm, size, capacity)
        for strategy in "ABC"
        for algorithm in ("sha256", "blake3")
        for size in (16, 64)
        for capacity in (None, 300)
    ]
    simulator = Simulator(places)
    for one in Stream(400, seed):
        simulator.serve(one)
    for (granularity, configuration), counts in simulator.counts.items():
        assert counts.lookups == sum(counts.by_full.values()) == sum(counts.by_image.values()) == 400
        false_hits = counts.by_full["false_hit"]
        if configuration.strategy == "C":
            assert false_hits == 0
        elif configuration.strategy == "A" and (granularity == "prefix" or configuration.capacity is None):
            assert false_hits > 0
        assert counts.by_image["false_hit"] <= false_hits
        assert counts.wrong_blocks <= counts.found_blocks <= counts.blocks
    # the hash makes no difference to what is found
    for granularity in GRANULARITIES:
        for configuration in places:
            other = dataclasses.replace(configuration, algorithm="blake3")
            a, b = (simulator.counts[granularity, c].to_json(1) for c in (configuration, other))
            assert a == b


def test_a_stream_is_the_same_whenever_its_seed_is() -> None:
    def ids(seed: int) -> list[tuple[int, ...]]:
        return [one.token_ids for one in Stream(50, seed)]

    assert ids(3) == ids(3)
    assert ids(3) != ids(4)
    twice = Stream(20, 5)
    assert [r.token_ids for r in twice] == [r.token_ids for r in twice]


def test_every_figure_is_defined() -> None:
    simulator = Simulator([Configuration("A")])
    simulator.serve(request(item(1)))
    for counts in simulator.counts.values():
        figures = counts.to_json(256, times=True)
        assert set(figures) <= set(DEFINITIONS)
        assert all(figures[f"{name}_seconds"] > 0 for name in ("hashing", "matching", "storing"))
        assert not [name for name in counts.to_json(256) if name.endswith("_seconds")]


def test_the_judge_of_streams_makes_no_digest_and_knows_no_engine() -> None:
    names = set(vars(identity))
    assert not names & {"mmkey", "hashlib", "zlib", "blake3", "KeyMaker"}
    numbers = Identities([2]).of(request(item(1)))
    assert numbers.blocks[2][0].dtype == np.int64
