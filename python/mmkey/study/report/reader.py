"""Reads a results folder: whole and sound, or one line that says what is wrong with which file."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from mmkey.study.digests import digest_of
from mmkey.study.errors import StudyError
from mmkey.study.report.agreement import matrix_disagreement, run_disagreement
from mmkey.study.report.models import MATRIX, MEDIA, ORACLE, SUMMARY, SWEEP, Bench, MatrixRun, Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mmkey.study.report.models import MatrixRow, Media, Oracle, Scenario, Sweep

_LARGEST = 512 << 20  # bytes of one file: ten thousand pictures are a tenth of it


class ResultsError(StudyError):
    """Results that cannot be shown; the message names the file and what is wrong with it."""


@dataclass(frozen=True)
class Results:
    """What a folder holds.

    ``missing`` names files that belong to what is there and are not; ``damaged`` says why others were left out.
    """

    scenarios: list[Scenario] | None = None
    run: Run | None = None
    media: dict[str, Media] = field(default_factory=dict)
    matrix: list[MatrixRow] | None = None
    matrix_run: MatrixRun | None = None
    oracle: Oracle | None = None
    sweep: Sweep | None = None
    bench: Bench | None = None
    missing: tuple[str, ...] = ()
    damaged: tuple[tuple[str, str], ...] = ()


def read_results(folder: Path, *, beside: Path | None = None, bench: Path | None = None) -> Results:
    """Reads the files of a results folder.

    ``beside`` is another folder whose results go with these: what cannot be read there is left out, and the pages say
    so. ``bench`` is a file of ``mmkey bench --json``; bench.json in the folder serves without being named.

    Raises:
        ResultsError: there are no results in ``folder``, or a file of it is damaged.
    """
    reader = _Reader([folder] if beside is None else [folder, beside])
    found: dict[str, Any] = {
        "scenarios": reader.read("summary.json", SUMMARY),
        "run": reader.read("run.json", Run),
        "media": reader.read("media.json", MEDIA) or {},
        "matrix": reader.read("matrix.json", MATRIX),
        "matrix_run": reader.read("matrix_run.json", MatrixRun),
        "oracle": reader.read("oracle.json", ORACLE),
        "sweep": reader.read("sweep.json", SWEEP),
        "bench": parse(bench, Bench) if bench is not None else reader.read("bench.json", Bench),
    }
    if all(found[name] is None for name in ("scenarios", "matrix", "sweep")):
        raise ResultsError(
            f"{folder}: no results in it (summary.json, matrix.json or sweep.json); make some: mmkey study --out DIR"
        )
    for name, about in (("run.json", "run"), ("matrix_run.json", "matrix_run")):
        if found[about] and not reader.vouches(name, found[about].digests):
            found[about] = None
    if found["scenarios"] and found["run"] and (problem := run_disagreement(found["scenarios"], found["run"])):
        reader.refuse("run.json", problem)
        found["run"] = None
    if (
        found["matrix"]
        and found["matrix_run"]
        and (problem := matrix_disagreement(found["matrix"], found["matrix_run"], found["oracle"]))
    ):
        reader.refuse("matrix_run.json", problem)
        found["matrix_run"] = None
    return Results(**found, missing=tuple(_missing(found, reader)), damaged=tuple(reader.damaged))


def _missing(found: Mapping[str, Any], reader: _Reader) -> list[str]:
    """The names of files that those which are there were written with."""
    seen, missing = reader.seen, list(reader.missing)
    if "summary.json" not in seen and seen & {"run.json", "media.json"}:
        missing.append("summary.json")
    if found["scenarios"] is not None:
        missing += [name for name in ("run.json", "media.json", "evidence.txt") if name not in seen]
    if "matrix.json" not in seen and seen & {"matrix_run.json", "oracle.json"}:
        missing.append("matrix.json")
    if found["matrix"] is not None and "matrix_run.json" not in seen:
        missing.append("matrix_run.json")
    if "oracle.json" not in seen and any(row.oracle for row in found["matrix"] or ()):
        missing.append("oracle.json")
    return list(dict.fromkeys(missing))


class _Reader:
    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self.seen: set[str] = set()
        self.missing: list[str] = []
        self._place: dict[str, int] = {}
        self._digests: dict[str, str] = {}
        self.damaged: list[tuple[str, str]] = []
        if not folders[0].is_dir():
            raise ResultsError(f"{folders[0]}: {'not a folder' if folders[0].exists() else 'no such folder'}")
        if any((folder / "evidence.txt").is_file() for folder in folders):
            self.seen.add("evidence.txt")

    def read(self, name: str, model: type[BaseModel] | TypeAdapter[Any]) -> Any:
        """The file in the first folder that has it, or None."""
        for i, folder in enumerate(self._folders):
            path = folder / name
            if not os.path.lexists(path):  # a link to nothing is not a file that never was
                continue
            self.seen.add(name)
            self._place[name] = i
            try:
                _want_file(path)
                text, value = load(path)
                self._digests[name] = digest_of(value)
                return validate(path, text, model)
            except ResultsError as problem:
                self._leave_out(name, problem)
        return None

    def vouches(self, name: str, digests: Mapping[str, str]) -> bool:
        """Whether the files that are there of those that ``name`` was written with are still what they were."""
        place = self._place[name]
        for other, digest in digests.items():
            path = self._folders[place] / other
            if not os.path.lexists(path):
                self.missing.append(other)
                continue
            try:
                if self._place.get(other) != place:  # nothing is shown of it
                    _want_file(path)
                    self._digests[other] = digest_of(load(path)[1] if path.suffix == ".json" else read_text(path))
            except ResultsError as problem:
                self._leave_out(name, problem)
                return False
            if self._digests.get(other) != digest:
                changed = f"{path}: not what {name} was written with: changed since, or of another run"
                self._leave_out(name, ResultsError(changed))
                return False
        return True

    def refuse(self, name: str, problem: str) -> None:
        """What was read does not go with the rest."""
        path = self._folders[self._place[name]] / name
        self._leave_out(name, ResultsError(f"{path}: not of these results: {problem}"))

    def _leave_out(self, name: str, problem: ResultsError) -> None:
        if self._place[name] == 0:
            raise problem
        self.damaged.append((name, str(problem)))


def _want_file(path: Path) -> None:
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise ResultsError(f"{path}: {'a folder' if path.is_dir() else 'not a regular file'}")


def parse(path: Path, model: type[BaseModel] | TypeAdapter[Any]) -> Any:
    """One JSON file as its model; ResultsError names the file, and the field where one is at fault."""
    return validate(path, load(path)[0], model)


def read_text(path: Path) -> str:
    """A file of UTF-8 text; ResultsError names the file and what is wrong with it."""
    try:
        with path.open("rb") as file:
            read = file.read(_LARGEST + 1)  # a device or a pipe after --bench says nothing of its size
        if len(read) > _LARGEST:
            raise ResultsError(f"{path}: larger than {_LARGEST >> 20} MiB")
        return read.decode("utf-8")
    except OSError as problem:
        raise ResultsError(f"{path}: cannot read: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise ResultsError(f"{path}: damaged: byte {problem.start} is not UTF-8") from None


def load(path: Path) -> tuple[str, Any]:
    """The text and the value of a JSON file."""
    text = read_text(path)
    try:
        return text, json.loads(text, object_pairs_hook=_once_each)
    except json.JSONDecodeError as broken:
        problem = f"line {broken.lineno}, column {broken.colno}: {broken.msg}"
    except (ValueError, RecursionError) as broken:  # a name twice, a number of too many digits, too deep
        problem = str(broken)
    raise ResultsError(f"{path}: damaged: {problem}")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"{twice!r:.60} is there twice in one object")
    return found


def validate(path: Path, text: str, model: type[BaseModel] | TypeAdapter[Any]) -> Any:
    """The text of a JSON file as its model."""
    try:
        adapter = model if isinstance(model, TypeAdapter) else TypeAdapter(model)
        return adapter.validate_json(text)
    except ValidationError as problem:
        raise ResultsError(f"{path}: damaged: {_first_problem(problem)}") from None


def _first_problem(problem: ValidationError) -> str:
    error = problem.errors(include_url=False, include_context=False)[0]
    if error["type"] == "json_invalid":  # what Python's own reader lets through
        return str(error["msg"])
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    value = repr(error["input"])
    shown = value if len(value) <= 60 else f"{value[:57]}..."
    said_in_full = error["type"] in {"missing", "contradiction"}
    return f"{place or 'the whole'}: {error['msg']}" + ("" if said_in_full else f", not {shown}")
