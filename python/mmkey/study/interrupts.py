"""Signals that end the process, put off or turned into an exit that cleans up."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Puts off what would end the process until what is within is done. Only the main thread is interrupted at all."""
    came: list[int] = []
    with _handled(lambda number, _: came.append(number), signal.SIGINT, *_ENDINGS, signal.SIGQUIT, signal.SIGALRM):
        yield
    for number in came:
        signal.raise_signal(number)


@contextmanager
def ends_by_unwinding() -> Iterator[None]:
    """SIGTERM, and the SIGHUP of a closed terminal, unwind the stack, so that nothing half-done is left behind."""

    def leave(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    with _handled(leave, *_ENDINGS):
        yield


_ENDINGS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], object], *signals: signal.Signals) -> Iterator[None]:
    """What is ignored stays so, as SIGHUP after nohup."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.getsignal(s) for s in signals if signal.getsignal(s) not in {signal.SIG_IGN, None}}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
