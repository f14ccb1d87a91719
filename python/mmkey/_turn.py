"""Whose turn it is to work on a thing: a lock that no forked child waits for, and no thread that holds it already."""

from __future__ import annotations

import os
import threading


class HeldHereError(Exception):
    """The thread that asks for its turn has it already: to wait would be to wait for itself."""


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
        self._lock.acquire()
        self._owner = here

    def __exit__(self, *error: object) -> None:
        self._owner = None
        self._lock.release()
        _within.discard((self, threading.get_ident()))


#: Whoever is within or about to be: a turn and a thread. Always more than those that hold a lock, never fewer.
_within: set[tuple[Turn, int]] = set()


def _free_what_nobody_holds() -> None:
    here = threading.get_ident()
    for turn, thread in list(_within):
        if turn._owner != here:
            turn._lock = threading.Lock()
            turn._owner = None
        if thread != here:
            _within.discard((turn, thread))


os.register_at_fork(after_in_child=_free_what_nobody_holds)
