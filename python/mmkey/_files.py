"""What is asked of every file that is hashed: a path that can be one, and no change while it was read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .errors import InvalidRequest, UnsupportedType, shown

if TYPE_CHECKING:
    from collections.abc import Iterable


def checked_path(path: Any, field: str) -> Any:
    """The path as text or bytes; an error under `field` for what can be none."""
    try:
        found = os.fspath(path)
        nul = b"\0" in os.fsencode(found)
    except TypeError:
        raise UnsupportedType(
            field, f"is a {type(path).__name__} that gives no path; allowed is text or bytes"
        ) from None
    except UnicodeEncodeError:
        raise InvalidRequest(field, f"{shown(path)} is no path: it holds a lone surrogate") from None
    if nul:
        raise InvalidRequest(field, f"{shown(path)} is no path: it holds a NUL, which ends every path")
    return found


def what_changed(before: os.stat_result, now: Iterable[os.stat_result | None], count: int | None) -> str | None:
    """Why what was read of a file has no digest, or None where it has one.

    `before` is the status at the beginning, `now` are those at the end: the open file's, and what the path leads to.
    `count`: the bytes read, where they must be the whole of it. Files of /proc say that they hold none, and end where
    reading ends.
    """
    identity = _identity(before)
    if any(status is None or _identity(status) != identity for status in now):
        return "changed while it was read: its size, time or inode is another now"
    if count is None or before.st_size in {count, 0}:
        return None
    return (
        f"gave {count} bytes where its size is {before.st_size}: it changed while it was read, or its file system "
        "does not know sizes; if so, open it and give the file object"
    )


def _identity(status: os.stat_result) -> tuple[int, ...]:
    """What stays the same as long as nobody writes to a file or puts another in its place."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
