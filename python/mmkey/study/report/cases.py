"""How much of a scenario fits on its page: which cases are drawn block by block, which listed, with what pictures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mmkey.study.report.models import Case, Media


@dataclass(frozen=True)
class Limits:
    """What a page holds at most. ``thumbnails`` is bytes of data URIs, each counted once."""

    strips: int = 12
    rows: int = 1000
    thumbnails: int = 700_000

    def halved(self) -> Limits:
        """Half of everything."""
        return Limits(self.strips // 2, self.rows // 2, self.thumbnails // 2)


def to_draw(cases: list[Case], limit: int) -> list[int]:
    """The places of the cases to draw: the first of each kind of outcome, then in order."""
    kinds: dict[tuple[object, ...], int] = {}
    for place, case in enumerate(cases):
        kinds.setdefault(_outcome(case), place)
    chosen = list(kinds.values())[:limit]
    rest = (place for place in range(len(cases)) if place not in set(chosen))
    for place in rest:
        if len(chosen) >= limit:
            break
        chosen.append(place)
    return sorted(chosen)


def _outcome(case: Case) -> tuple[object, ...]:
    verdicts = tuple(
        (granularity, strategy, *pair)
        for granularity, by_strategy in sorted(case.verdicts.items())
        for strategy, pair in sorted(by_strategy.items())
    )
    fields = tuple(sorted({name.partition("[")[0] + name.partition("]")[2] for name in case.differences}))
    return (verdicts, fields)


@dataclass
class ThumbnailBook:
    """The thumbnails of one page: each picture once, under an id, as long as the budget lasts."""

    media: Mapping[str, Media]
    budget: int
    left_out: int = 0
    _ids: dict[str, str] = field(default_factory=dict)

    def id_of(self, name: str) -> str | None:
        """The id to use for a name, or None: there is no thumbnail of it, or no room for it."""
        known = self.media.get(name)
        if known is None:
            return None
        uri = known.thumbnail
        if uri not in self._ids:
            if len(uri) > self.budget:
                self.left_out += 1
                return None
            self.budget -= len(uri)
            self._ids[uri] = f"t{len(self._ids)}"
        return self._ids[uri]

    def symbols(self) -> Iterable[tuple[str, str]]:
        """(id, data URI) of all that were used."""
        return [(name, uri) for uri, name in self._ids.items()]
