"""What a study finds: counts by scenario, strategy and granularity, and the files they become."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mmkey.study.acceptance import ACCEPTANCE
from mmkey.study.counts import Counts
from mmkey.study.verdicts import GRANULARITIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mmkey.study.acceptance import Acceptance
    from mmkey.study.scenarios import Scenario
    from mmkey.study.simulator import Settings
    from mmkey.study.staging import Staging


@dataclass
class ScenarioResult:
    """All counts of one scenario, by granularity and strategy; ``cases`` names what each showed and how it differs."""

    scenario: Scenario
    settings: Settings
    counts: dict[str, dict[str, Counts]]
    cases: list[dict[str, Any]] = field(default_factory=list)
    variants: list[ScenarioResult] = field(default_factory=list)

    @classmethod
    def empty(cls, scenario: Scenario, settings: Settings) -> ScenarioResult:
        """A result before its first case."""
        return cls(scenario, settings, {g: {s: Counts() for s in settings.strategies} for g in GRANULARITIES})

    def to_json(self) -> dict[str, Any]:
        """One entry of summary.json."""
        out: dict[str, Any] = {
            "scenario": self.scenario.name,
            "about": self.scenario.about,
            "algorithm": self.settings.algorithm,
            "block_size": self.settings.block_size,
            "kv_bytes_per_token": self.settings.kv_bytes,
        }
        for granularity, by_strategy in self.counts.items():
            out[granularity] = {s: counts.to_json(self.settings.kv_bytes) for s, counts in by_strategy.items()}
        out["cases"] = self.cases
        if self.variants:
            out["variants"] = [variant.to_json() for variant in self.variants]
        return out


def write_all(
    staging: Staging,
    summary: Sequence[Mapping[str, Any]],
    acceptance: Acceptance,
    about: Mapping[str, Any],
    thumbnails: Mapping[str, str],
) -> None:
    """Adds <scenario>.json each, summary.json, run.json, media.json and evidence.txt."""
    for entry in summary:
        staging.write_json(f"{entry['scenario']}.json", entry)
    staging.write_json("summary.json", summary)
    staging.write_json("media.json", {name: {"thumbnail": uri} for name, uri in thumbnails.items()})
    lines = (ACCEPTANCE, "", *acceptance.lines, "", "PASS" if acceptance.passed else "FAIL")
    staging.write_text("evidence.txt", "\n".join(lines) + "\n")
    staging.write_json("run.json", {**about, "digests": dict(staging.digests)})
