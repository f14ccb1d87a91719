"""Logical requests: what a consumer would compute from, field by field, before any key is made of it.

The judge works on these. They hold the media themselves, never a digest of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from pathlib import Path


class Media(Protocol):
    """A picture or a clip, which can be told apart from another by its own bytes or pixels."""

    @property
    def name(self) -> str:
        """What results call it."""

    @property
    def hint(self) -> Hashable:
        """Equal for media that show the same; what is told apart by it need not be compared."""

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

    @property
    def hint(self) -> Hashable:
        """The size."""
        return self.size

    def same_as(self, other: Media) -> bool:
        """Compares the files' bytes, then what they show."""
        from mmkey.study.pictures import same_file_bytes, same_pixels  # noqa: PLC0415 (pictures knows this module)

        if isinstance(other, Pixels):
            return other.same_as(self)
        if not isinstance(other, Picture):
            return False
        if self.path == other.path or same_file_bytes(self.path, other.path):
            return True
        alike = self.size == other.size and self.checksum == other.checksum
        return alike and same_pixels(self.path, other.path)


@dataclass(frozen=True, eq=False)
class Pixels:
    """A decoded picture: an array [height, width, channels], or [height, width] for grey."""

    array: Any
    name: str

    @property
    def hint(self) -> Hashable:
        """The size."""
        return tuple(self.array.shape[:2])

    def same_as(self, other: Media) -> bool:
        """Compares dtype, shape and values; a file shows the same where it decodes to these pixels."""
        from mmkey.study.pictures import decoded  # noqa: PLC0415 (pictures knows this module)

        array = decoded(other.path) if isinstance(other, Picture) else getattr(other, "array", None)
        if array is None or array.dtype != self.array.dtype or array.shape != self.array.shape:
            return False
        return bool((array == self.array).all())


@dataclass(frozen=True, eq=False)
class Digested:
    """A picture of which a stream gives no more than the file's SHA-256: ``shows`` numbers what it shows.

    Two files of one picture (another PNG level) have one ``shows`` and two digests.
    """

    shows: int
    digest: bytes

    @property
    def name(self) -> str:
        """The number."""
        return f"picture {self.shows}"

    @property
    def hint(self) -> Hashable:
        """The number."""
        return self.shows

    def same_as(self, other: Media) -> bool:
        """Whether the number is the same."""
        return isinstance(other, Digested) and self.shows == other.shows


@dataclass(frozen=True, eq=False)
class Clip:
    """The frames that were sampled from a clip: arrays [height, width, 3] of uint8, in order."""

    frames: tuple[Any, ...]
    name: str

    @property
    def hint(self) -> Hashable:
        """The number of frames, and their size."""
        return (len(self.frames), *(self.frames[0].shape if self.frames else ()))

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
        """The ranges of one item, ascending; where two touch they are one."""
        found: list[tuple[int, int]] = []
        for (offset, length), which in zip(self.layout, self.order, strict=True):
            if which != item:
                continue
            if found and sum(found[-1]) == offset:
                found[-1] = (found[-1][0], found[-1][1] + length)
            else:
                found.append((offset, length))
        return tuple(found)

    def by_appearance(self) -> list[int]:
        """The items' numbers in the order in which they first appear in the prompt."""
        return list(dict.fromkeys(self.order))
