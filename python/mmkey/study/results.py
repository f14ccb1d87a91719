"""What a study finds: counts by scenario, strategy and granularity, and the files they become."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mmkey.study.acceptance import ACCEPTANCE
from mmkey.study.counts import Counts
from mmkey.study.errors import StudyError
from mmkey.study.verdicts import GRANULARITIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mmkey.study.acceptance import Acceptance
    from mmkey.study.scenarios import Scenario
    from mmkey.study.simulator import Settings

PAGE_MARK = b'<meta name="generator" content="mmkey '  # in the head of every page
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


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


# ---------------------------------------------------------------- files


class OutputError(StudyError):
    """The results cannot be written where they should be; the message names the path."""


class Staging:
    """A folder beside the results' place in which they are made, moved into place only when all are whole.

    A context manager: whatever ends the study early, neither the staging folder nor a folder made for it stays.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self._made: list[Path] = []
        self._stale: list[Path] = []
        self.folder = out

    def __enter__(self) -> Staging:  # noqa: PYI034 (Self is not in Python 3.10)
        try:
            missing = self.out
            while not os.path.lexists(missing):
                self._made.append(missing)
                missing = missing.parent
            for folder in reversed(self._made):
                folder.mkdir()
            # named before it is made: an interrupt between the two leaves nothing that is not known
            self.folder = self.out / f".mmkey-study-{secrets.token_hex(8)}"
            self.folder.mkdir(mode=0o700)
        except BaseException as problem:
            self.__exit__()
            if not isinstance(problem, (OSError, ValueError)):
                raise
            reason = problem.strerror if isinstance(problem, OSError) else str(problem)
            raise OutputError(f"{self.out}: cannot write results there: {reason}") from None
        return self

    def __exit__(self, _: object = None, problem: BaseException | None = None, __: object = None) -> None:
        if self.folder != self.out:
            shutil.rmtree(self.folder, ignore_errors=True)
        self._unmake()
        # What fails on a file that is already open knows no name; all that the study writes is under --out.
        if isinstance(problem, OSError) and problem.errno in _NO_ROOM and problem.filename is None:
            raise OutputError(f"{self.out}: cannot write results there: {problem.strerror}") from None

    def _unmake(self) -> None:
        for folder in self._made:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def write_text(self, name: str, text: str) -> None:
        """Adds a file of UTF-8 text."""
        (self.folder / name).write_text(text, encoding="utf-8")

    def write_json(self, name: str, value: object) -> None:
        """Adds a JSON file."""
        self.write_text(name, json.dumps(value, indent=2, allow_nan=False) + "\n")

    def replace_pages(self, pages: Mapping[str, str]) -> None:
        """Adds pages by name; those of an earlier report that are not among them go when these come."""
        for name, page in pages.items():
            self.write_text(name, page)
        for path in self.out.glob("*.html"):
            if path.name not in pages and path.is_file() and PAGE_MARK in path.read_bytes()[:4096]:
                self._stale.append(path)

    def commit(self, last: str) -> None:
        """Moves every file into place, ``last`` after all others: where it is, the rest is of the same study."""
        files = sorted(p.relative_to(self.folder) for p in self.folder.rglob("*") if p.is_file())
        files.sort(key=lambda name: str(name) == last)
        for name in files:
            target = self.out / name
            blocked = [
                p for p in target.parents if p != self.out and self.out in p.parents and p.exists() and not p.is_dir()
            ]
            if blocked or target.is_dir():
                raise OutputError(f"{blocked[0] if blocked else target}: in the way of the results")
        try:
            (self.out / last).unlink(missing_ok=True)
            for name in files:
                (self.out / name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / name).replace(self.out / name)
            for page in self._stale:
                page.unlink(missing_ok=True)
        except OSError as problem:
            raise OutputError(f"{problem.filename or self.out}: cannot write: {problem.strerror}") from None


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
    staging.write_json("run.json", about)
    staging.write_json("media.json", {name: {"thumbnail": uri} for name, uri in thumbnails.items()})
    lines = (ACCEPTANCE, "", *acceptance.lines, "", "PASS" if acceptance.passed else "FAIL")
    staging.write_text("evidence.txt", "\n".join(lines) + "\n")
