"""The simulator: requests go through a cache under one strategy's keys, and each hit is put before the judge.

Two granularities. *Request*: one key for the whole request; a hit saves its whole prefill. *Prefix*: the longest
leading run of full blocks whose keys are stored. Keys come from the engine alone, verdicts from the judge alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import mmkey
from mmkey.study.logical import Clip, LogicalItem, LogicalRequest, Picture
from mmkey.study.prefix_index import PrefixIndex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mmkey.study.judge import Relation

STRATEGIES = ("A", "B", "C")
GRANULARITIES = ("request", "prefix")


@dataclass(frozen=True)
class Settings:
    """What a study is run with; ``kv_bytes`` is the KV of one token."""

    algorithm: str = "sha256"
    block_size: int = 12
    kv_bytes: int = 256
    strategies: tuple[str, ...] = STRATEGIES


@dataclass(frozen=True)
class Verdict:
    """One lookup, judged. ``by_image`` and ``by_full`` are true_hit, false_hit or safe_miss.

    ``tokens`` and ``blocks`` are what the hit gives back, right or wrong; ``wrong_blocks`` and ``wrong_tokens`` those
    whose KV is another's by full identity.
    """

    by_image: str
    by_full: str
    total_blocks: int
    blocks: int
    tokens: int
    wrong_blocks: int
    wrong_tokens: int
    unsafe_reasons: tuple[str, ...]


def _verdict(*, found: bool, right: bool) -> str:
    return "safe_miss" if not found else "true_hit" if right else "false_hit"


# ---------------------------------------------------------------- from logical requests to the engine's


def content_of(item: LogicalItem) -> mmkey.Content:
    """A picture is its encoded file, read anew; a clip is the frames sampled from it."""
    if isinstance(item.media, Picture):
        return mmkey.Content.from_file(item.media.path)
    if isinstance(item.media, Clip):
        return mmkey.Content.from_frames([mmkey.Content.from_array(frame) for frame in item.media.frames])
    raise TypeError(f"{type(item.media).__name__} is neither a Picture nor a Clip")


def items_of(request: LogicalRequest) -> list[mmkey.Item]:
    """The engine's items of a logical request, in its order."""
    return [
        mmkey.Item(
            content_of(item),
            modality=item.modality,
            original_size=item.original_size,
            resized_size=item.resized_size,
            patch_grid=item.patch_grid,
            num_visual_tokens=item.num_visual_tokens,
            sampling=item.sampling,
            processing=item.processing,
        )
        for item in request.items
    ]


def prompt(request: LogicalRequest, items: Sequence[mmkey.Item]) -> mmkey.Request:
    """The expanded prompt with its layout: what every strategy is given for block keys, and C for its request key."""
    return mmkey.Request(request.token_ids, items, request.layout, request.order)


def text_alone(request: LogicalRequest, items: Sequence[mmkey.Item]) -> mmkey.Request:
    """The text ids without placeholders, and no layout: what A and B are given for request keys."""
    return mmkey.Request(request.text_ids, items, None)


# ---------------------------------------------------------------- the caches


class Cache(Protocol):
    """A cache at one granularity: requests go in under numbers of the caller's, lookups come back judged."""

    def store(self, request: LogicalRequest, items: Sequence[mmkey.Item], number: int) -> None:
        """Stores a request under the caller's number for it."""

    def look_up(self, request: LogicalRequest, items: Sequence[mmkey.Item], relations: Sequence[Relation]) -> Verdict:
        """``relations[n]`` is the judge's comparison of stored request n with this one."""


@dataclass
class RequestCache:
    """One key a request, first come first stored; ``settings`` give the counting rules."""

    engine: mmkey.KeyEngine
    strategy: str
    settings: Settings
    _stored: dict[bytes, int] = field(default_factory=dict)

    def _prepare(self, request: LogicalRequest, items: Sequence[mmkey.Item]) -> mmkey.Prepared:
        return self.engine.prepare((prompt if self.strategy == "C" else text_alone)(request, items))

    def store(self, request: LogicalRequest, items: Sequence[mmkey.Item], number: int) -> None:
        """Stores a request under the caller's number for it."""
        self._stored.setdefault(self.engine.key(self._prepare(request, items)), number)

    def look_up(self, request: LogicalRequest, items: Sequence[mmkey.Item], relations: Sequence[Relation]) -> Verdict:
        """``relations[n]`` is the judge's comparison of stored request n with this one.

        Blocks are those of the expanded prompt, the last one counted though it is not full.
        """
        prepared = self._prepare(request, items)
        number = self._stored.get(self.engine.key(prepared))
        tokens = len(request.token_ids)
        blocks = -(-tokens // self.settings.block_size)
        if number is None:
            return Verdict("safe_miss", "safe_miss", blocks, 0, 0, 0, 0, tuple(prepared.unsafe))
        relation = relations[number]
        right = relation.same
        return Verdict(
            _verdict(found=True, right=relation.same_images),
            _verdict(found=True, right=right),
            blocks,
            blocks,
            tokens,
            0 if right else blocks,
            0 if right else tokens,
            tuple(prepared.unsafe),
        )


@dataclass
class PrefixCache:
    """Full blocks by their keys, one slot a block; a slot remembers whose KV it holds."""

    engine: mmkey.KeyEngine
    settings: Settings
    _index: PrefixIndex = field(init=False)
    _owner: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._index = PrefixIndex(self.engine)

    def store(self, request: LogicalRequest, items: Sequence[mmkey.Item], number: int) -> None:
        """Stores a request's full blocks under the caller's number for it."""
        blocks = len(request.token_ids) // self.settings.block_size
        slots = range(len(self._owner), len(self._owner) + blocks)
        self._owner += [number] * blocks
        self._index.insert(self.engine.prepare(prompt(request, items)), slots)

    def look_up(self, request: LogicalRequest, items: Sequence[mmkey.Item], relations: Sequence[Relation]) -> Verdict:
        """Each reused block is judged by what its own KV depends on, the verdict by what all of them depend on."""
        prepared = self.engine.prepare(prompt(request, items))
        slots = self._index.match(prepared).slots
        size, wrong, images_right = self.settings.block_size, 0, True
        for block, slot in enumerate(slots):
            relation, end = relations[self._owner[slot]], (block + 1) * size
            wrong += end > relation.shared_tokens
            images_right &= relation.same_images_within(end)
        found = len(slots) > 0
        return Verdict(
            _verdict(found=found, right=images_right),
            _verdict(found=found, right=wrong == 0),
            len(request.token_ids) // size,
            len(slots),
            len(slots) * size,
            wrong,
            wrong * size,
            tuple(prepared.unsafe),
        )
