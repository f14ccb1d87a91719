"""Block strips and the heat map: held to a model that looks at every single token, and to counts made anew."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmkey.study.report.blocks import differences, strip
from mmkey.study.report.cases import Limits, ThumbnailBook, to_draw
from mmkey.study.report.matrix import heat_map
from mmkey.study.report.models import Case, MatrixRow, Media


def shown(name: str, ranges: list[list[int]]) -> dict[str, Any]:
    length = sum(r[1] for r in ranges)
    size = {"original_size": [1, 1], "resized_size": [1, 1], "patch_grid": [1, 1, 1], "num_visual_tokens": length}
    return {"name": name, "modality": "image", "ranges": ranges, **size}


@st.composite
def requests(draw: st.DrawFn) -> tuple[int, list[dict[str, Any]]]:
    """Tokens, and items one after the other with text between."""
    place, items = draw(st.integers(0, 9)), []
    for n in range(draw(st.integers(0, 4))):
        ranges = []
        for _ in range(draw(st.integers(1, 3))):
            length = draw(st.integers(1, 60))
            ranges.append([place, length])
            place += length + draw(st.integers(0, 9))
        items.append(shown(f"picture {n}", ranges))
    return place + draw(st.integers(1, 300)), items


NOTHING = {strategy: {"blocks": 0, "reused": 0, "wrong": 0, "missed": 0} for strategy in "ABC"}


def verdicts(verdict: str) -> dict[str, dict[str, list[str]]]:
    return {granularity: {strategy: [verdict, verdict] for strategy in "ABC"} for granularity in ("request", "prefix")}


def case(first: tuple[int, Any], second: tuple[int, Any], reuse: dict[str, dict[str, int]], differ: list[str]) -> Case:
    return Case.model_validate(
        {
            "first": [item["name"] for item in first[1]],
            "second": [item["name"] for item in second[1]],
            "tokens": [first[0], second[0]],
            "differences": differ,
            "verdicts": verdicts("safe_miss"),
            "prefix_blocks": NOTHING | reuse,
            "items": {"first": first[1], "second": second[1]},
        }
    )


@given(requests(), requests(), st.integers(1, 40), st.data())
def test_every_block_is_shown_as_its_tokens_have_it(first: Any, second: Any, size: int, data: st.DataObject) -> None:
    full = second[0] // size
    reuse = {}
    for strategy in "ABC":
        reused = data.draw(st.integers(0, full))
        wrong = data.draw(st.integers(0, reused))
        missed = data.draw(st.integers(0, full - reused))
        reuse[strategy] = {"blocks": full, "reused": reused, "wrong": wrong, "missed": missed}
    given_case = case(first, second, reuse, [])
    made = strip(given_case, size)
    assert made is not None
    assert made.blocks == -(-max(first[0], second[0]) // size)
    assert made.undrawn == 0

    # token by token: what holds it, 0 for text
    holders = []
    for tokens, items in (first, second):
        holder = [0] * tokens
        for number, item in enumerate(items, 1):
            for offset, length in item["ranges"]:
                holder[offset : offset + length] = [number] * length
        holders.append(holder)
    blocks = [c for column in made.columns for c in [column] * max(1, column.folded)]
    assert len(blocks) == made.blocks
    for n, column in enumerate(blocks):
        for holder, cell in zip(holders, (column.first, column.second), strict=True):
            held = holder[n * size : (n + 1) * size]
            assert cell.text == (0 in held)
            assert set(cell.items) == set(held) - {0}
            assert cell.short == (0 < len(held) < size)
            assert cell.kind == (
                "end" if not held else "text" if set(held) == {0} else "both" if 0 in held else "media"
            )
    for strategy, counts in reuse.items():
        marks = Counter(dict(column.marks)[strategy] for column in blocks)
        assert marks["right"] == counts["reused"] - counts["wrong"]
        assert marks["wrong"] == counts["wrong"]
        assert marks["missed"] == counts["missed"]
        assert marks["short"] == made.blocks - full
    begun = [name for column in made.columns for _, _, name in column.begins]
    assert Counter(begun) == Counter(item["name"] for _, items in (first, second) for item in items)


def test_a_long_strip_is_folded_and_keeps_its_beginnings() -> None:
    picture = (4000, [shown("long", [[12, 3000]])])
    made = strip(case(picture, picture, {"A": {"blocks": 333, "reused": 100, "wrong": 40, "missed": 0}}, []), 12)
    assert made is not None
    assert len(made.columns) < 80
    assert sum(max(1, column.folded) for column in made.columns) == made.blocks == 334
    assert {dict(column.marks)["A"] for column in made.columns if column.folded} == {"right", "wrong", "none"}


def test_a_strip_of_a_million_blocks_is_cut_and_says_so() -> None:
    made = strip(case((1_000_000, []), (1_000_000, []), {}, []), 1)
    assert made is not None
    assert (made.blocks, made.undrawn) == (1_000_000, 996_000)
    assert len(made.columns) < 20


@pytest.mark.parametrize(
    ("name", "position", "part", "number", "field"),
    [
        ("token_ids[17]", 17, "token", 17, ""),
        ("items[0].media", 3, "item", 1, "media"),
        ("items[1].patch_grid", 40, "item", 2, "patch_grid"),
        ("items[2]", 70, "whole_item", 3, ""),
        ("scope.adapter", 0, "scope", 0, "adapter"),
    ],
)
def test_a_difference_is_placed_at_the_first_token_that_depends_on_it(
    name: str, position: int, part: str, number: int, field: str
) -> None:
    first = (100, [shown("a", [[3, 10]]), shown("b", [[50, 5]])])
    second = (100, [shown("a", [[3, 10]]), shown("b", [[40, 5]]), shown("c", [[70, 5]])])
    (found,) = differences(case(first, second, {}, [name]))
    assert (found.position, found.part, found.number, found.field) == (position, part, number, field)


def test_the_first_difference_comes_first_and_marks_its_block() -> None:
    request = (100, [shown("a", [[30, 20]])])
    given_case = case(request, request, {}, ["token_ids[90]", "items[0].media"])
    assert [d.name for d in differences(given_case)] == ["items[0].media", "token_ids[90]"]
    made = strip(given_case, 10)
    assert made is not None
    assert [column.block for column in made.columns if column.differs] == [3]


# ---------------------------------------------------------------- what fits on a page


def of_outcome(verdict: str) -> Case:
    lists: dict[str, list[str]] = {"first": [], "second": [], "differences": []}
    return Case.model_validate({**lists, "tokens": [1, 1], "verdicts": verdicts(verdict)})


def test_one_case_of_each_outcome_is_drawn_before_more_of_the_same() -> None:
    cases = [of_outcome("true_hit")] * 50 + [of_outcome("false_hit")] + [of_outcome("safe_miss")] * 3
    assert to_draw(cases, 5) == [0, 1, 2, 50, 51]
    assert to_draw(cases, 2) == [0, 50]
    assert to_draw(cases[:3], 12) == [0, 1, 2]


def test_a_thumbnail_is_held_once_and_never_beyond_the_budget() -> None:
    uris = {n: f"data:image/webp;base64,{'A' * n}=" for n in (40, 60, 100)}
    media = {str(n): Media(thumbnail=uri) for n, uri in uris.items()} | {"again": Media(thumbnail=uris[40])}
    book = ThumbnailBook(media, sum(len(uris[n]) for n in (40, 60)))
    assert book.id_of("40") == book.id_of("again") == book.id_of("40")
    assert book.id_of("60") not in {None, book.id_of("40")}
    assert book.id_of("100") is None
    assert book.id_of("nobody") is None
    assert book.left_out == 1
    assert [uri for _, uri in book.symbols()] == [uris[40], uris[60]]


def test_limits_come_down_to_nothing() -> None:
    limits = Limits()
    for _ in range(12):
        limits = limits.halved()
    assert (limits.strips, limits.rows) == (0, 0)


# ---------------------------------------------------------------- the heat map


@st.composite
def matrices(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = []
    for n in range(draw(st.integers(1, 5))):
        for granularity in ("request", "prefix"):
            for strategy in "ABC":
                found = draw(st.sampled_from(["true_hit", "false_hit", "safe_miss", "missed_reuse"]))
                right = found in {"true_hit", "safe_miss"} and draw(st.booleans())
                rows.append(
                    {
                        "mutation": f"m{n}", "group": f"g{n % 2}", "about": "", "kv_changes": True,
                        "kv_changes_from": 3, "why": "", "granularity": granularity, "strategy": strategy,
                        "verdict": found, "right": right, "by_image": "true_hit", "by_full": "true_hit",
                        "differences": [], "blocks": 9, "blocks_with_same_kv": 5, "blocks_reused": 5,
                        "blocks_wrongly_reused": 2, "blocks_missed": 4, "missed_reason": "",
                    }
                )  # fmt: skip
    return draw(st.permutations(rows))


@given(matrices())
def test_totals_and_cells_are_those_of_the_list_in_any_order(rows: list[dict[str, Any]]) -> None:
    made = heat_map([MatrixRow.model_validate(row) for row in rows], None)
    assert {row.name for row in made.rows} == {row["mutation"] for row in rows}
    expected: Counter[tuple[str, str, str]] = Counter()
    for row in rows:
        state = "false_hit" if row["verdict"] == "false_hit" else "right" if row["right"] else "missed_reuse"
        expected[row["granularity"], row["strategy"], state] += 1
        (mutation,) = [m for m in made.rows if m.name == row["mutation"]]
        (cell,) = [
            c for c in mutation.cells if c and (c.granularity, c.strategy) == (row["granularity"], row["strategy"])
        ]
        assert cell.state == state
        wanted = {"false_hit": 2, "missed_reuse": 4, "right": 0}[state]
        assert cell.blocks == (wanted if row["granularity"] == "prefix" else 0)
    for total in made.totals:
        for state in ("right", "false_hit", "missed_reuse"):
            assert getattr(total, state) == expected[total.granularity, total.strategy, state]
