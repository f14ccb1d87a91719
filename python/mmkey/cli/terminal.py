"""What is written for a person: lines and progress by rich. Imported by a command's body, never for ``--help``."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from mmkey.cli.output import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")


def console(*, stderr: bool = False) -> Console:
    """A console that adds no colour or markup of its own to what it is given."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def say(where: Console, line: str, style: str = "") -> None:
    """One line, never wrapped, so that a path in it can be copied."""
    where.print(Text(printable(line), style=style), soft_wrap=True)


class Bars:
    """Progress bars; without a Progress nothing is drawn."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress

    def over(self, label: str, sequence: Sequence[T]) -> Iterator[T]:
        """Gives the sequence's elements and counts them."""
        step = self.steps(label, len(sequence))
        for element in sequence:
            yield element
            step()

    def steps(self, label: str, total: int) -> Callable[[], None]:
        """A function to call after each of ``total`` steps."""
        if self._progress is None:
            return lambda: None
        advance, task = self._progress.advance, self._progress.add_task(label, total=total)
        return lambda: advance(task)


@contextmanager
def bars(where: Console, *, shown: bool) -> Iterator[Bars]:
    """Progress bars while the block runs, if ``where`` is a terminal; they vanish at its end."""
    if not (shown and where.is_terminal):
        yield Bars(None)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=where, transient=True) as progress:
        yield Bars(progress)
