"""From logical requests to the engine's: contents, items, prompts, and an engine for each scope."""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import mmkey
from mmkey.study.logical import Clip, Digested, Picture, Pixels

if TYPE_CHECKING:
    from mmkey.study.logical import LogicalItem, LogicalRequest, Media, Scope

ALGORITHMS = ("sha256", "blake3")


def content_of(media: Media) -> mmkey.Content:
    """A picture is its encoded file, read anew; pixels are an array; a clip is the frames sampled from it."""
    if isinstance(media, Picture):
        return mmkey.Content.from_file(media.path)
    if isinstance(media, Pixels):
        return mmkey.Content.from_array(media.array)
    if isinstance(media, Clip):
        return mmkey.Content.from_frames([mmkey.Content.from_array(frame) for frame in media.frames])
    if isinstance(media, Digested):
        return mmkey.Content.from_digest("bytes", "sha256", media.digest)
    raise TypeError(f"{type(media).__name__} is none of Picture, Pixels, Clip and Digested")


def item_of(item: LogicalItem) -> mmkey.Item:
    """The engine's item of a logical one."""
    return mmkey.Item(
        content_of(item.media),
        modality=item.modality,
        original_size=item.original_size,
        resized_size=item.resized_size,
        patch_grid=item.patch_grid,
        num_visual_tokens=item.num_visual_tokens,
        sampling=item.sampling,
        processing=item.processing,
    )


def make_engine(strategy: str, scope: Scope, algorithm: str, block_size: int) -> mmkey.KeyEngine:
    """An engine for one scope. A and B have no place for it but the salt's."""
    fields: dict[str, Any] = {}
    if strategy == "C":
        fields = {
            "model_id": scope.model_id,
            "config": scope.config,
            "revision": scope.revision,
            "adapter": scope.adapter,
        }
    return mmkey.KeyEngine(strategy, algorithm=algorithm, block_size=block_size, salt=scope.salt, **fields)


class KeyMaker:
    """Makes the engine's requests of logical ones; engines and items are made once for each scope and logical item."""

    def __init__(self) -> None:
        self._engines: dict[tuple[int, str, str, int], mmkey.KeyEngine] = {}
        self._scopes: dict[int, Scope] = {}  # held, so that no other object gets the id of one that is known
        self._items: WeakKeyDictionary[LogicalItem, mmkey.Item] = WeakKeyDictionary()

    def engine(self, strategy: str, scope: Scope, algorithm: str, block_size: int) -> mmkey.KeyEngine:
        """The engine for one strategy and this very scope."""
        place = (id(scope), strategy, algorithm, block_size)
        engine = self._engines.get(place)
        if engine is None:
            self._scopes[id(scope)] = scope
            engine = self._engines[place] = make_engine(strategy, scope, algorithm, block_size)
        return engine

    def open(self, request: LogicalRequest) -> KeyedRequest:
        """What is asked of one request's keys, each made once."""
        return KeyedRequest(self, request)

    def items(self, request: LogicalRequest) -> list[mmkey.Item]:
        """The engine's items, in the request's order."""
        found = []
        for item in request.items:
            made = self._items.get(item)
            if made is None:
                made = self._items[item] = item_of(item)
            found.append(made)
        return found


class KeyedRequest:
    """One logical request as every engine sees it.

    For block keys, and C's request key, the expanded prompt with its layout. For request keys of A and B the text ids
    without placeholders, and no layout: all that those strategies ask for.
    """

    def __init__(self, maker: KeyMaker, request: LogicalRequest) -> None:
        items = maker.items(request)
        self._maker, self.logical = maker, request
        self._prompt = mmkey.Request(request.token_ids, items, request.layout, request.order)
        self._text = mmkey.Request(request.text_ids, items, None)
        self._prepared: dict[tuple[str, str, int, bool], tuple[mmkey.Prepared, int]] = {}
        self._keys: dict[tuple[str, str], tuple[bytes, tuple[str, ...], int]] = {}

    def prepared(
        self, strategy: str, algorithm: str, block_size: int, *, text_alone: bool = False
    ) -> tuple[mmkey.Prepared, int]:
        """The prepared request, and the nanoseconds that preparing it took: validation, contents and items hashed."""
        place = (strategy, algorithm, block_size, text_alone)
        known = self._prepared.get(place)
        if known is None:
            engine = self._maker.engine(strategy, self.logical.scope, algorithm, block_size)
            begun = perf_counter_ns()
            prepared = engine.prepare(self._text if text_alone else self._prompt)
            known = self._prepared[place] = (prepared, perf_counter_ns() - begun)
        return known

    def request_key(self, strategy: str, algorithm: str, block_size: int) -> tuple[bytes, tuple[str, ...], int]:
        """The request key, why it is unsafe if it is, and the nanoseconds of preparing and hashing.

        A request key does not depend on the block size, so one serves all of them.
        """
        known = self._keys.get((strategy, algorithm))
        if known is None:
            prepared, spent = self.prepared(strategy, algorithm, block_size, text_alone=strategy != "C")
            engine = self._maker.engine(strategy, self.logical.scope, algorithm, block_size)
            begun = perf_counter_ns()
            key = engine.key(prepared)
            spent += perf_counter_ns() - begun
            known = self._keys[strategy, algorithm] = (key, tuple(prepared.unsafe), spent)
        return known
