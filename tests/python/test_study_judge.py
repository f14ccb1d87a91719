"""The judge: what it compares, that it knows no key, and that keys of the real engine stand before it."""

from __future__ import annotations

import ast
import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mmkey
from mmkey.study import judge, logical
from mmkey.study.judge import compare, strictly_equal
from mmkey.study.logical import LogicalItem, LogicalRequest, Scope

SCOPE = Scope(model_id="m", config={"kv_dtype": "float16"})


@dataclass(frozen=True)
class Painted:
    """A picture that shows a number."""

    shows: int

    @property
    def name(self) -> str:
        return str(self.shows)

    @property
    def hint(self) -> int:
        return 0

    def same_as(self, other: Any) -> bool:
        return isinstance(other, Painted) and self.shows == other.shows


def item(shows: int = 0, tokens: int = 4, **changes: Any) -> LogicalItem:
    fields: dict[str, Any] = {
        "modality": "image",
        "media": Painted(shows),
        "original_size": (10, 20),
        "resized_size": (28, 28),
        "patch_grid": (1, 2, 2),
        "num_visual_tokens": tokens,
        "processing": {"patch_size": 14},
    }
    return LogicalItem(**(fields | changes))


def request(*items: LogicalItem, text: tuple[int, ...] = (1, 2, 3), scope: Scope = SCOPE) -> LogicalRequest:
    return LogicalRequest.pictures_first(scope, items, text, {"image": 99})


BASE = request(item(1), item(2))


def test_a_request_is_the_same_as_its_equal_made_anew() -> None:
    relation = compare(BASE, request(item(1), item(2)))
    assert relation.same
    assert relation.same_images
    assert relation.shared_tokens == 11


@pytest.mark.parametrize(
    ("changed", "difference", "shared", "same_images"),
    [
        (request(item(1), item(3)), "items[1].media", 4, False),
        (request(item(3), item(2)), "items[0].media", 0, False),
        (request(item(2), item(1)), "items[0].media", 0, False),
        (request(item(1), item(2), text=(1, 7, 3)), "token_ids[9]", 9, True),
        (request(item(1), item(2), text=(1, 2)), "token_ids[10]", 10, True),
        (request(item(1)), "items[1]", 4, False),
        (request(item(1), item(2, tokens=6)), "items[1].num_visual_tokens", 4, True),
        (request(item(1), item(2, resized_size=(28, 56))), "items[1].resized_size", 4, True),
        (request(item(1), item(2, original_size=(20, 10))), "items[1].original_size", 4, True),
        (request(item(1, patch_grid=(1, 4, 1)), item(2)), "items[0].patch_grid", 0, True),
        (request(item(1), item(2, processing={"patch_size": 14.0})), "items[1].processing", 4, True),
        (request(item(1), item(2, processing={})), "items[1].processing", 4, True),
        (request(item(1), item(2), scope=dataclasses.replace(SCOPE, revision="r")), "scope.revision", 0, True),
        (request(item(1), item(2), scope=dataclasses.replace(SCOPE, salt=b"s")), "scope.salt", 0, True),
        (request(item(1), item(2), scope=dataclasses.replace(SCOPE, adapter=("x", None))), "scope.adapter", 0, True),
        (request(item(1), item(2), scope=dataclasses.replace(SCOPE, config={})), "scope.config", 0, True),
        (request(item(1), item(2), scope=dataclasses.replace(SCOPE, model_id="n")), "scope.model_id", 0, True),
        (dataclasses.replace(BASE, layout=((0, 4), (5, 4))), "items[1].layout", 4, True),
    ],
)
def test_each_field_that_the_kv_depends_on_is_seen_and_named(
    changed: LogicalRequest, difference: str, shared: int, same_images: bool
) -> None:
    for a, b in ((BASE, changed), (changed, BASE)):
        relation = compare(a, b)
        assert difference in relation.differences
        assert relation.shared_tokens == shared
        assert relation.same_images == same_images
        assert not relation.same


def test_the_order_in_which_items_are_listed_makes_no_difference() -> None:
    swapped = dataclasses.replace(BASE, items=(BASE.items[1], BASE.items[0]), order=(1, 0))
    assert compare(BASE, swapped).same


def test_pictures_that_begin_after_the_reused_part_do_not_count() -> None:
    relation = compare(BASE, request(item(1), item(3)))
    assert relation.same_images_within(4)
    assert not relation.same_images_within(5)


@pytest.mark.parametrize(
    ("a", "b"), [(1, 1.0), (1, True), (0.0, -0.0), ("1", 1), (b"a", "a"), ([1], [1, 1]), (None, 0)]
)
def test_values_that_a_consumer_could_tell_apart_are_not_equal(a: object, b: object) -> None:
    for wrap in (lambda x: x, lambda x: [x], lambda x: {"k": x}, lambda x: {"k": [x]}):
        assert not strictly_equal(wrap(a), wrap(b))
        assert strictly_equal(wrap(a), wrap(a))
        assert strictly_equal(wrap(b), wrap(b))


def test_nan_is_one_value_and_a_tuple_counts_as_a_list() -> None:
    assert strictly_equal({"x": math.nan}, {"x": float("nan")})
    assert strictly_equal((1, [2]), [1, (2,)])


def test_the_judge_and_the_logical_requests_know_neither_engine_nor_hash() -> None:
    for module in (judge, logical):
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
        names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        assert {n for n in names if n.startswith("mmkey")} <= {"mmkey.study.logical", "mmkey.study.pictures"}
        assert not names & {"hashlib", "blake3", "hmac"}


# ---------------------------------------------------------------- laws, on requests at random


@st.composite
def requests(draw: st.DrawFn) -> LogicalRequest:
    """Small requests of few values, so that two of them often agree for a while."""
    few = st.integers(0, 1)
    token_ids: list[int] = []
    layout, order, items = [], [], []
    for n in range(draw(st.integers(0, 3))):
        token_ids += [draw(few) for _ in range(draw(st.integers(0, 3)))]
        length = draw(st.integers(1, 4))
        items.append(item(draw(few), length, resized_size=(28, 28 + 28 * draw(few))))
        layout.append((len(token_ids), length))
        order.append(n)
        token_ids += [9] * length
    token_ids += [draw(few) for _ in range(draw(st.integers(0, 5)))]
    scope = dataclasses.replace(SCOPE, revision=draw(st.sampled_from([None, None, None, "r"])))
    return LogicalRequest(scope, (), tuple(token_ids), tuple(items), tuple(layout), tuple(order))


def depends_on(request: LogicalRequest, end: int) -> object:
    """Whatever the KV of the first ``end`` positions depends on, spelled out as one plain value."""
    begun = [
        (
            (i.media.shows, i.resized_size, i.num_visual_tokens),
            [r for r, w in zip(request.layout, request.order, strict=True) if w == n],
        )
        for n, i in enumerate(request.items)
        if request.layout[n][0] < end
    ]
    return (request.scope.revision, request.token_ids[:end], begun)


@given(requests(), requests())
def test_shared_tokens_are_the_longest_prefix_whose_kv_depends_on_the_same(
    a: LogicalRequest, b: LogicalRequest
) -> None:
    shared = compare(a, b).shared_tokens
    most = min(len(a.token_ids), len(b.token_ids))
    naive = max((n for n in range(1, most + 1) if depends_on(a, n) == depends_on(b, n)), default=0)
    assert min(shared, most) == naive
    assert compare(a, b).same == (depends_on(a, len(a.token_ids)) == depends_on(b, len(b.token_ids)))


def real(request: LogicalRequest) -> mmkey.Request:
    items = [
        mmkey.Item(
            mmkey.Content.opaque(i.media.name),
            modality=i.modality,
            original_size=i.original_size,
            resized_size=i.resized_size,
            patch_grid=i.patch_grid,
            num_visual_tokens=i.num_visual_tokens,
            processing=i.processing,
        )
        for i in request.items
    ]
    return mmkey.Request(request.token_ids, items, request.layout, request.order)


@given(requests(), requests(), st.integers(1, 4))
def test_strategy_c_reuses_exactly_the_blocks_that_the_judge_allows(
    a: LogicalRequest, b: LogicalRequest, block_size: int
) -> None:
    keys = []
    for r in (a, b):
        engine = mmkey.KeyEngine(
            "C",
            block_size=block_size,
            model_id=r.scope.model_id,
            config=r.scope.config,
            revision=r.scope.revision,
        )
        keys.append([key.tobytes() for key in engine.block_keys(real(r))])
    run = next((i for i, (x, y) in enumerate(zip(*keys, strict=False)) if x != y), min(map(len, keys)))
    most = min(len(a.token_ids), len(b.token_ids))
    assert run == min(compare(a, b).shared_tokens, most) // block_size
