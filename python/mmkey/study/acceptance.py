"""Whether results are as they must be: decided on what their files hold, so that whoever reads them can ask again.

The study writes the verdict beside its counts, and the report shows it only where the counts still give it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mmkey.study.verdicts import FALSE_HIT, GRANULARITIES, TRUE_HIT, VERDICTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FALSE_HIT_EXPECTED = ("same_text_different_image", "multi_image_different_order")
ACCEPTANCE = (
    "Acceptance: in same_text_different_image and in multi_image_different_order strategy A has false hits, B and C "
    "have none; and C has none anywhere."
)


# ---------------------------------------------------------------- the scenarios


@dataclass(frozen=True)
class Check:
    """One piece of evidence: false hits by strategy among ``lookups``, and whether that is as it must be.

    ``scenario`` is empty for all that was run. ``passed`` is None where the scenario was not run.
    """

    passed: bool | None
    scenario: str
    granularity: str = ""
    false_hits: Mapping[str, int] = field(default_factory=dict)
    lookups: int = 0

    @property
    def line(self) -> str:
        """As evidence.txt has it."""
        if self.passed is None:
            return f"      {self.scenario}: not run"
        what = (
            f"{self.scenario}, {self.granularity}"
            if self.scenario
            else "all that was run, by image and by full identity"
        )
        numbers = ", ".join(f"{s} {n}" for s, n in self.false_hits.items())
        return f"{'PASS' if self.passed else 'FAIL'}  {what}: false hits {numbers} of {self.lookups}"

    def to_json(self) -> dict[str, Any]:
        """One entry of run.json's ``acceptance.checks``."""
        return {
            "passed": self.passed,
            "scenario": self.scenario,
            "granularity": self.granularity,
            "false_hits": dict(self.false_hits),
            "lookups": self.lookups,
        }


@dataclass(frozen=True)
class Acceptance:
    """The evidence, and whether it holds."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return all(check.passed is not False for check in self.checks)

    @property
    def lines(self) -> tuple[str, ...]:
        """The evidence, a line each."""
        return tuple(check.line for check in self.checks)


def accept(summary: Sequence[Mapping[str, Any]]) -> Acceptance:
    """Of the list of summary.json: A has false hits in FALSE_HIT_EXPECTED, B and C none; and C has none anywhere.

    Counted by image identity, in the last line by both standards. At prefix granularity nothing is asked of A, since
    small pictures share no full block. What was not run is said, and not judged.
    """
    run = {entry["scenario"]: entry for entry in summary}
    checks = []
    for name in FALSE_HIT_EXPECTED:
        if name not in run:
            checks.append(Check(None, name))
            continue
        for granularity in GRANULARITIES:
            figures = run[name][granularity]
            found = {strategy: of_it["false_hits"] for strategy, of_it in figures.items()}
            holds = (found["A"] > 0 or granularity == "prefix") and found["B"] == found["C"] == 0
            checks.append(Check(holds, name, granularity, found, figures["A"]["lookups"]))
    everything = [part for entry in run.values() for part in (entry, *entry.get("variants", ()))]
    of_c = [part[granularity]["C"] for part in everything for granularity in GRANULARITIES]
    # every hit that is false by image identity is false by full identity too
    wrong = sum(max(figures["false_hits"], figures["full_identity_false_hits"]) for figures in of_c)
    checks.append(Check(wrong == 0, "", "", {"C": wrong}, sum(figures["lookups"] for figures in of_c)))
    return Acceptance(tuple(checks))


# ---------------------------------------------------------------- the matrix


@dataclass(frozen=True)
class MatrixCheck:
    """What must hold: its name, the same in words, and the mutations that speak against it."""

    name: str
    about: str
    against: tuple[str, ...]

    @property
    def line(self) -> str:
        """As the command line prints it."""
        return f"{'FAIL' if self.against else 'PASS'}  {self.about}{': not ' if self.against else ''}" + ", ".join(
            self.against
        )

    def to_json(self) -> dict[str, Any]:
        """One entry of matrix_run.json's ``checks``."""
        return {"check": self.name, "passed": not self.against, "against": list(self.against)}


@dataclass(frozen=True)
class MatrixVerdict:
    """Whether C is safe in all of it, and the lines that say so with the numbers."""

    checks: tuple[MatrixCheck, ...]
    counts: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against any check."""
        return not any(check.against for check in self.checks)

    @property
    def lines(self) -> tuple[str, ...]:
        """The counts, then the checks, a line each."""
        return (*self.counts, *(check.line for check in self.checks))


def judge_matrix(rows: Sequence[Mapping[str, Any]]) -> MatrixVerdict:
    """Of the list of matrix.json: C has no false hit by any judge, and what reuse it misses has a reason."""
    of_c = [row for row in rows if row["strategy"] == "C"]
    wrong = [row for row in of_c if FALSE_HIT in {row["verdict"], row["by_image"], row["by_full"]}]
    unexplained = [row for row in of_c if row["blocks_missed"] and not row["missed_reason"]]
    # A request without a full block has nothing to find at prefix granularity: that is no miss.
    equal = [
        row
        for row in of_c
        if row["group"] == "container" and (row["blocks_missed"] or (row["blocks"] and row["verdict"] != TRUE_HIT))
    ]
    found = (
        ("safe", "strategy C has no false hit: by the KV, by image identity, by full identity", wrong),
        ("explained", "every reuse that C misses has its reason", unexplained),
        ("container", "C misses nothing where only the container changes", equal),
    )
    checks = [MatrixCheck(name, about, tuple(sorted({row["mutation"] for row in bad}))) for name, about, bad in found]
    return MatrixVerdict(tuple(checks), tuple(_counts(rows)))


def _counts(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    mutations = len({row["mutation"] for row in rows})
    lines = []
    for granularity in GRANULARITIES:
        of_it = [row for row in rows if row["granularity"] == granularity]
        for strategy in dict.fromkeys(row["strategy"] for row in of_it):
            counts = Counter(row["verdict"] for row in of_it if row["strategy"] == strategy)
            numbers = ", ".join(f"{counts[v]} {v}" for v in VERDICTS)
            lines.append(f"      {strategy}, {granularity}: {numbers}, of {mutations} mutations")
    return lines


# ---------------------------------------------------------------- the sweep


def false_hits_of_c(results: Sequence[Mapping[str, Any]]) -> int | None:
    """Of the list ``results`` of sweep.json, by full identity, of both granularities; None where C was not run."""
    of_c = [entry for entry in results if entry["strategy"] == "C"]
    if not of_c:
        return None
    return sum(int(entry[granularity]["full_identity_false_hits"]) for entry in of_c for granularity in GRANULARITIES)
