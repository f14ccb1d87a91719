"""Where the bytes of a content come from: buffers, files, streams; arrays and pictures are apart.

A source gives its parts when it is hashed and lets go of what it holds right after. Nothing here hashes or encodes.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ._files import checked_path, what_changed
from .errors import InvalidRequest, UnsupportedType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

#: Files up to this many bytes are read whole and hashed in one batch with others; longer ones are streamed.
WHOLE_FILE = 8 << 20


class ArrayForm(NamedTuple):
    """What an array is besides its data."""

    dtype: str
    shape: tuple[int, ...]
    attrs: Mapping[str, object]


class Parts(NamedTuple):
    """One content at the time it is hashed: `data` is contiguous, little-endian and in C order, or `_core.Pixels`."""

    form: ArrayForm | None
    data: Any


class Source:
    """Gives the parts of a content, or streams them."""

    #: Whether the bytes cannot change between two readings.
    immutable = False

    def parts(self) -> Parts | None:
        """The parts, or None where `stream` is to be hashed instead."""
        raise NotImplementedError

    def stream(self) -> AbstractContextManager[io.RawIOBase]:
        """A binary stream to hash in constant memory, and to leave only when all was read."""
        raise NotImplementedError

    def let_go(self) -> Source:
        """What remains once it was hashed."""
        return self

    def rereadable(self) -> Source:
        """This source, or another of the same bytes that can be read more than once."""
        return self

    def hint(self) -> object:
        """Something cheap and hashable that equal contents share."""
        return None


class LetGoError(Exception):
    """The bytes that a second algorithm asks for were let go of after the first."""


class Gone(Source):
    """Bytes that were let go of."""

    def parts(self) -> Parts:
        raise LetGoError

    def __repr__(self) -> str:
        return "let go"


class Buffer(Source):
    """An object in memory and how to read it."""

    def __init__(self, held: object, read: Callable[[Any], Parts], hint: object) -> None:
        self._held = held
        self._read = read
        self._hint = hint
        self.immutable = type(held) is bytes

    def parts(self) -> Parts:
        return self._read(self._held)

    def let_go(self) -> Source:
        if self.immutable:
            return self
        try:
            return Lingering(weakref.ref(self._held), self._read)
        except TypeError:  # a bytearray and others cannot be referenced weakly
            return Gone()

    def hint(self) -> object:
        return self._hint

    def __repr__(self) -> str:
        return f"not hashed yet, {type(self._held).__name__}"


class Lingering(Source):
    """An object that its owner may still hold: readable again as long as that is so."""

    def __init__(self, reference: weakref.ref[Any], read: Callable[[Any], Parts]) -> None:
        self._reference = reference
        self._read = read

    def parts(self) -> Parts:
        held = self._reference()
        return Gone().parts() if held is None else self._read(held)


class Fixed(Source):
    """A complete message."""

    immutable = True

    def __init__(self, message: bytes) -> None:
        self._message = message

    def parts(self) -> Parts:
        return Parts(None, self._message)

    def hint(self) -> object:
        return self._message

    def __repr__(self) -> str:
        return "not hashed yet"


class Frames(Source):
    """An ordered list of contents; their digests are its message."""

    immutable = True

    def __init__(self, frames: tuple[Any, ...]) -> None:
        self.frames = frames
        sources = (frame._source for frame in frames)
        self.depth: int = 1 + max((source.depth for source in sources if isinstance(source, Frames)), default=0)

    def hint(self) -> object:
        return self.frames

    def __repr__(self) -> str:
        return f"not hashed yet, {len(self.frames)} frames"


class File(Source):
    """A file by its path."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = checked_path(path, "content")
        self._size: int | None = None  # known once it was read: the file may change before
        found = os.stat(self._path)
        self._require_regular(found)
        if found.st_size == 0:  # /proc says so of files that do hold something
            with self._opened() as (file, _):
                if not file.read(1):
                    raise InvalidRequest("content", f"the file {self._path!r} has no bytes")

    def parts(self) -> Parts | None:
        with self._opened() as (file, before):
            if not 0 < before.st_size <= WHOLE_FILE:
                return None
            pieces = []
            while piece := file.read(WHOLE_FILE):
                pieces.append(piece)
            data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            self._finish(file, before, len(data))
        return Parts(None, data)

    @contextlib.contextmanager
    def stream(self) -> Iterator[io.RawIOBase]:
        with self._opened() as (file, before):
            counted = _Counted(file)
            yield counted
            self._finish(file, before, counted.count)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[tuple[Any, os.stat_result]]:
        """The file and its status. Never waits, even if a pipe has taken the file's place."""
        with open(self._path, "rb", buffering=0, opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            self._require_regular(status)
            yield file, status

    def _require_regular(self, status: os.stat_result) -> None:
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self._path)
        if not stat.S_ISREG(status.st_mode):
            raise UnsupportedType("content", f"{self._path!r} is no regular file; open it and give the stream")

    def _finish(self, file: Any, before: os.stat_result, count: int) -> None:
        """To be called when all was read: it must have been one file, and the whole of it."""
        problem = what_changed(before, (os.fstat(file.fileno()), os.stat(self._path)), count)
        if problem is not None:
            raise InvalidRequest("content", f"the file {self._path!r} {problem}")
        self._size = count

    def hint(self) -> object:
        return self._size

    def __repr__(self) -> str:
        return f"not hashed yet, {self._path!r}"


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


class Stream(Source):
    """An open binary stream, read once from where it stands."""

    def __init__(self, file: Any) -> None:
        self._counted = _Counted(file)
        self._begun = False

    def parts(self) -> None:
        return None

    @contextlib.contextmanager
    def stream(self) -> Iterator[io.RawIOBase]:
        # What is left after a reading that failed half way is not the content.
        if self._begun:
            raise InvalidRequest(
                "content",
                "is a stream that was read from already, by an earlier attempt or before a fork; make a new Content",
            )
        self._begun = True
        yield self._counted

    def rereadable(self) -> Source:
        with self.stream() as stream:
            return memory_source(io.BufferedReader(stream).read())

    def let_go(self) -> Source:
        return Gone()

    def hint(self) -> object:
        return self._counted.count or None

    def __repr__(self) -> str:
        return "not hashed yet, a stream"


class _Counted(io.RawIOBase):
    """Reads on from another stream and counts the bytes."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        into = hasattr(self._file, "readinto")
        try:
            got = self._file.readinto(buffer) if into else self._file.read(len(buffer))
        except ValueError:
            _require_open(self._file)
            raise
        if isinstance(got, str):
            raise UnsupportedType("content", "is a text stream; open the file in binary mode")
        size = got if into or got is None else len(got)
        if not into and size and size <= len(buffer):
            buffer[:size] = got
        if size is None:
            raise InvalidRequest("content", "is a stream that would block; read it whole first")
        if not 0 <= size <= len(buffer):
            raise InvalidRequest("content", f"is a stream that says it read {size} of at most {len(buffer)} bytes")
        self.count += size
        return int(size)


def _require_open(file: Any) -> None:
    if getattr(file, "closed", False) is True:
        raise InvalidRequest("content", "is a closed stream; it must be open until it is hashed") from None


def file_source(file: Any) -> Source:
    if isinstance(file, (str, os.PathLike)):
        return File(file)
    if isinstance(file, io.TextIOBase):
        raise UnsupportedType("content", "is a text stream; open the file in binary mode")
    if not hasattr(file, "read") and not hasattr(file, "readinto"):
        raise UnsupportedType("content", f"is a {type(file).__name__}; allowed are a path and a binary stream")
    _require_open(file)
    return Stream(file)


def memory_source(data: object) -> Source:
    if isinstance(data, str):
        raise UnsupportedType("content", "is text; an encoded file is bytes")
    try:
        view = memoryview(data)  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError) as error:
        raise UnsupportedType("content", f"is a {type(data).__name__}, which is no buffer of bytes ({error})") from None
    with view:
        size = view.nbytes
    if size == 0:
        raise InvalidRequest("content", "holds zero bytes")
    return Buffer(data, _read_bytes, size)


def _read_bytes(data: object) -> Parts:
    try:
        view = memoryview(data)  # type: ignore[arg-type]
    except ValueError as error:  # closed or released meanwhile
        raise InvalidRequest("content", f"is a {type(data).__name__} that cannot be read any more ({error})") from None
    return Parts(None, data if view.c_contiguous else view.tobytes())


_SCALARS = frozenset({type(None), bool, int, float, str, bytes})


def frozen(value: Any) -> Any:
    """A copy of a map or another value of one that nobody can write to."""
    if type(value) in _SCALARS:  # most are; to ask the abstract class takes longer than all the rest
        return value
    if isinstance(value, Mapping):
        return MappingProxyType({key: frozen(inner) for key, inner in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(frozen(inner) for inner in value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    return value
