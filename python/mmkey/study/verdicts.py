"""The names that results go by: a lookup's verdict, what is looked up, and by whose keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Verdict = Literal["true_hit", "false_hit", "safe_miss", "missed_reuse"]
Granularity = Literal["request", "prefix"]
Strategy = Literal["A", "B", "C"]

TRUE_HIT: Final = "true_hit"
FALSE_HIT: Final = "false_hit"
SAFE_MISS: Final = "safe_miss"
MISSED_REUSE: Final = "missed_reuse"
VERDICTS: tuple[Verdict, ...] = (TRUE_HIT, FALSE_HIT, SAFE_MISS, MISSED_REUSE)
GRANULARITIES: tuple[Granularity, ...] = ("request", "prefix")
STRATEGIES: tuple[Strategy, ...] = ("A", "B", "C")


def worst(counts: Mapping[str, int]) -> Verdict:
    """The verdict that stands for all: any false hit, else any true hit, else any missed reuse, else a safe miss."""
    found: tuple[Verdict, ...] = (FALSE_HIT, TRUE_HIT, MISSED_REUSE)
    return next((verdict for verdict in found if counts.get(verdict)), SAFE_MISS)
