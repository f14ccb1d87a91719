"""Engines make keys: of whole requests, of blocks, and of sequences that grow."""

from __future__ import annotations

import itertools
import operator
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._core import Prepared
from .content import Content, resolve
from .errors import InvalidRequest, UnsupportedType, shown
from .request import Frozen, Item, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ._core import Checked

__all__ = [
    "BlockChain",
    "KeyEngine",
    "KeyText",
    "Prepared",
    "format_key",
    "full_multimodal_cache_key",
    "parse_key",
    "short_id",
    "text_only_cache_key",
    "text_plus_image_hash_cache_key",
]

Keys = NDArray[np.uint8]
_T = TypeVar("_T")

#: An engine with nothing declared to be a placeholder.
_NO_IDS: tuple[int, ...] = ()


class KeyEngine(Frozen):
    """Makes keys by one strategy, for one model in one configuration. Immutable; any number of threads may share one.

    Args:
        strategy: ``"A"`` text only (the unsafe baseline), ``"B"`` text and ordered media contents (the minimal
            defence), ``"C"`` everything that the KV depends on.
        algorithm: ``"sha256"`` or ``"blake3"``.
        block_size: tokens a block, at least 1.
        model_id: the model's name; C needs it. This and the next three enter keys of C alone.
        config: a map of what changes the KV of a text token (rope, kv_dtype, quantization); C needs one, even ``{}``.
        revision: the model's revision.
        adapter: a LoRA adapter's name, or ``(name, revision)``.
        salt: bytes, or text as its UTF-8; 16 secret random bytes or more keep a tenant from probing another's prompts.
        threads: the most that may hash contents at once.

    Raises:
        InvalidRequest, UnsupportedType: naming the argument.
    """

    __slots__ = ("_core", "_threads", "algorithm", "block_size", "strategy")

    strategy: str
    algorithm: str
    block_size: int
    _core: _core.Engine
    _threads: int

    def __init__(
        self,
        strategy: str,
        *,
        algorithm: str = "sha256",
        block_size: int = 16,
        model_id: str | None = None,
        config: Mapping[str, Any] | None = None,
        revision: str | None = None,
        adapter: str | tuple[str, str | None] | None = None,
        salt: bytes | str | None = None,
        threads: int = 1,
    ) -> None:
        name, adapter_revision = _split_adapter(adapter)
        core = _core.Engine(strategy, algorithm, block_size, model_id, config, revision, name, adapter_revision, salt)
        self._put(
            _core=core,
            _threads=_checked_threads(threads),
            strategy=str.__str__(strategy),
            algorithm=str.__str__(algorithm),
            block_size=operator.index(block_size),
        )

    def prepare(self, request: Request, *, placeholder_ids: Any = _NO_IDS) -> Prepared:
        """Validates a request, hashes in one batch what of it is not hashed yet, and brings it to normal form.

        Args:
            request: the request.
            placeholder_ids: token ids that stand for media and nothing else. One outside every range of the layout
                was typed by a user and is an error.

        Raises:
            InvalidRequest: before anything is hashed; ``field`` names the place, as in ``items[1].patch_grid``.
        """
        checked = self._checked(request, placeholder_ids)
        return self._core.prepare(checked, _contents(self, [request]))

    def prepare_many(self, requests: Sequence[Request], *, placeholder_ids: Any = _NO_IDS) -> list[Prepared]:
        """Several requests as :meth:`prepare` does it; the contents of all that are not hashed yet are one batch.

        Raises:
            InvalidRequest: before anything is hashed, for the first of them that is wrong.
        """
        requests = _tuple_of(requests)
        checked = [
            _under(f"requests[{i}]", self._checked, request, placeholder_ids) for i, request in enumerate(requests)
        ]
        contents = iter(_contents(self, requests))
        counts = [0 if self.strategy == "A" else len(request.items) for request in requests]
        return [
            self._core.prepare(one, tuple(itertools.islice(contents, count)))
            for one, count in zip(checked, counts, strict=True)
        ]

    def key(self, request: Request | Prepared) -> bytes:
        """The key of the whole request: 32 bytes."""
        return self._core.key(self._prepared(request))

    def block_keys(self, request: Request | Prepared, *, partial: bool = False) -> Keys:
        """The keys of the full blocks, each standing for the whole prefix up to its end.

        Args:
            request: the request; with items it needs a layout.
            partial: whether the tail that fills no block has a key too.

        Returns:
            uint8 array of shape (blocks, 32).
        """
        return self._core.block_keys(self._with_blocks(request), bool(partial))

    def block_keys_many(self, requests: Sequence[Request | Prepared], *, partial: bool = False) -> list[Keys]:
        """The block keys of several requests, their chains hashed side by side: faster than one after the other.

        Returns:
            for each request what :meth:`block_keys` gives.
        """
        prepared = [_under(f"requests[{i}]", self._with_blocks, r) for i, r in enumerate(_tuple_of(requests))]
        return self._core.block_keys_many(prepared, bool(partial))

    def chain(self, request: Request | Prepared) -> BlockChain:
        """The block keys of a sequence that starts with `request` and grows, as in decoding."""
        return BlockChain(self, request)

    @property
    def root(self) -> bytes:
        """The 32 bytes that every chain of this engine starts from: strategy, block size, and scope or salt."""
        return self._core.root

    @property
    def scope_text(self) -> str:
        """``mmkey1:scope:<algorithm>:<64 hexadecimal digits>``; strategy C only, since A and B have no scope."""
        if self._core.scope is None:
            raise InvalidRequest("strategy", f"{self.strategy!r} has no scope; allowed is 'C'")
        return f"mmkey1:scope:{self.algorithm}:{self._core.scope.hex()}"

    def __copy__(self) -> KeyEngine:
        return self

    def __deepcopy__(self, memo: object) -> KeyEngine:
        return self

    def _checked(self, request: Request, placeholder_ids: Any) -> Checked:
        if not isinstance(request, Request):
            raise UnsupportedType("request", f"is a {type(request).__name__}; allowed is a Request")
        return self._core.check(request._data, request._metadata, request._kinds, placeholder_ids)

    def _prepared(self, request: Request | Prepared) -> Prepared:
        return request if isinstance(request, Prepared) else self.prepare(request)

    def _with_blocks(self, request: Request | Prepared) -> Prepared:
        # Told before anything is hashed: such a request has a key, and no blocks.
        if isinstance(request, Request) and self.strategy == "B" and request.items and request.layout is None:
            raise InvalidRequest("layout", "is None; block keys of a request with items need a layout")
        return self._prepared(request)

    def __repr__(self) -> str:
        return f"KeyEngine({self.strategy!r}, algorithm={self.algorithm!r}, block_size={self.block_size})"


class BlockChain:
    """The block keys of a sequence that grows. Feeding it in pieces gives what one call gives.

    Offsets of a layout count from the start of the sequence and ``order`` numbers the items of that call. An item's
    whole layout is declared no later than its first token, and may reach past the tokens fed so far.
    """

    __slots__ = ("_core", "_engine")

    def __init__(self, engine: KeyEngine, request: Request | Prepared) -> None:
        self._engine = engine
        self._core = _core.Chain(engine._core.seed)
        if isinstance(request, Prepared):
            self._core.extend_prepared(request)
        else:
            self._extend(request)

    def copy(self) -> BlockChain:
        """An independent chain with the same tokens so far, as for a beam or a second sample."""
        other = object.__new__(BlockChain)
        other._engine = self._engine
        other._core = self._core.copy()
        return other

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> BlockChain:
        return self.copy()

    @property
    def keys(self) -> Keys:
        """The keys of all full blocks so far: uint8 array of shape (blocks, 32)."""
        return self._core.keys

    def __len__(self) -> int:
        """Tokens fed so far."""
        return len(self._core)

    def extend(self, token_ids: Any, items: Sequence[Item] = (), layout: Any = (), order: Any = None) -> Keys:
        """Appends tokens; returns the new keys, uint8 of shape (new blocks, 32). An error leaves all as it was."""
        return self._extend(Request(token_ids, items, layout, order))

    def _extend(self, request: Request) -> Keys:
        if not isinstance(request, Request):
            raise UnsupportedType("request", f"is a {type(request).__name__}; allowed is a Request")
        checked = self._core.check(request._data, request._metadata, request._kinds)
        return self._core.extend(checked, _contents(self._engine, [request]))


def _contents(engine: KeyEngine, requests: Sequence[Request]) -> tuple[_core.Content, ...]:
    """The requests' contents by digest, one after the other; strategy A looks at none."""
    contents = () if engine.strategy == "A" else [item.content for request in requests for item in request.items]
    return resolve(contents, engine.algorithm, engine._threads) if contents else ()


def _tuple_of(requests: Any) -> tuple[Any, ...]:
    """The requests, read once."""
    if not isinstance(requests, Request):
        try:
            return tuple(requests)
        except TypeError:
            pass
    raise UnsupportedType("requests", f"is a {type(requests).__name__}; allowed is a list of them")


def _under(place: str, work: Callable[..., _T], *arguments: Any) -> _T:
    """What `work` gives; an error of it names its field under `place`."""
    try:
        return work(*arguments)
    except (InvalidRequest, UnsupportedType) as error:
        raise error.within(f"{place}.{error.field}") from None


def _split_adapter(adapter: object) -> tuple[Any, Any]:
    if isinstance(adapter, (tuple, list)):
        if len(adapter) != 2:
            raise InvalidRequest("adapter", f"{shown(adapter)} is not a name or (name, revision)")
        if adapter[0] is None:
            raise UnsupportedType("adapter", "None is not text")
        return adapter[0], adapter[1]
    return adapter, None


def _checked_threads(threads: object) -> int:
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)):
        raise UnsupportedType("threads", f"{shown(threads)} is not an integer")
    if not 1 <= threads <= 1024:
        raise InvalidRequest("threads", f"{shown(threads)} is not in [1, 1024]")
    return int(threads)


# ---------------------------------------------------------------- the three strategies as plain functions


def text_only_cache_key(token_ids: Any, *, algorithm: str = "sha256", salt: bytes | str | None = None) -> bytes:
    """Strategy A: the key of the token ids alone, 32 bytes. Unsafe with media: two pictures share one key."""
    return KeyEngine("A", algorithm=algorithm, salt=salt).key(Request(token_ids))


def text_plus_image_hash_cache_key(
    token_ids: Any, images: Sequence[object], *, algorithm: str = "sha256", salt: bytes | str | None = None
) -> bytes:
    """Strategy B: the key of the token ids and of the ordered contents of `images`, 32 bytes.

    `images` holds whatever :meth:`Content.of` takes, in the order in which the items first appear in the prompt.
    """
    if isinstance(images, (str, bytes, bytearray, memoryview, Content)) or hasattr(images, "__array_interface__"):
        raise UnsupportedType("images", f"is a {type(images).__name__}; allowed is a list of contents")
    try:
        listed = list(images)
    except TypeError:
        raise UnsupportedType("images", f"is a {type(images).__name__}; allowed is a list of contents") from None
    items = [_image_item(image, f"images[{i}]") for i, image in enumerate(listed)]
    return KeyEngine("B", algorithm=algorithm, salt=salt).key(Request(token_ids, items, None))


def _image_item(image: object, place: str) -> Item:
    try:
        return Item(image)
    except (InvalidRequest, UnsupportedType) as error:
        raise error.within(place) from None


def full_multimodal_cache_key(
    token_ids: Any,
    items: Sequence[Item],
    layout: Any,
    order: Any = None,
    *,
    model_id: str,
    config: Mapping[str, Any],
    revision: str | None = None,
    adapter: str | tuple[str, str | None] | None = None,
    salt: bytes | str | None = None,
    algorithm: str = "sha256",
) -> bytes:
    """Strategy C: the key of everything that the KV depends on, 32 bytes. Arguments as for Request and KeyEngine."""
    engine = KeyEngine(
        "C", algorithm=algorithm, model_id=model_id, config=config, revision=revision, adapter=adapter, salt=salt
    )
    return engine.key(Request(token_ids, items, layout, order))


# ---------------------------------------------------------------- keys as text


class KeyText(NamedTuple):
    """What a key's text form holds."""

    key: bytes
    strategy: str
    algorithm: str
    level: str


_KEY_TEXT = re.compile(r"mmkey1:([ABC]):(request|block|partial):(sha256|blake3):([0-9a-f]{64})", re.ASCII)


def format_key(key: bytes, strategy: str, algorithm: str, level: str = "request") -> str:
    """``mmkey1:C:request:sha256:<64 hexadecimal digits>``; `level` is ``"request"``, ``"block"`` or ``"partial"``."""
    return _core.format_key(_key_bytes(key), strategy, algorithm, level)


def parse_key(text: str) -> KeyText:
    """The parts of a key's text form; anything but its one canonical spelling is an :class:`InvalidRequest`."""
    if not isinstance(text, str):
        raise UnsupportedType("text", f"is a {type(text).__name__}; allowed is text")
    match = _KEY_TEXT.fullmatch(text)
    if match is None:
        raise InvalidRequest(
            "text", f"{shown(text)} is not mmkey1:<A|B|C>:<request|block|partial>:<sha256|blake3>:<64 lowercase hex>"
        )
    strategy, level, algorithm, digits = match.groups()
    return KeyText(bytes.fromhex(digits), strategy, algorithm, level)


def short_id(key: bytes) -> int:
    """The last 8 bytes of a key, big-endian, unsigned: for tables and events only, never evidence for reuse."""
    return int.from_bytes(_key_bytes(key)[-8:], "big")


def _key_bytes(key: object) -> bytes:
    """A key as bytes: itself, or a row of `KeyEngine.block_keys`."""
    if (isinstance(key, np.ndarray) and key.dtype == np.uint8) or isinstance(key, (bytes, bytearray, memoryview)):
        found = bytes(key)
        if len(found) == 32:
            return found
        raise InvalidRequest("key", f"has {len(found)} bytes; allowed are 32")
    raise UnsupportedType("key", f"is a {type(key).__name__}; allowed are 32 bytes")
