"""Whether what a run says of its results is what the results say: a PASS is shown over nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from mmkey.study.report.models import Granularity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mmkey.study.report.models import Check, MatrixRow, MatrixRun, Run, Scenario, Strategy


def run_disagreement(scenarios: Sequence[Scenario], run: Run) -> str | None:
    """What speaks against run.json beside this summary.json: parts of two studies, or a verdict that is not earned."""
    accepted = run.acceptance
    if accepted.passed != all(check.passed is not False for check in accepted.checks):
        return "acceptance.passed is not what its checks say"
    for i, check in enumerate(accepted.checks):
        problem = _check_disagreement(scenarios, check)
        if problem is not None:
            return f"acceptance.checks[{i}]: {problem}"
    return None


def _check_disagreement(scenarios: Sequence[Scenario], check: Check) -> str | None:
    counted = _counted(scenarios, check)
    if check.passed is None:
        return None if counted is None else f"{check.scenario} was not run here, and is in summary.json"
    if counted is None:
        return f"{check.scenario} was run here, and is not in summary.json"
    if (check.false_hits, check.lookups) != counted:
        return f"false hits {_told(check.false_hits, check.lookups)} here, {_told(*counted)} in summary.json"
    if check.passed and any(check.false_hits.get(strategy) for strategy in ("B", "C")):
        return "passed with false hits of B or C"
    return None


def _counted(scenarios: Sequence[Scenario], check: Check) -> tuple[dict[Strategy, int], int] | None:
    """False hits by strategy and lookups, as summary.json has them; None where it has no such scenario."""
    if not check.scenario:
        every = [part for scenario in scenarios for part in (scenario, *scenario.variants)]
        of_c = [part.figures(granularity)["C"] for part in every for granularity in get_args(Granularity)]
        wrong = sum(max(f.false_hits, f.full_identity_false_hits) for f in of_c)
        return {"C": wrong}, sum(f.lookups for f in of_c)
    for scenario in scenarios:
        if scenario.scenario == check.scenario:
            figures = scenario.figures(check.granularity or "request")
            return {strategy: f.false_hits for strategy, f in figures.items()}, figures["A"].lookups
    return None


def _told(false_hits: Mapping[Strategy, int], lookups: int) -> str:
    return f"{', '.join(f'{s} {n}' for s, n in sorted(false_hits.items()))} of {lookups}"


def matrix_disagreement(rows: Sequence[MatrixRow], run: MatrixRun) -> str | None:
    """What speaks against matrix_run.json beside this matrix.json."""
    for i, check in enumerate(run.checks):
        if check.passed == bool(check.against):
            return f"checks[{i}]: passed is {str(check.passed).lower()}, and {len(check.against)} speak against it"
    if run.passed and not all(check.passed for check in run.checks):
        return "passed, and a check of it did not"
    wrong = [r.mutation for r in rows if r.strategy == "C" and "false_hit" in (r.verdict, r.by_image, r.by_full)]
    if run.passed and wrong:
        return f"passed, and matrix.json has a false hit of C: {wrong[0]!r:.60}"
    return None
