"""Runs a study: every case of every scenario, through every strategy, at both granularities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mmkey.study.case_record import case_record
from mmkey.study.clips import ClipFile, draw_clip, open_clip
from mmkey.study.counts import DEFINITIONS
from mmkey.study.judge import compare
from mmkey.study.machine import about_this_machine
from mmkey.study.results import ScenarioResult
from mmkey.study.scenarios import Case, Scenario, clip_case
from mmkey.study.simulator import Settings, Simulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from mmkey.study.acceptance import Acceptance
    from mmkey.study.sources import Source
    from mmkey.study.thumbnails import Thumbnails


def run_study(
    scenarios: Sequence[Scenario],
    source: Source,
    clip: ClipFile | None,
    settings: Settings,
    progress: Callable[[], None] = lambda: None,
    thumbnails: Thumbnails | None = None,
) -> list[ScenarioResult]:
    """Runs scenarios in the order given. ``clip`` is for those of a clip; ``progress`` is called after each case.

    What the requests show is added to ``thumbnails``.
    """

    def cases(scenario: Scenario) -> Iterator[Case]:
        if not scenario.clip:
            yield from source.cases(scenario)
        elif clip is not None:
            yield clip_case(scenario, clip)

    results = []
    for scenario in scenarios:
        result = _run_scenario(scenario, cases(scenario), settings, progress, thumbnails)
        for variant in scenario.variants:
            found = _run_scenario(variant, cases(variant), settings, progress, thumbnails)
            if found.cases:
                result.variants.append(found)
        results.append(result)
    return results


def expected_cases(scenarios: Iterable[Scenario], source: Source) -> int:
    """How often ``progress`` is called at most."""
    with_variants = [s for scenario in scenarios for s in (scenario, *scenario.variants)]
    return sum(1 if s.clip else source.count(s) for s in with_variants)


def _run_scenario(
    scenario: Scenario,
    cases: Iterable[Case],
    settings: Settings,
    progress: Callable[[], None],
    thumbnails: Thumbnails | None,
) -> ScenarioResult:
    result = ScenarioResult.empty(scenario, settings)
    for case in cases:
        _run_case(case, result)
        if thumbnails is not None:
            for item in (*case.first.items, *case.second.items):
                thumbnails.add(item.media)
        progress()
    return result


def _run_case(case: Case, result: ScenarioResult) -> None:
    """Fresh caches: store the first request, look up the second."""
    simulator = Simulator(result.settings.configurations)
    simulator.store(case.first)
    lookups = simulator.look_up(case.second)
    for (granularity, configuration), lookup in lookups.items():
        result.counts[granularity][configuration.strategy].add(lookup)
    result.cases.append(case_record(case, compare(case.first, case.second), lookups))


def drawn_clip(folder: Path) -> ClipFile:
    """Draws the study's clip into ``folder`` and reads it back."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "clip.webp"
    draw_clip(path)
    return open_clip(path, f"{folder.name}/{path.name}")


def about_this_run(
    settings: Settings, source: Source, skipped: Sequence[tuple[str, str]], acceptance: Acceptance, command: str
) -> dict[str, Any]:
    """What run.json says: with what the study was run, whether it passed, and what its numbers mean."""
    return {
        **about_this_machine(command),
        "acceptance": {"passed": acceptance.passed, "checks": [check.to_json() for check in acceptance.checks]},
        "algorithm": settings.algorithm,
        "block_size": settings.block_size,
        "kv_bytes_per_token": settings.kv_bytes,
        "processor": source.processor.view((480, 640)).processing["processor"],
        "skipped": [{"file": name, "reason": reason} for name, reason in skipped],
        "definitions": dict(DEFINITIONS),
    }
