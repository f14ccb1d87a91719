"""Contents: what an item *is*, whatever holds it.

A content is one of four kinds: ``bytes`` (an encoded file), ``array`` (a decoded array or picture), ``frames`` (an
ordered list of contents) and ``opaque`` (an identifier that the caller vouches for). It is hashed once for each
algorithm, at the latest when a request with it is prepared, and then remembered.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO, NoReturn, final

import numpy as np

from . import _arrays, _core, _pictures, _sources, hashing
from ._turn import HeldHereError, Turn
from .errors import InvalidRequest, UnsupportedType, shown

__all__ = ["Content", "resolve"]

ALGORITHMS = ("sha256", "blake3")
#: Levels of frames within frames.
MAX_DEPTH = 32


@final
class Content:
    """What an item is: a kind and a digest, or what a digest will be made of.

    Made by one of its constructors, immutable, compared by value, safe under threads. A content stands for the bytes
    at the time it is hashed, so do not write to a buffer, file or picture before :meth:`digest` or
    :meth:`KeyEngine.prepare` has returned. By then it is let go: a second algorithm can be asked for as long as the
    caller keeps the object alive and unchanged (which is checked), and always for ``bytes`` objects and files.
    """

    __slots__ = ("__weakref__", "_hint", "_known", "_pinned", "_source", "_turn", "kind")

    #: ``"bytes"``, ``"array"``, ``"frames"`` or ``"opaque"``; part of the key, so equal digests of two kinds differ.
    kind: str
    _hint: object
    _known: dict[str, _core.Content]
    _pinned: _core.Content | None
    _source: _sources.Source
    _turn: Turn

    def __init__(self) -> None:
        raise TypeError("a Content is made by Content.of or one of the from_... constructors")

    @classmethod
    def _make(cls, kind: str, source: _sources.Source, hint: object = None) -> Content:
        self = object.__new__(cls)
        hint = source.hint() if hint is None else hint
        self._put(kind=kind, _source=source, _hint=hint, _known={}, _pinned=None, _turn=Turn())
        return self

    def _put(self, **slots: object) -> None:
        for name, value in slots.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Content is immutable; {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Content is immutable; {name} cannot be deleted")

    @staticmethod
    def from_bytes(data: object) -> Content:
        """An encoded file (JPEG, PNG, MP4, ...) in memory: any buffer of at least one byte, not copied if contiguous.

        Its digest is the plain one of those bytes, what ``sha256sum`` or ``b3sum`` prints.
        """
        return Content._make("bytes", _sources.memory_source(data))

    @staticmethod
    def from_file(file: str | os.PathLike[str] | BinaryIO) -> Content:
        """An encoded file by path or as an open binary stream, read from where it stands.

        Read in constant memory when it is hashed. A file that changes meanwhile is an error, one that cannot be read
        an :class:`OSError`. A stream is read once, so it has one algorithm only.
        """
        return Content._make("bytes", _sources.file_source(file))

    @staticmethod
    def from_array(array: object, attrs: Mapping[str, object] | None = None) -> Content:
        """A decoded array: NumPy, torch, or anything with a buffer, ``__array_interface__`` or DLPack on the CPU.

        The dtype (bool, 8 to 64 bit integers, float16/32/64, bfloat16), the shape and ``attrs`` are part of what it
        is; memory order, strides and byte order are not. Samples of audio need ``processing={"sampling_rate": ...}``
        in their item.
        """
        _core.array_head("u1", (1,), {} if attrs is None else attrs, 1)  # what no map can hold is told at once
        return Content._make("array", _arrays.array_source(array, attrs))

    @staticmethod
    def from_image(image: object) -> Content:
        """A Pillow picture of one frame: its pixels, mode, palette, transparency and EXIF orientation.

        No other metadata of the file enters. Several frames are an error: use :meth:`from_frames`.
        """
        return Content._make("array", _pictures.picture_source(image))

    @staticmethod
    def from_frames(contents: Iterable[object]) -> Content:
        """An ordered list of contents, or of whatever :meth:`of` takes: the decoded frames of a video."""
        if isinstance(contents, (str, bytes, bytearray, memoryview, Mapping, Content)) or hasattr(
            contents, "__array_interface__"
        ):
            raise UnsupportedType("content", f"is a {type(contents).__name__}; allowed is a list of frames")
        try:
            frames = tuple(Content.of(frame) for frame in contents)
        except RecursionError:
            raise InvalidRequest("content", "is a list that nests without end") from None
        except TypeError as error:
            if isinstance(error, UnsupportedType):
                raise
            raise UnsupportedType("content", f"is a {type(contents).__name__}; allowed is a list of frames") from None
        if not frames:
            raise InvalidRequest("content", "holds no frames")
        source = _sources.Frames(frames)
        if source.depth > MAX_DEPTH:
            raise InvalidRequest("content", f"nests frames deeper than {MAX_DEPTH} levels")
        return Content._make("frames", source)

    @staticmethod
    def from_digest(kind: str, algorithm: str, digest: bytes) -> Content:
        """A content known by its digest: 32 bytes, of the message that the key specification has for a kind.

        It may enter an engine of the other algorithm; two engines' keys meet only where the digests' algorithms do.
        """
        pinned = _core.Content(kind, algorithm, digest)
        content = Content._make(kind, _sources.Gone(), pinned.digest)
        content._put(_pinned=pinned, _known={algorithm: pinned})
        return content

    @staticmethod
    def opaque(identifier: str, *, namespace: str = "") -> Content:
        """An identifier that the caller vouches for (a uuid, a database key): equal identifier, equal content.

        It is unique within ``namespace``; within the empty one it must be unique everywhere.
        """
        return Content._make("opaque", _sources.Fixed(_core.opaque_message(identifier, namespace)))

    @staticmethod
    def of(thing: object) -> Content:
        """The content of anything unambiguous.

        A :class:`Content` as it is; a path object or binary stream as a file; ``bytes``, ``bytearray``, ``mmap`` and
        memoryviews of bytes as an encoded file; arrays, tensors and Pillow pictures decoded; a list or tuple as
        frames. A bare ``str`` could be a path or an identifier and is refused.
        """
        if isinstance(thing, Content):
            return thing
        if type(thing) is bytes:
            return Content.from_bytes(thing)
        if isinstance(thing, str):
            raise UnsupportedType(
                "content",
                f"{shown(thing)} is ambiguous; use Content.from_file for a path, Content.opaque for an identifier",
            )
        if (
            isinstance(thing, os.PathLike)
            or hasattr(thing, "readinto")
            or (hasattr(thing, "read") and not _is_mmap(thing))
        ):
            return Content.from_file(thing)  # type: ignore[arg-type]
        if _pictures.is_picture(thing):
            return Content.from_image(thing)
        if isinstance(thing, (bytes, bytearray)) or _is_mmap(thing) or _is_byte_view(thing):
            return Content.from_bytes(thing)
        if isinstance(thing, (list, tuple)):
            return Content.from_frames(thing)
        if thing is None:
            raise InvalidRequest("content", "is None; an item without content has no key")
        return Content.from_array(thing)

    def digest(self, algorithm: str) -> bytes:
        """The 32 bytes of the content's digest, made on the first call and then remembered.

        Raises :class:`InvalidRequest` for an algorithm that this content can no longer be hashed with, and for what
        turns out to hold no bytes.
        """
        if algorithm not in ALGORITHMS:
            raise InvalidRequest("algorithm", f"{shown(algorithm)} is unknown; allowed are {', '.join(ALGORITHMS)}")
        if self._pinned is not None and algorithm != self._pinned.algorithm:
            raise InvalidRequest(
                "algorithm",
                f"{shown(algorithm)} is not {self._pinned.algorithm!r}, of which this content's digest was made",
            )
        return resolve((self,), algorithm)[0].digest

    def text(self, algorithm: str) -> str:
        """``mmkey1:content:<kind>:<algorithm>:<64 hexadecimal digits>``."""
        self.digest(algorithm)
        return self._known[algorithm].text()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Content):
            return NotImplemented
        if self is other:
            return True
        if self.kind != other.kind or (self._pinned is None) != (other._pinned is None):
            return False
        if self._pinned is not None and other._pinned is not None:
            return self._pinned.text() == other._pinned.text()
        if not self._known and not other._known:
            _hash_by_every_algorithm(self, other)
        # Whatever both know, or can still make, decides.
        by_knowledge = sorted(ALGORITHMS, key=lambda name: -((name in self._known) + (name in other._known)))
        verdicts = (self._equals_under(other, algorithm) for algorithm in by_knowledge)
        return next((verdict for verdict in verdicts if verdict is not None), False)

    def _equals_under(self, other: Content, algorithm: str) -> bool | None:
        """Whether the digests are equal; None where one of the two was let go of unhashed."""
        try:
            return self.digest(algorithm) == other.digest(algorithm)
        except InvalidRequest:
            return None

    def __hash__(self) -> int:
        # Only what equal contents share before any digest is known: size, dtype and shape, frames, identifier.
        if self._hint is None:
            _hash_by_every_algorithm(self)
        return hash((self.kind, self._hint))

    def __repr__(self) -> str:
        known = ", ".join(content.text() for content in self._known.values())
        return f"<mmkey.Content {self.kind}: {known or self._source}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as its digests: those known, or both where none is."""
        if not self._known:
            _hash_by_every_algorithm(self)
        digests = tuple((content.algorithm, content.digest) for content in self._known.values())
        restore = functools.partial(_unpickle, pinned=self._pinned is not None, hint=self._hint)
        return restore, (self.kind, digests)


def _unpickle(kind: str, digests: tuple[tuple[str, bytes], ...], *, pinned: bool, hint: object) -> Content:
    if pinned:
        return Content.from_digest(kind, *digests[0])
    content = Content._make(kind, _sources.Gone(), hint)
    content._put(_known={algorithm: _core.Content(kind, algorithm, digest) for algorithm, digest in digests})
    return content


def _is_mmap(thing: object) -> bool:
    module = sys.modules.get("mmap")
    return module is not None and isinstance(thing, module.mmap)


def _is_byte_view(thing: object) -> bool:
    return (
        isinstance(thing, memoryview)
        and thing.ndim == 1
        and thing.format == "B"
        and not isinstance(thing.obj, np.ndarray)
    )


def resolve(contents: Sequence[Content], algorithm: str, threads: int = 1) -> tuple[_core.Content, ...]:
    """The digests of `contents` under `algorithm`, or of their own; what is not known yet is hashed in one batch."""
    found = []
    for content in contents:
        known = content._pinned or content._known.get(algorithm)
        if known is None:
            break
        found.append(known)
    else:
        return tuple(found)
    if algorithm not in ALGORITHMS:
        raise InvalidRequest("algorithm", f"{shown(algorithm)} is unknown; allowed are {', '.join(ALGORITHMS)}")
    _hash_all(contents, (algorithm,), threads)
    return tuple(content._pinned or content._known[algorithm] for content in contents)


def _hash_all(contents: Iterable[Content], algorithms: tuple[str, ...], threads: int = 1) -> None:
    """Hashes whatever of it is not known, by all of `algorithms` before anything is let go of."""
    unknown = {id(c): c for c in contents if c._pinned is None and not c._known.keys() >= set(algorithms)}
    frames = [frame for c in unknown.values() if isinstance(c._source, _sources.Frames) for frame in c._source.frames]
    if frames:
        _hash_all(frames, algorithms, threads)
    with contextlib.ExitStack() as locks:
        # In one order for all threads, so that two of them with the same contents never wait for each other.
        for key in sorted(unknown):
            try:
                locks.enter_context(unknown[key]._turn)
            except HeldHereError:
                raise InvalidRequest(
                    "content",
                    "is asked for by its own source, as by a stream's read(), itself or by way of another thread's: "
                    "it cannot wait for itself",
                ) from None
        try:
            if len(algorithms) > 1:
                for content in unknown.values():
                    source = content._source.rereadable()
                    content._put(_source=source, _hint=source.hint() if content._hint is None else content._hint)
            for algorithm in algorithms:
                left = [c for c in unknown.values() if algorithm not in c._known]
                digests = _digests(left, algorithm, threads)
                for content, digest in zip(left, digests, strict=True):
                    content._known[algorithm] = _core.Content(content.kind, algorithm, digest)
        finally:
            for content in unknown.values():
                if content._known:
                    done = len(content._known) == len(ALGORITHMS)
                    content._put(_source=_sources.Gone() if done else content._source.let_go())


def _hash_by_every_algorithm(*contents: Content) -> None:
    """For when it is not known yet which one an engine will ask for, and the bytes are about to be let go of."""
    try:
        _hash_all(contents, ALGORITHMS)
    except InvalidRequest:  # frames that have one digest alone give no more
        for content in contents:
            for algorithm in ALGORITHMS:
                with contextlib.suppress(InvalidRequest):
                    content.digest(algorithm)
            if not content._known:
                raise


def _digests(contents: list[Content], algorithm: str, threads: int) -> list[bytes]:
    messages = [_message(content, algorithm) for content in contents]
    batch = [message for message in messages if message is not None]
    done = iter(_core.digest_messages(batch, algorithm, threads))
    digests = []
    for content, message in zip(contents, messages, strict=True):
        digest = _stream_digest(content, algorithm, threads) if message is None else next(done)
        digests.append(digest)
        if content._known and not content._source.immutable:
            _verify(content, message, threads)
    return digests


def _message(content: Content, algorithm: str) -> tuple[bytes, Any] | None:
    """Head and body of the message that a content's digest is of; None where it is streamed."""
    source = content._source
    if isinstance(source, _sources.Frames):
        return _core.frames_message(list(resolve(source.frames, algorithm))), b""
    try:
        parts = source.parts()
    except _sources.LetGoError:
        known = ", ".join(content._known)
        raise InvalidRequest(
            "algorithm",
            f"{algorithm!r} is not {known}, by which this content was hashed before its bytes were let go of; "
            "make a new Content",
        ) from None
    if parts is None:
        return None
    if content._hint is None:
        content._put(_hint=source.hint())
    if parts.form is None:
        # Told once more: a file or buffer may have been emptied since the content was made.
        if memoryview(parts.data).nbytes == 0:
            raise InvalidRequest("content", "holds zero bytes")
        return b"", parts.data
    data = parts.data
    size = data.nbytes if isinstance(data, _core.Pixels) else memoryview(data).nbytes
    return _core.array_head(*parts.form, size), data


def _stream_digest(content: Content, algorithm: str, threads: int) -> bytes:
    with content._source.stream() as stream:
        digest = hashing.digest_file(stream, algorithm, threads=threads)
    if digest == hashing.digest(b"", algorithm):
        raise InvalidRequest("content", "holds zero bytes")
    if content._hint is None:
        content._put(_hint=content._source.hint())
    return digest


def _verify(content: Content, message: tuple[bytes, Any] | None, threads: int) -> None:
    """A second algorithm reads the bytes again; they must still be those that the first one saw."""
    first = next(iter(content._known.values()))
    if message is None:
        again = _stream_digest(content, first.algorithm, threads)
    else:
        again = _core.digest_messages([message], first.algorithm, threads)[0]
    if again != first.digest:
        raise InvalidRequest("content", f"changed after it was hashed with {first.algorithm}; make a new Content")
