"""How results come into their folder: made beside it, and moved in whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from mmkey.study.digests import digest_of
from mmkey.study.errors import StudyError
from mmkey.study.interrupts import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
MARK = ".mmkey-results"  # in a folder that a study has written to: what has the names of results there is results
_HEAD = 4096  # bytes of a page that hold its marks


class OutputError(StudyError):
    """The results cannot be written where they should be; the message names the path."""


class Staging:
    """A folder beside the results' place in which they are made, moved into place only when all are whole.

    A context manager: whatever ends the study early, neither the staging folder nor a folder made for it stays.
    ``digests`` are those of the files written so far, by name: for the one that says of the others that they are its.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self._made: list[Path] = []
        self._stale: list[str] = []
        self.digests: dict[str, str] = {}
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
        with uninterrupted():
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
        self._write(name, text)
        self.digests[name] = digest_of(text)

    def write_json(self, name: str, value: object) -> None:
        """Adds a JSON file."""
        self._write(name, json.dumps(value, indent=2, allow_nan=False) + "\n")
        self.digests[name] = digest_of(value)

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def replace_pages(self, pages: Mapping[str, str]) -> None:
        """Adds pages by name; those of an earlier report that are not among them go when these come.

        Raises:
            OutputError: a file that no report wrote has the name of a page.
        """
        for name, page in pages.items():
            target = self.out / name
            if not _may_be_replaced(target):
                raise OutputError(f"{target}: in the way of the results: it is no page that mmkey wrote")
            self._write(name, page)
        self._stale += [path.name for path in self.out.glob("*.html") if path.name not in pages and _is_page(path)]

    def commit(self, last: str) -> None:
        """Moves every file into place, or none; ``last`` after all others: where it is, the rest is of the same study.

        Raises:
            OutputError: something is in the way or cannot be written; then the folder is as it was.
        """
        if self.digests:  # it is a study's
            self._write(MARK, "Written by mmkey study, which may replace its results here.\n")
        files = sorted(p.relative_to(self.folder) for p in self.folder.rglob("*") if p.is_file())
        files.sort(key=lambda name: str(name) == last)
        ours = os.path.lexists(self.out / MARK)
        for name in files:
            target = self.out / name
            if os.path.lexists(target) and not ours and target.suffix != ".html":
                raise OutputError(f"{target}: in the way of the results: it is not of mmkey's; name another folder")
            blocked = [
                p for p in target.parents if p != self.out and self.out in p.parents and p.exists() and not p.is_dir()
            ]
            if blocked or target.is_dir():
                raise OutputError(f"{blocked[0] if blocked else target}: in the way of the results")
        with uninterrupted():
            self._exchange(files, [Path(last), *map(Path, self._stale)])

    def _exchange(self, files: Sequence[Path], first_gone: Sequence[Path]) -> None:
        """What stands in the way is set aside within the staging folder until all is in place."""
        aside = self.folder / ".replaced"
        moved: list[tuple[Path, Path]] = []  # from, to: in the order in which it was done

        def move(source: Path, target: Path) -> None:
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
            moved.append((source, target))

        name = Path()
        try:
            for name in first_gone:
                if os.path.lexists(self.out / name):
                    move(self.out / name, aside / name)
            for name in files:
                if os.path.lexists(self.out / name):
                    move(self.out / name, aside / name)
                move(self.folder / name, self.out / name)
        except OSError as problem:
            for source, target in reversed(moved):
                with contextlib.suppress(OSError):
                    target.replace(source)
            raise OutputError(f"{self.out / name}: cannot write: {problem.strerror}") from None


def _may_be_replaced(page: Path) -> bool:
    """Nothing is there, or a page, or an empty file, as a full disk leaves it."""
    if not os.path.lexists(page) or page.is_dir():  # a folder is told of when all is to be moved
        return True
    return page.is_file() and not page.is_symlink() and (page.stat().st_size == 0 or _is_page(page))


def _is_page(path: Path) -> bool:
    """Whether a report wrote the file, under this name."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    marks = (
        b'<meta name="generator" content="mmkey ',
        b'<meta name="mmkey-page" content="%s">' % os.fsencode(path.name),
    )
    return all(mark in head for mark in marks)
