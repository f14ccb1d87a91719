"""Whose turn it is to work on a thing: a lock that no forked child waits for, and no thread that holds it already."""

from __future__ import annotations

import os
import threading


class HeldHereError(Exception):
    """Waiting would be for oneself: the thread has its turn already, or whoever has it waits for this thread."""


class Turn:
    """A context manager that one thread at a time enters, and no thread twice.

    A child forked while another thread was within finds it free. So what it guards must at every step be fit to be
    taken up by someone else.
    """

    __slots__ = ("_lock", "_owner")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None

    def __enter__(self) -> None:
        here = threading.get_ident()
        if self._owner == here:  # nobody else sets it to this
            raise HeldHereError
        _within.add((self, here))
        if not self._lock.acquire(blocking=False):
            self._wait(here)
        self._owner = here

    def _wait(self, here: int) -> None:
        """Waits, unless the thread that it would wait for waits for this one, itself or through others."""
        with _waiting.lock:  # of the threads of a ring the last to come here sees it whole
            _waiting.turns[here] = self
            awaited: Turn | None = self
            while awaited is not None:
                owner = awaited._owner
                if owner == here:
                    del _waiting.turns[here]
                    _within.discard((self, here))
                    raise HeldHereError
                awaited = None if owner is None else _waiting.turns.get(owner)
        try:
            self._lock.acquire()
        finally:
            _waiting.turns.pop(here, None)

    def __exit__(self, *error: object) -> None:
        self._owner = None
        self._lock.release()
        _within.discard((self, threading.get_ident()))


class _Waiting:
    """What each thread waits for that waits."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.lock = threading.Lock()
        self.turns: dict[int, Turn] = {}


_waiting = _Waiting()
#: Whoever is within or about to be: a turn and a thread. Always more than those that hold a lock, never fewer.
_within: set[tuple[Turn, int]] = set()


def _free_what_nobody_holds() -> None:
    _waiting.forget()
    here = threading.get_ident()
    for turn, thread in list(_within):
        if turn._owner != here:
            turn._lock = threading.Lock()
            turn._owner = None
        if thread != here:
            _within.discard((turn, thread))


os.register_at_fork(after_in_child=_free_what_nobody_holds)
