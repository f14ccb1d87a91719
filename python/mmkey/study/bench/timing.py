"""Timing in turns: what is compared runs in one loop, so that a busy machine slows all of it alike."""

from __future__ import annotations

import gc
import statistics
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

#: Seconds of one sample: short against a scheduler's time slice, long against the clock's own cost.
WINDOW = 1e-3


@dataclass(frozen=True)
class Timing:
    """Seconds a call, by name and round; in each round every name had its turn."""

    samples: dict[str, list[float]]

    def median(self, name: str) -> float:
        """Seconds of one call."""
        return statistics.median(self.samples[name])

    def medians(self) -> dict[str, float]:
        """Seconds of one call, by name."""
        return {name: self.median(name) for name in self.samples}

    def ratio(self, name: str, to: str) -> float:
        """How many times as long `name` takes as `to`: the median over the rounds of their ratio in one round."""
        return statistics.median(a / b for a, b in zip(self.samples[name], self.samples[to], strict=True))


def take_turns(
    cases: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 15,
    seconds: float | None = None,
    clock: Callable[[], float] = time.thread_time,
) -> Timing:
    """Runs every case in turn, round after round.

    Args:
        cases: functions without arguments, of which each call does the same work.
        rounds: how many rounds at most.
        seconds: begins no further round after this long by the clock on the wall, but for the first three.
        clock: by default the CPU time of the calling thread, which other processes' turns on the CPU do not enter.
            Work on other threads does not enter it either: give another clock for that.
    """
    end = time.perf_counter() + (seconds if seconds is not None else float("inf"))
    with _no_collection():
        counts = {name: _calls_a_sample(case, clock) for name, case in cases.items()}
        samples: dict[str, list[float]] = {name: [] for name in cases}
        for turn in range(rounds):
            if turn >= 3 and time.perf_counter() > end:
                break
            for name, case in cases.items():
                samples[name].append(_sample(case, counts[name], clock))
    return Timing(samples)


def _sample(case: Callable[[], object], calls: int, clock: Callable[[], float]) -> float:
    begin = clock()
    for _ in range(calls):
        case()
    return (clock() - begin) / calls


def _calls_a_sample(case: Callable[[], object], clock: Callable[[], float]) -> int:
    """How many calls fill the window; the case is warm after."""
    _sample(case, 1, clock)
    calls = 1
    while (took := _sample(case, calls, clock) * calls) < WINDOW / 4:
        calls *= 4
    return max(1, round(calls * WINDOW / took))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keeps the garbage collector out of the samples."""
    was = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
