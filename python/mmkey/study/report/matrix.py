"""The mutation matrix as a heat map: a row for each mutation, a cell for each strategy at each granularity."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mmkey.study.report.models import MatrixRow, Oracle

State = Literal["right", "false_hit", "missed_reuse"]
SEVERITY: dict[str, int] = {"right": 0, "missed_reuse": 1, "false_hit": 2}
_PLACES = [(granularity, strategy) for granularity in ("request", "prefix") for strategy in ("A", "B", "C")]


def state_of(verdict: str, *, right: bool) -> State:
    """What a cell shows: another's KV served, reuse missed (all of it or some), or exactly what is right."""
    if verdict == "false_hit":
        return "false_hit"
    return "right" if right else "missed_reuse"


@dataclass(frozen=True)
class ModelCell:
    """What one real model's KV says of a cell; None where the mutation is not expressible in it."""

    title: str
    state: State | None


@dataclass(frozen=True)
class MatrixCell:
    """One strategy at one granularity. ``blocks``: how many are wrong or missed, at prefix granularity."""

    granularity: str
    strategy: str
    verdict: str
    right: bool
    state: State
    blocks: int
    models: tuple[ModelCell, ...]

    @property
    def severity(self) -> int:
        """What cells are sorted by: the state, then the blocks."""
        return SEVERITY[self.state] * 1_000_000 + self.blocks


@dataclass(frozen=True)
class ModelView:
    """Whether, and from which position of its own prompt on, one real model's KV changes."""

    title: str
    kv_changes: bool
    kv_from: int | None


@dataclass(frozen=True)
class Decoded:
    """What decoding on the wrongly reused KV did in one real model."""

    title: str
    strategies: str
    changed: int
    tokens: int


@dataclass(frozen=True)
class MutationRow:
    """One mutation. ``cells`` are in the order of _PLACES."""

    name: str
    group: str
    about: str
    why: str
    kv_changes: bool
    kv_from: int | None
    differences: tuple[str, ...]
    cells: tuple[MatrixCell, ...]
    missed_reasons: tuple[tuple[str, str], ...]
    models: tuple[ModelView, ...]
    decoded: tuple[Decoded, ...]


@dataclass(frozen=True)
class Total:
    """How many mutations one strategy gets right, serves wrongly, and misses."""

    granularity: str
    strategy: str
    right: int
    false_hit: int
    missed_reuse: int


@dataclass(frozen=True)
class Model:
    """A real model that judged."""

    model: str
    title: str


@dataclass(frozen=True)
class Matrix:
    """All of it."""

    rows: tuple[MutationRow, ...]
    groups: tuple[str, ...]
    totals: tuple[Total, ...]
    models: tuple[Model, ...]


def heat_map(entries: Sequence[MatrixRow], oracle: Oracle | None) -> Matrix:
    """Puts the list of matrix.json into rows."""
    titles = {m.model: m.title for m in oracle.models} if oracle else {}
    asked = dict.fromkeys(name for entry in entries for name in entry.oracle or ())
    if not asked:  # an oracle.json of an earlier run says nothing of this one
        oracle = None
    models = tuple(Model(name, titles.get(name, name)) for name in asked)
    by_mutation: dict[str, list[MatrixRow]] = {}
    for entry in entries:
        by_mutation.setdefault(entry.mutation, []).append(entry)
    rows = tuple(_row(group, models, oracle) for group in by_mutation.values())
    cells = [cell for row in rows for cell in row.cells]
    return Matrix(rows, tuple(dict.fromkeys(row.group for row in rows)), tuple(_totals(cells)), models)


def _row(entries: Sequence[MatrixRow], models: Sequence[Model], oracle: Oracle | None) -> MutationRow:
    first = entries[0]
    by_place: dict[tuple[str, str], MatrixRow] = {(entry.granularity, entry.strategy): entry for entry in entries}
    reasons: dict[str, list[str]] = {}
    for entry in entries:
        if entry.missed_reason:
            reasons.setdefault(entry.missed_reason, []).append(entry.strategy)
    opinions = first.oracle or {}
    titles = {m.model: m.title for m in models}
    return MutationRow(
        first.mutation,
        first.group,
        first.about,
        first.why,
        first.kv_changes,
        first.kv_changes_from,
        tuple(first.differences),
        tuple(_cell(by_place[place], models) for place in _PLACES),
        tuple((", ".join(sorted(set(who))), reason) for reason, who in reasons.items()),
        tuple(
            ModelView(m.title, opinions[m.model].kv_changes, opinions[m.model].kv_changes_from)
            for m in models
            if m.model in opinions
        ),
        tuple(
            Decoded(titles.get(h.model, h.model), ", ".join(h.strategies), h.decoded_tokens_changed, h.decoded_tokens)
            for h in (oracle.false_hits if oracle else ())
            if h.mutation == first.mutation
        ),
    )


def _cell(entry: MatrixRow, models: Sequence[Model]) -> MatrixCell:
    state = state_of(entry.verdict, right=entry.right)
    blocks = {"false_hit": entry.blocks_wrongly_reused, "missed_reuse": entry.blocks_missed, "right": 0}[state]
    opinions = entry.oracle or {}
    views = [(m.title, opinions.get(m.model)) for m in models] if opinions else []  # each at its place
    return MatrixCell(
        entry.granularity,
        entry.strategy,
        entry.verdict,
        entry.right,
        state,
        blocks if entry.granularity == "prefix" else 0,
        tuple(ModelCell(title, state_of(o.verdict, right=o.right) if o else None) for title, o in views),
    )


def _totals(cells: Iterable[MatrixCell]) -> list[Total]:
    counts: dict[tuple[str, str], Counter[str]] = {}
    for cell in cells:
        counts.setdefault((cell.granularity, cell.strategy), Counter())[cell.state] += 1
    return [
        Total(g, s, counts[g, s]["right"], counts[g, s]["false_hit"], counts[g, s]["missed_reuse"]) for g, s in _PLACES
    ]
