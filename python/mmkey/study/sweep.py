"""A sweep: one stream through caches of every combination of strategy, algorithm, block size and capacity at once."""

from __future__ import annotations

import itertools
from time import perf_counter
from typing import TYPE_CHECKING, Any

from mmkey.study.caches import Configuration
from mmkey.study.counts import DEFINITIONS
from mmkey.study.simulator import Simulator
from mmkey.study.verdicts import GRANULARITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mmkey.study.stream import Stream


def configurations(
    strategies: Sequence[str], algorithms: Sequence[str], block_sizes: Sequence[int], capacities: Sequence[int | None]
) -> list[Configuration]:
    """All combinations, strategies last to vary."""
    return [Configuration(*c) for c in itertools.product(strategies, algorithms, block_sizes, capacities)]


def run_sweep(
    stream: Stream, chosen: Sequence[Configuration], kv_bytes: int, progress: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Looks up and stores every request in every cache; what sweep.json holds."""
    simulator = Simulator(chosen)
    begun = perf_counter()
    for request in stream:
        simulator.serve(request)
        progress()
    elapsed = perf_counter() - begun
    results = []
    for configuration in chosen:
        entry: dict[str, Any] = {
            "strategy": configuration.strategy,
            "algorithm": configuration.algorithm,
            "block_size": configuration.block_size,
            "capacity": configuration.capacity,
        }
        for granularity in GRANULARITIES:
            entry[granularity] = simulator.counts[granularity, configuration].to_json(kv_bytes, times=True)
        results.append(entry)
    return {
        "about": "one stream of requests, each looked up and then stored, in caches of every combination at once",
        "stream": stream.describe(),
        "kv_bytes_per_token": kv_bytes,
        "elapsed_seconds": elapsed,
        "definitions": {
            "capacity": "the most blocks stored; null: no bound. Least recently used goes first",
            **DEFINITIONS,
        },
        "results": results,
    }
