"""Whether what a run says of its results is what the results say: a PASS is shown over nothing else."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from mmkey.study.acceptance import Check, accept, judge_matrix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mmkey.study.report.models import MatrixRow, MatrixRun, Oracle, Run, Scenario


def run_disagreement(scenarios: Sequence[Scenario], run: Run) -> str | None:
    """What speaks against run.json beside this summary.json: parts of two studies, or a verdict that is not earned."""
    for i, scenario in enumerate(scenarios):
        for part in (scenario, *scenario.variants):
            for name in ("algorithm", "block_size", "kv_bytes_per_token"):
                here, there = getattr(run, name), getattr(part, name)
                if here != there:
                    return f"{name} is {here!r}, and {there!r} in summary.json: [{i}]"
    # of the cases nothing is asked, and there may be a thousand
    earned = accept([s.model_dump(exclude={"cases": True, "variants": {"__all__": {"cases"}}}) for s in scenarios])
    told = [Check(**check.model_dump()) for check in run.acceptance.checks]
    for i, (mine, theirs) in enumerate(zip_longest(told, earned.checks)):
        if mine != theirs:
            return f"acceptance.checks[{i}] is {_line(mine)}; of summary.json it is {_line(theirs)}"
    if run.acceptance.passed != earned.passed:
        return "acceptance.passed is not what its checks say"
    return None


def _line(check: Check | None) -> str:
    return "not there" if check is None else repr(" ".join(check.line.split()))


def matrix_disagreement(rows: Sequence[MatrixRow], run: MatrixRun, oracle: Oracle | None) -> str | None:
    """What speaks against matrix_run.json beside this matrix.json, and the models' oracle.json if they were asked."""
    earned = judge_matrix([row.model_dump(exclude={"oracle", "differences"}) for row in rows])
    told: list[dict[str, Any]] = [check.model_dump() for check in run.checks]
    for i, (mine, theirs) in enumerate(zip_longest(told, (check.to_json() for check in earned.checks))):
        if mine != theirs:
            return f"checks[{i}] is {_entry(mine)}; of matrix.json it is {_entry(theirs)}"
    opinions = [(row, opinion) for row in rows for opinion in (row.oracle or {}).values()]
    if opinions and "oracle.json" not in run.digests:
        return "digests name no oracle.json, and models judged matrix.json"
    wrong = [row.mutation for row, opinion in opinions if row.strategy == "C" and opinion.verdict == "false_hit"]
    if oracle is not None and oracle.passed and wrong:
        return f"oracle.json passed, and matrix.json has a false hit of C by a model: {wrong[0]!r:.60}"
    highest = earned.passed and not wrong and (oracle is None or not opinions or oracle.passed)
    lowest = highest and (oracle is not None or not opinions)  # where it is gone, the models may have said more
    return _passed_disagreement(run, lowest=lowest, highest=highest)


def _passed_disagreement(run: MatrixRun, *, lowest: bool, highest: bool) -> str | None:
    if lowest <= run.passed <= highest:
        return None
    return f"passed is {str(run.passed).lower()}, and the checks (and the models, where asked) say otherwise"


def _entry(check: dict[str, Any] | None) -> str:
    if check is None:
        return "not there"
    against = ", ".join(check["against"])
    shown = against if len(against) <= 60 else f"{against[:57]}..."
    return f"'{check['check']} {'passed' if check['passed'] else 'failed'}{f' for {shown}' if shown else ''}'"
