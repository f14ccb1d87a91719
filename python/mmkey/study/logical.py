"""Logical requests: what a consumer would compute from, field by field, before any key is made of it.

The judge works on these. They hold the media themselves, never a digest of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Media(Protocol):
    """A picture or a clip, which can be told apart from another by its own bytes or pixels."""

    @property
    def name(self) -> str:
        """What results call it."""

    def same_as(self, other: Media) -> bool:
        """Whether both show the same: equal encoded bytes, or else equal decoded pixels."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A still picture in a file, as a viewer sees it: orientation applied, palette resolved.

    ``size`` is (height, width). ``checksum`` is of the pixels: two that differ prove that the pictures do, two that
    agree prove nothing.
    """

    path: Path
    name: str
    size: tuple[int, int]
    checksum: int

    def same_as(self, other: Media) -> bool:
        """Compares the files' bytes, then what they show."""
        from mmkey.study.pictures import same_file_bytes, same_pixels  # noqa: PLC0415 (pictures knows this module)

        if not isinstance(other, Picture):
            return False
        if self.path == other.path or same_file_bytes(self.path, other.path):
            return True
        alike = self.size == other.size and self.checksum == other.checksum
        return alike and same_pixels(self.path, other.path)


@dataclass(frozen=True, eq=False)
class Clip:
    """The frames that were sampled from a clip: arrays [height, width, 3] of uint8, in order."""

    frames: tuple[Any, ...]
    name: str

    def same_as(self, other: Media) -> bool:
        """Compares frame by frame, pixel by pixel."""
        if not isinstance(other, Clip) or len(self.frames) != len(other.frames):
            return False
        return all(a.shape == b.shape and bool((a == b).all()) for a, b in zip(self.frames, other.frames, strict=True))


@dataclass(frozen=True, eq=False)
class LogicalItem:
    """One picture or clip as the processor made it into embeddings; sizes are (height, width), the grid (t, h, w)."""

    modality: str
    media: Media
    original_size: tuple[int, int]
    resized_size: tuple[int, int]
    patch_grid: tuple[int, int, int]
    num_visual_tokens: int
    sampling: Mapping[str, Any] | None = None
    processing: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Scope:
    """What every position's KV depends on beside the prompt."""

    model_id: str
    config: Mapping[str, Any]
    revision: str | None = None
    adapter: tuple[str, str | None] | None = None
    salt: bytes | None = None


@dataclass(frozen=True, eq=False)
class LogicalRequest:
    """A prompt. ``token_ids`` is expanded (placeholders included), ``text_ids`` the text alone.

    ``layout`` are the items' ranges (offset, length), ascending; ``order`` names the item of each.
    """

    scope: Scope
    text_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    items: tuple[LogicalItem, ...]
    layout: tuple[tuple[int, int], ...]
    order: tuple[int, ...]

    @classmethod
    def pictures_first(
        cls, scope: Scope, items: tuple[LogicalItem, ...], text_ids: tuple[int, ...], placeholder: Mapping[str, int]
    ) -> LogicalRequest:
        """All items, one after the other, then the text. ``placeholder`` gives the id that fills each modality."""
        token_ids: list[int] = []
        layout = []
        for item in items:
            layout.append((len(token_ids), item.num_visual_tokens))
            token_ids += [placeholder[item.modality]] * item.num_visual_tokens
        return cls(scope, text_ids, (*token_ids, *text_ids), items, tuple(layout), tuple(range(len(items))))

    def ranges_of(self, item: int) -> tuple[tuple[int, int], ...]:
        """The ranges of one item, ascending."""
        return tuple(r for r, which in zip(self.layout, self.order, strict=True) if which == item)
