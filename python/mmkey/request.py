"""What a request is made of: token ids, items with their metadata, and where the items stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from . import _core
from ._sources import frozen
from .content import Content
from .errors import InvalidRequest, UnsupportedType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Audio", "Image", "Item", "Request", "Video"]


class Frozen:
    """Attributes are set once, by the constructor."""

    __slots__ = ()

    def _put(self, **slots: object) -> None:
        for name, value in slots.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable; {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable; {name} cannot be deleted")


class Item(Frozen):
    """A picture, video, sound or prompt embedding in a prompt: its content and what its embeddings depend on besides.

    Immutable, compared by value, picklable. Strategies A and B need the content alone; C needs all that the modality
    has, and says in ``prepare`` what is missing.

    Args:
        content: a :class:`Content`, or whatever :meth:`Content.of` takes.
        modality: ``"image"``, ``"video"``, ``"audio"`` or ``"embeds"`` (prompt embeddings: an array content).
        original_size: ``(height, width)`` in pixels as the processor saw it; images and videos.
        resized_size: ``(height, width)`` in pixels after resizing; images and videos.
        patch_grid: ``(t, h, w)`` patches, or ``(h, w)`` for an image, which means ``(1, h, w)``.
        num_visual_tokens: the prompt positions that the item fills, whatever the modality.
        sampling: for a video a mapping: ``frame_indices`` (integers that never descend), ``source_fps`` and
            ``sampled_fps`` (frames a second, or None), ``total_frames`` (or None), and what else the sampler takes.
        processing: whatever else determines the embeddings: the processor's name, version and resolved options;
            ``sampling_rate`` in Hz for sound. Options that change nothing stay out.

    Raises:
        InvalidRequest: a value that is not allowed; ``field`` names it.
        UnsupportedType: an object of a wrong type.
    """

    __slots__ = ("_metadata", "_processing", "_sampling", "content")

    content: Content
    _metadata: _core.ItemMetadata
    _sampling: Mapping[str, Any] | None
    _processing: Mapping[str, Any]

    def __init__(
        self,
        content: object,
        *,
        modality: str = "image",
        original_size: Sequence[int] | None = None,
        resized_size: Sequence[int] | None = None,
        patch_grid: Sequence[int] | None = None,
        num_visual_tokens: int | None = None,
        sampling: Mapping[str, Any] | None = None,
        processing: Mapping[str, Any] | None = None,
    ) -> None:
        metadata = _core.ItemMetadata(
            modality, original_size, resized_size, patch_grid, num_visual_tokens, sampling, processing
        )
        shown_sampling = None if sampling is None else _frozen_sampling(sampling, metadata.frame_indices)
        shown_processing = frozen({} if processing is None else processing)
        if sampling is not None or processing is not None:
            # What is shown, and pickled, must be what is keyed: a map may change, or answer otherwise when asked again.
            again = _core.ItemMetadata(
                modality, original_size, resized_size, patch_grid, num_visual_tokens, shown_sampling, shown_processing
            )
            if again.encoded != metadata.encoded:
                raise InvalidRequest("processing", "or sampling changed while it was read")
        self._put(
            content=content if isinstance(content, Content) else Content.of(content),
            _metadata=metadata,
            _sampling=shown_sampling,
            _processing=shown_processing,
        )

    @property
    def modality(self) -> str:
        """``"image"``, ``"video"``, ``"audio"`` or ``"embeds"``."""
        return self._metadata.modality

    @property
    def original_size(self) -> tuple[int, int] | None:
        """``(height, width)`` in pixels as the processor saw it."""
        return self._metadata.original_size

    @property
    def resized_size(self) -> tuple[int, int] | None:
        """``(height, width)`` in pixels after resizing."""
        return self._metadata.resized_size

    @property
    def patch_grid(self) -> tuple[int, ...] | None:
        """``(t, h, w)`` patches."""
        return self._metadata.patch_grid

    @property
    def num_visual_tokens(self) -> int | None:
        """Prompt positions that the item fills."""
        return self._metadata.num_visual_tokens

    @property
    def sampling(self) -> Mapping[str, Any] | None:
        """How the frames of a video were taken, read-only."""
        return self._sampling

    @property
    def processing(self) -> Mapping[str, Any]:
        """Whatever else determines the embeddings, read-only."""
        return self._processing

    def _identity(self) -> tuple[str, bytes]:
        return self._metadata.modality, self._metadata.encoded

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Item):
            return NotImplemented
        return self._identity() == other._identity() and self.content == other.content

    def __hash__(self) -> int:
        return hash((self._identity(), self.content))

    def __repr__(self) -> str:
        given = [f"modality={self.modality!r}"] if type(self) is Item else []
        given += [
            f"{name}={value!r}"
            for name in ("original_size", "resized_size", "patch_grid", "num_visual_tokens", "sampling", "processing")
            if (value := _thaw(getattr(self, name)))
        ]
        return f"{type(self).__name__}({', '.join([repr(self.content), *given])})"

    def __reduce__(self) -> tuple[Any, ...]:
        metadata = {
            "modality": self.modality,
            "original_size": self.original_size,
            "resized_size": self.resized_size,
            "patch_grid": self.patch_grid,
            "num_visual_tokens": self.num_visual_tokens,
            "sampling": _thaw(self.sampling),
            "processing": _thaw(self.processing),
        }
        return _make_item, (type(self), self.content, metadata)


class _OfModality(Item):
    __slots__ = ()
    _modality: ClassVar[str]

    def __init__(self, content: object, **metadata: Any) -> None:
        given = metadata.pop("modality", self._modality)
        if given != self._modality:
            raise TypeError(f"{type(self).__name__} has the modality {self._modality!r}; use Item for {given!r}")
        super().__init__(content, modality=self._modality, **metadata)


class Image(_OfModality):
    """An :class:`Item` of modality ``"image"``."""

    __slots__ = ()
    _modality = "image"


class Video(_OfModality):
    """An :class:`Item` of modality ``"video"``."""

    __slots__ = ()
    _modality = "video"


class Audio(_OfModality):
    """An :class:`Item` of modality ``"audio"``."""

    __slots__ = ()
    _modality = "audio"


class Request(Frozen):
    """A prompt: token ids with placeholders expanded, the items in it, and the ranges that they fill.

    Immutable (token ids are copied), compared by value, picklable.

    Args:
        token_ids: the tokenizer's ids, below 2**32: a list, tuple, range, or any one-dimensional array of integers
            (buffer, ``__array_interface__``, DLPack on the CPU).
        items: the items, in any order.
        layout: ``(offset, length)`` pairs in tokens, ascending: maximal runs of positions whose embeddings come from
            an item. None means that the layout is not known: enough for request keys of A and B.
        order: the index in ``items`` of each range; by default 0, 1, 2, ...

    Raises:
        InvalidRequest, UnsupportedType: what is no id, pair or item. Whether the layout fits the prompt and the items
            is told by ``prepare``.
    """

    __slots__ = ("_data", "_kinds", "_metadata", "items")

    items: tuple[Item, ...]
    _data: _core.RequestData
    _metadata: tuple[_core.ItemMetadata, ...]
    _kinds: tuple[str, ...]

    def __init__(
        self,
        token_ids: Any,
        items: Sequence[Item] = (),
        layout: Any = (),
        order: Any = None,
    ) -> None:
        data = _core.RequestData(token_ids, layout, order)
        items = _checked_items(items)
        self._put(
            items=items,
            _data=data,
            _metadata=tuple(item._metadata for item in items),
            _kinds=tuple(item.content.kind for item in items),
        )

    @property
    def token_ids(self) -> NDArray[np.uint32]:
        """The ids: a read-only uint32 array of shape (tokens,), not a copy."""
        return self._data.token_ids

    @property
    def layout(self) -> tuple[tuple[int, int], ...] | None:
        """``(offset, length)`` of each range in tokens, or None."""
        return self._data.layout

    @property
    def order(self) -> tuple[int, ...] | None:
        """The index in ``items`` of each range, or None for 0, 1, 2, ..."""
        return self._data.order

    def __len__(self) -> int:
        return len(self._data)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Request):
            return NotImplemented
        return self._data.equal(other._data) and self.items == other.items

    def __hash__(self) -> int:
        return hash((self.token_ids.tobytes(), self.items, self.layout, self.order))

    def __repr__(self) -> str:
        ranges = "no layout" if self.layout is None else f"{len(self.layout)} ranges"
        return f"Request({len(self)} tokens, {len(self.items)} items, {ranges})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Request, (self.token_ids.copy(), self.items, self.layout, self.order)


def _make_item(kind: type[Item], content: Content, metadata: dict[str, Any]) -> Item:
    return kind(content, **metadata)


def _checked_items(items: Sequence[Item]) -> tuple[Item, ...]:
    if isinstance(items, Item):
        raise UnsupportedType("items", "is one Item; allowed is a list of them")
    try:
        found = tuple(items)
    except TypeError:
        raise UnsupportedType("items", f"is a {type(items).__name__}; allowed is a list of Item") from None
    for i, item in enumerate(found):
        if not isinstance(item, Item):
            raise UnsupportedType(f"items[{i}]", f"is a {type(item).__name__}; allowed is an Item")
    return found


def _frozen_sampling(sampling: Mapping[str, Any], frame_indices: tuple[int, ...]) -> Mapping[str, Any]:
    """A copy, with the indices as they were read: an array of the caller's could be written to."""
    read = {"frame_indices": frame_indices} if frame_indices else {}
    return MappingProxyType({key: frozen(value) for key, value in sampling.items()} | read)


def _thaw(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _thaw(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [_thaw(inner) for inner in value]
    return value
