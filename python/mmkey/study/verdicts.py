"""The names that results go by: a lookup's verdict, what is looked up, and by whose keys."""

from __future__ import annotations

from typing import Final, Literal

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
