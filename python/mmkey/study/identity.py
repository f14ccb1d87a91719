"""The judge for a stream of requests: numbers that are equal where the KV depends on the same.

Comparing each request with each stored one would take a pass over both. Here each distinct prefix gets a number once,
from its logical fields: a table keyed by the fields themselves, which Python compares whole. No digest, no key.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from mmkey.study.judge import frozen

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from numpy.typing import NDArray

    from mmkey.study.logical import LogicalItem, LogicalRequest, Media, Scope

_NONE = -1


@dataclass(frozen=True, eq=False)
class Identity:
    """What one request is, by number.

    ``full``: everything that the request's KV depends on. ``images``: the pictures, in order of appearance.
    ``blocks[size]``: for each full block of that size the same two numbers of the prefix that ends with it, int64.
    """

    full: int
    images: int
    blocks: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]]


class Identities:
    """Gives requests their numbers. Two of one instance may be compared, and no others."""

    def __init__(self, block_sizes: Iterable[int]) -> None:
        self._sizes = sorted(set(block_sizes))
        self._numbers: dict[Hashable, int] = {}
        self._scopes: dict[int, tuple[Scope, int]] = {}
        self._media: dict[Hashable, list[tuple[Media, int]]] = {}
        self._media_count = 0
        self._items: WeakKeyDictionary[LogicalItem, tuple[int, int]] = WeakKeyDictionary()

    def __len__(self) -> int:
        """How many numbers there are: each is below this."""
        return len(self._numbers)

    def of(self, request: LogicalRequest) -> Identity:
        """The numbers of a request."""
        scope = self._scope(request.scope)
        placed = []
        for listed in request.by_appearance():
            media, item = self._item(request.items[listed])
            placed.append((media, item, request.ranges_of(listed)))
        raw = np.asarray(request.token_ids, dtype=np.uint32).tobytes()
        everything = ("request", scope, raw, tuple((item, ranges) for _, item, ranges in placed))
        images = _NONE
        for media, _, _ in placed:
            images = self._number(("images", images, media))
        blocks = {size: self._blocks(scope, raw, placed, size) for size in self._sizes}
        return Identity(self._number(everything), images, blocks)

    def _blocks(self, scope: int, raw: bytes, placed: list[Any], size: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """A prefix is its parent prefix, one block's tokens, and the items that begin in it, each whole."""
        count, step = len(raw) // (4 * size), 4 * size
        begun: dict[int, list[Any]] = {}
        for entry in placed:
            begun.setdefault(entry[2][0][0] // size, []).append(entry)
        full, images = np.empty(count, np.int64), np.full(count, _NONE, np.int64)
        parent, seen = self._number(("root", size, scope)), _NONE
        number = self._numbers.setdefault
        for block in range(count):
            tokens = raw[block * step : (block + 1) * step]
            new = begun.get(block)
            if new is None:
                key: Hashable = (parent, tokens)
            else:
                key = (parent, tokens, tuple((item, ranges) for _, item, ranges in new))
                for media, _, _ in new:
                    seen = self._number(("images", seen, media))
            parent = number(key, len(self._numbers))
            full[block], images[block] = parent, seen
        return full, images

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _scope(self, scope: Scope) -> int:
        known = self._scopes.get(id(scope))
        if known is None:
            fields = tuple(frozen(getattr(scope, f.name)) for f in dataclasses.fields(scope))
            known = self._scopes[id(scope)] = (scope, self._number(("scope", fields)))
        return known[1]

    def _item(self, item: LogicalItem) -> tuple[int, int]:
        known = self._items.get(item)
        if known is None:
            media = self._medium(item.media)
            fields = tuple(frozen(getattr(item, f.name)) for f in dataclasses.fields(item) if f.name != "media")
            known = self._items[item] = (media, self._number(("item", media, fields)))
        return known

    def _medium(self, media: Media) -> int:
        alike = self._media.setdefault(media.hint, [])
        for other, number in alike:
            if other is media or other.same_as(media):
                return number
        alike.append((media, self._media_count))
        self._media_count += 1
        return self._media_count - 1
