"""One case block by block: what either request has there, which strategy reused it, and where they part ways."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mmkey.study.report.models import Case, PrefixBlocks, Shown

Mark = Literal["right", "wrong", "missed", "none", "short"]

# A strip longer than this is folded: of a run of equal columns its beginning and its end are drawn.
_FOLD_FROM = 160
_KEPT_AT_BEGIN, _KEPT_AT_END = 8, 3
_MOST_COLUMNS = 4000
_ITEM = re.compile(r"items\[(\d+)\](?:\.(\w+))?$")
_TOKEN = re.compile(r"token_ids\[(\d+)\]$")


@dataclass(frozen=True)
class Cell:
    """A block of one request: whether it holds text, and the items in it by their numbers (from 1)."""

    text: bool
    items: tuple[int, ...]
    short: bool = False

    @property
    def kind(self) -> str:
        """Text, media, both, or nothing: past the request's end."""
        if not self.items:
            return "text" if self.text else "end"
        return "both" if self.text else "media"


@dataclass(frozen=True)
class Column:
    """One block of both requests. ``folded`` stands for that many blocks that all look like this one.

    ``begins``: (request, item's number, name) of what begins here. ``marks``: by strategy what became of the second
    request's block: reused and right, reused and wrong, missed though its KV was there, not reused, or too short to be.
    """

    block: int
    first: Cell
    second: Cell
    marks: tuple[tuple[str, Mark], ...]
    begins: tuple[tuple[str, int, str], ...] = ()
    differs: bool = False
    folded: int = 0

    @property
    def looks(self) -> tuple[Cell, Cell, tuple[tuple[str, Mark], ...]]:
        """What a fold may not change."""
        return (self.first, self.second, self.marks)


@dataclass(frozen=True)
class Difference:
    """A field that differs, and the first token that depends on it. ``part``: scope, token, item or whole item."""

    name: str
    position: int
    part: str
    number: int = 0
    field: str = ""


@dataclass(frozen=True)
class Strip:
    """All columns to draw of a case; ``blocks`` is how many there are, ``undrawn`` how many are not looked at."""

    columns: tuple[Column, ...]
    blocks: int
    undrawn: int


def differences(case: Case) -> list[Difference]:
    """The fields that differ, in the order of the first token that depends on them."""
    found = []
    for name in case.differences:
        if token := _TOKEN.match(name):
            found.append(Difference(name, int(token[1]), "token", int(token[1])))
        elif item := _ITEM.match(name):
            number = int(item[1])
            part = "item" if item[2] else "whole_item"
            found.append(Difference(name, _begin(case, number), part, number + 1, item[2] or ""))
        else:
            found.append(Difference(name, 0, "scope", field=name.partition(".")[2]))
    return sorted(found, key=lambda difference: difference.position)


def _begin(case: Case, number: int) -> int:
    """Where the n-th item begins, in whichever request it begins first."""
    if case.items is None:
        return 0
    begins = [
        items[number].ranges[0][0]
        for items in (case.items.first, case.items.second)
        if number < len(items) and items[number].ranges
    ]
    return min(begins, default=0)


def strip(case: Case, block_size: int) -> Strip | None:
    """The case block by block; None where the results do not say what stands where."""
    if case.items is None or case.prefix_blocks is None:
        return None
    blocks = -(-max(case.tokens) // block_size)
    drawn = min(blocks, _MOST_COLUMNS)
    firsts = _cells(case.items.first, case.tokens[0], block_size, drawn)
    seconds = _cells(case.items.second, case.tokens[1], block_size, drawn)
    begins: dict[int, list[tuple[str, int, str]]] = {}
    for request, items in (("first", case.items.first), ("second", case.items.second)):
        for number, item in enumerate(items, 1):
            for offset, _ in item.ranges[:1]:
                begins.setdefault(offset // block_size, []).append((request, number, item.name))
    differing = differences(case)
    first_difference = differing[0].position // block_size if differing else None
    full = case.tokens[1] // block_size
    columns = [
        Column(
            block,
            firsts[block],
            seconds[block],
            tuple((s, _mark(b, block, full)) for s, b in sorted(case.prefix_blocks.items())),
            tuple(begins.get(block, ())),
            block == first_difference,
        )
        for block in range(drawn)
    ]
    if blocks > _FOLD_FROM:
        columns = list(_fold(columns))
    return Strip(tuple(columns), blocks, blocks - drawn)


def _cells(items: Sequence[Shown], tokens: int, block_size: int, blocks: int) -> list[Cell]:
    """What each block holds, from the ranges of the items; the rest of the tokens is text."""
    covered = [0] * blocks
    numbers: list[list[int]] = [[] for _ in range(blocks)]
    for number, item in enumerate(items, 1):
        for offset, length in item.ranges:
            end = min(offset + length, tokens)
            for block in range(offset // block_size, min(-(-end // block_size), blocks)):
                covered[block] += min(end, (block + 1) * block_size) - max(offset, block * block_size)
                if number not in numbers[block]:
                    numbers[block].append(number)
    cells = []
    for block in range(blocks):
        size = min(block_size, max(0, tokens - block * block_size))
        cells.append(Cell(covered[block] < size, tuple(numbers[block]), short=0 < size < block_size))
    return cells


def _mark(reuse: PrefixBlocks, block: int, full: int) -> Mark:
    if block >= full:
        return "short"
    if block < reuse.reused:
        return "wrong" if block >= reuse.reused - reuse.wrong else "right"
    return "missed" if block < reuse.reused + reuse.missed else "none"


def _fold(columns: Sequence[Column]) -> Iterator[Column]:
    """Equal columns in a row become their beginning, one that stands for many, and their end."""
    for _, group in groupby(columns, key=lambda c: (c.looks, bool(c.begins) or c.differs)):
        run = list(group)
        folded = len(run) - _KEPT_AT_BEGIN - _KEPT_AT_END
        if folded < 2:
            yield from run
            continue
        yield from run[:_KEPT_AT_BEGIN]
        there = run[_KEPT_AT_BEGIN]
        yield Column(there.block, there.first, there.second, there.marks, folded=folded)
        yield from run[-_KEPT_AT_END:]
