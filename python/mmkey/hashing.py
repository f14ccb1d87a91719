"""Digests: what ``hashlib`` and PyPI's ``blake3`` offer, by the fastest kernels of this CPU."""

from __future__ import annotations

import io
import os
import stat
from typing import IO, TYPE_CHECKING, Any

from mmkey._core import blake3, digest, digest_many, kernels, selftest, sha256
from mmkey._files import checked_path, what_changed
from mmkey.errors import InvalidRequest, MmkeyError, UnsupportedType, shown

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["blake3", "digest", "digest_file", "digest_many", "kernels", "new", "selftest", "sha256"]

_PIECE = 1 << 20  # fits the second-level cache, so that the copy out of the page cache is hashed before it leaves
_THREADED_PIECE = 8 << 20


def new(name: str, data: Buffer = b"", *, usedforsecurity: bool = True, **options: Any) -> sha256 | blake3:
    """A streaming object by its algorithm's name, in any case, as ``hashlib.new`` takes it.

    ``options`` are those of the object: ``key``, ``derive_key_context``, ``max_threads`` for BLAKE3.
    Raises InvalidRequest (``name``).
    """
    folded = name.lower() if isinstance(name, str) else None
    if folded == "sha256":
        return sha256(data, usedforsecurity=usedforsecurity, **options)
    if folded == "blake3":
        return blake3(data, usedforsecurity=usedforsecurity, **options)
    raise InvalidRequest("name", f"is {shown(name)}; it must be 'sha256' or 'blake3'")


def digest_file(
    path_or_file: str | bytes | os.PathLike[str] | os.PathLike[bytes] | IO[bytes] | io.RawIOBase,
    algorithm: str = "sha256",
    *,
    threads: int = 1,
) -> bytes:
    """The 32-byte digest of a file, in constant memory: what ``sha256sum`` or ``b3sum`` prints.

    ``path_or_file``: a path, or a file object open for reading bytes, which is read from where it stands to its end.
    ``threads``: the most that may work on it (BLAKE3 only).

    The file is read and not mapped: a mapped file that another process cuts short kills the reader. A pipe is read to
    its end, and so is a file of /proc, whose size says nothing.
    Raises InvalidRequest (``path_or_file``) for what is no path or closed, and if the file's size, time or inode
    changes while it is read,
    UnsupportedType (``path_or_file``) for a file open for text, OSError as ``open`` does.
    """
    digest(b"", algorithm, threads=threads)  # bad arguments are told before the file is opened
    if isinstance(path_or_file, (str, bytes, os.PathLike)):
        path = checked_path(path_or_file, "path_or_file")
        with open(path, "rb", buffering=0) as file:
            return _digest_open(file, algorithm, threads, path=path)
    if isinstance(path_or_file, io.TextIOBase) or not hasattr(path_or_file, "read"):
        kind = type(path_or_file).__name__
        raise UnsupportedType("path_or_file", f"must be a path or a file open for reading bytes, not {kind}")
    try:
        if isinstance(path_or_file, io.BytesIO):
            return _digest_memory(path_or_file, algorithm, threads)
        return _digest_open(path_or_file, algorithm, threads, path=None)
    except ValueError as error:
        if isinstance(error, MmkeyError) or getattr(path_or_file, "closed", False) is not True:
            raise
        raise InvalidRequest("path_or_file", "is a closed file; it must be open for reading bytes") from None


def _digest_memory(file: io.BytesIO, algorithm: str, threads: int) -> bytes:
    with file.getbuffer() as view:
        result = digest(view[file.tell() :], algorithm, threads=threads)
    file.seek(0, os.SEEK_END)
    return result


def _digest_open(file: Any, algorithm: str, threads: int, *, path: Any) -> bytes:
    before = _status(file)
    hasher = sha256() if algorithm == "sha256" else blake3(max_threads=threads)
    size = 0
    if hasattr(file, "readinto"):
        piece = memoryview(bytearray(_THREADED_PIECE if threads > 1 and algorithm == "blake3" else _PIECE))
        while got := _some(file.readinto(piece)):
            hasher.update(piece[:got])
            size += got
    else:
        while data := _some(file.read(_PIECE)):
            hasher.update(data)
            size += len(data)
    if before is not None:
        # a file object may be read from its middle on, and its path be gone
        now, count = ([_status(file)], None) if path is None else ([_status(file), os.stat(path)], size)
        if problem := what_changed(before, now, count):
            raise InvalidRequest("path_or_file", problem)
    return hasher.digest()


def _some(result: Any) -> Any:
    """What a read gave; a non-blocking file that has nothing yet is an error and no end."""
    if result is None:
        raise BlockingIOError("path_or_file: a non-blocking file has no data yet")
    if isinstance(result, str):
        raise UnsupportedType("path_or_file", "gives text; open it for reading bytes")
    return result


def _status(file: Any) -> os.stat_result | None:
    """The status of a regular file; None for what has none that could change (a pipe, a file in memory)."""
    try:
        status = os.fstat(file.fileno())
    except (AttributeError, OSError):
        return None
    return status if stat.S_ISREG(status.st_mode) else None
