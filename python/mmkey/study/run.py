"""Runs a study: every case of every scenario, through every strategy, at both granularities."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import mmkey
from mmkey.study.clips import ClipFile, draw_clip, open_clip
from mmkey.study.counts import DEFINITIONS
from mmkey.study.judge import compare
from mmkey.study.results import ScenarioResult
from mmkey.study.scenarios import Case, Scenario, clip_case
from mmkey.study.simulator import Settings, Simulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from mmkey.study.sources import Source


def run_study(
    scenarios: Sequence[Scenario],
    source: Source,
    clip: ClipFile | None,
    settings: Settings,
    progress: Callable[[], None] = lambda: None,
) -> list[ScenarioResult]:
    """Runs scenarios in the order given. ``clip`` is for those of a clip; ``progress`` is called after each case."""

    def cases(scenario: Scenario) -> Iterator[Case]:
        if not scenario.clip:
            yield from source.cases(scenario)
        elif clip is not None:
            yield clip_case(scenario, clip)

    results = []
    for scenario in scenarios:
        result = _run_scenario(scenario, cases(scenario), settings, progress)
        for variant in scenario.variants:
            found = _run_scenario(variant, cases(variant), settings, progress)
            if found.cases:
                result.variants.append(found)
        results.append(result)
    return results


def expected_cases(scenarios: Iterable[Scenario], source: Source) -> int:
    """How often ``progress`` is called at most."""
    with_variants = [s for scenario in scenarios for s in (scenario, *scenario.variants)]
    return sum(1 if s.clip else source.count(s) for s in with_variants)


def _run_scenario(
    scenario: Scenario, cases: Iterable[Case], settings: Settings, progress: Callable[[], None]
) -> ScenarioResult:
    result = ScenarioResult.empty(scenario, settings)
    for case in cases:
        _run_case(case, result)
        progress()
    return result


def _run_case(case: Case, result: ScenarioResult) -> None:
    """Fresh caches: store the first request, look up the second."""
    simulator = Simulator(result.settings.configurations)
    simulator.store(case.first)
    verdicts: dict[str, dict[str, list[str]]] = {granularity: {} for granularity in result.counts}
    for (granularity, configuration), lookup in simulator.look_up(case.second).items():
        result.counts[granularity][configuration.strategy].add(lookup)
        verdicts[granularity][configuration.strategy] = [lookup.by_image, lookup.by_full]
    result.cases.append(
        {
            "first": list(case.media[0]),
            "second": list(case.media[1]),
            "tokens": [len(case.first.token_ids), len(case.second.token_ids)],
            "differences": list(compare(case.first, case.second).differences),
            "verdicts": verdicts,
        }
    )


def drawn_clip(folder: Path) -> ClipFile:
    """Draws the study's clip into ``folder`` and reads it back."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "clip.webp"
    draw_clip(path)
    return open_clip(path, f"{folder.name}/{path.name}")


def about_this_run(settings: Settings, source: Source, skipped: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """What run.json says: with what the study was run, and what its numbers mean."""
    return {
        "versions": {"mmkey": mmkey.__version__, "numpy": version("numpy"), "Pillow": version("Pillow")}
        | {"python": platform.python_version()},
        "machine": platform.machine(),
        "kernels": mmkey.kernels(),
        "algorithm": settings.algorithm,
        "block_size": settings.block_size,
        "kv_bytes_per_token": settings.kv_bytes,
        "processor": source.processor.view((480, 640)).processing["processor"],
        "skipped": [{"file": name, "reason": reason} for name, reason in skipped],
        "definitions": dict(DEFINITIONS),
    }
