"""Where the study's media come from: drawn for it, or a folder of the user's own."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from mmkey.study.errors import StudyError
from mmkey.study.pictures import UnusablePictureError, draw_picture, look_at, look_at_own
from mmkey.study.processors import NativeProcessor, Processor, SquareProcessor
from mmkey.study.scenarios import Case, Scenario, TakePicture, picture_case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from mmkey.study.logical import Picture


class NotEnoughPicturesError(StudyError):
    """The folder holds too few usable pictures; the message names it."""


class Source(Protocol):
    """Gives a scenario of pictures its cases."""

    processor: Processor

    def cases(self, scenario: Scenario) -> Iterator[Case]:
        """The cases of one scenario, its media written or found on disk."""

    def count(self, scenario: Scenario) -> int:
        """How many cases there are at most."""


@dataclass
class DrawnPictures:
    """Pictures drawn for the study: each request's in a file of its own under ``folder``/<scenario>/."""

    folder: Path
    processor: Processor = field(default_factory=SquareProcessor)

    def count(self, scenario: Scenario) -> int:  # noqa: ARG002
        """One case each."""
        return 1

    def cases(self, scenario: Scenario) -> Iterator[Case]:
        """As :meth:`Source.cases`."""
        name = scenario.inputs or scenario.name
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        subjects = {"a": "harbour", "b": "forest"}

        def take(letter: str, slot: str) -> Picture:
            path = draw_picture(subjects[letter], folder / f"{slot}-{subjects[letter]}")
            return look_at_own(path, f"{name}/{path.name}")

        case = picture_case(scenario, self.processor, take)
        if case is not None:
            yield case


@dataclass
class FolderOfPictures:
    """The user's pictures. Each runs through every scenario, with the next other one where two are needed."""

    folder: Path
    pictures: list[Picture] = field(default_factory=list)
    processor: Processor = field(default_factory=NativeProcessor)

    @classmethod
    def scan(cls, folder: Path, paths: Iterable[Path], skip: Callable[[str, str], None]) -> FolderOfPictures:
        """Decodes each file once. What is no usable picture is left out, and ``skip`` told its name and the reason."""
        source = cls(folder)
        for path in paths:
            try:
                if not path.is_file():
                    raise UnusablePictureError(_kind(path))  # noqa: TRY301
                picture = look_at(path, _name(path))
                source.processor.view(picture.size)
                source.pictures.append(picture)
            except UnusablePictureError as problem:
                skip(_name(path), str(problem))
            except OSError as problem:
                skip(_name(path), problem.strerror or str(problem))
        return source

    def require(self, scenarios: Iterable[Scenario]) -> None:
        """Raises NotEnoughPicturesError unless there are as many different pictures as the scenarios need."""
        needed = max((s.pictures for s in scenarios), default=0)
        if needed and not self.pictures:
            raise NotEnoughPicturesError(f"{self.folder}: no usable picture in it")
        if needed == 2 and all(self.pictures[0].same_as(p) for p in self.pictures[1:]):
            raise NotEnoughPicturesError(f"{self.folder}: two different pictures are needed, it holds one")

    def count(self, scenario: Scenario) -> int:  # noqa: ARG002
        """One case a picture."""
        return len(self.pictures)

    def cases(self, scenario: Scenario) -> Iterator[Case]:
        """As :meth:`Source.cases`."""
        others = self._others if scenario.pictures == 2 else self.pictures
        for picture, other in zip(self.pictures, others, strict=True):
            taken = {"a": picture, "b": other}
            case = picture_case(scenario, self.processor, _taker(taken))
            if case is not None:
                yield case

    @cached_property
    def _others(self) -> list[Picture]:
        """For each picture the next one, round the folder, that shows something else.

        Found from behind, so that each is compared with its neighbour alone: what differs from a copy differs from it.
        """
        total = len(self.pictures)
        differs = [not picture.same_as(self.pictures[(i + 1) % total]) for i, picture in enumerate(self.pictures)]
        others: list[Picture] = [self.pictures[0]] * total
        following = self.pictures[0]
        for i in reversed(range(2 * total)):  # twice round: the last pictures look for theirs among the first
            if differs[i % total]:
                following = self.pictures[(i + 1) % total]
            others[i % total] = following
        return others


def list_folder(folder: Path) -> list[Path]:
    """What a folder holds, by name; hidden files are passed over."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _taker(taken: dict[str, Picture]) -> TakePicture:
    return lambda letter, _: taken[letter]


def _name(path: Path) -> str:
    """A file's name as text: bytes that are no UTF-8 are escaped."""
    return os.fsencode(path.name).decode("utf-8", "backslashreplace")


def _kind(path: Path) -> str:
    if path.is_dir():
        return "a folder; folders within are not entered"
    return "a link to nothing" if path.is_symlink() and not path.exists() else "not a regular file"
