"""What an image processor makes of a picture: resized size, patch grid, number of visual tokens.

``SquareProcessor`` is the default of the drawn study: every picture becomes 224x224, patches of 14, hence a grid of
16x16 and 256 visual tokens. ``NativeProcessor`` is for the user's own pictures: it keeps their shape, as Qwen2-VL's
does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from mmkey.study.logical import LogicalItem, Picture
from mmkey.study.pictures import UnusablePictureError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class View:
    """How a processor sees a picture; sizes are (height, width) in pixels, the grid (t, h, w) in patches."""

    original_size: tuple[int, int]
    resized_size: tuple[int, int]
    patch_grid: tuple[int, int, int]
    num_visual_tokens: int
    processing: Mapping[str, Any] = field(default_factory=dict)

    def item(self, picture: Picture) -> LogicalItem:
        """The picture as an item of a request."""
        return LogicalItem(
            "image",
            picture,
            self.original_size,
            self.resized_size,
            self.patch_grid,
            self.num_visual_tokens,
            processing=self.processing,
        )


class Processor(Protocol):
    """One way of resizing, and two others of the same picture that change its KV."""

    def view(self, size: tuple[int, int]) -> View:
        """The ordinary view of a picture of (height, width)."""

    def larger(self, size: tuple[int, int]) -> View:
        """The picture resized to half as much again: more visual tokens."""

    def reshaped(self, size: tuple[int, int]) -> View | None:
        """The picture resized to another shape with as many visual tokens, or None where there is none."""


@dataclass(frozen=True)
class SquareProcessor:
    """Every picture becomes a square (the larger view: half as much again), one visual token a patch."""

    side: int = 224
    patch: int = 14

    def _resized(self, size: tuple[int, int], height: int, width: int) -> View:
        grid = (1, height // self.patch, width // self.patch)
        processing = {"processor": "square", "patch_size": self.patch, "resample": "bicubic"}
        return View(size, (height, width), grid, grid[1] * grid[2], processing)

    def view(self, size: tuple[int, int]) -> View:
        """As :meth:`Processor.view`."""
        return self._resized(size, self.side, self.side)

    def larger(self, size: tuple[int, int]) -> View:
        """As :meth:`Processor.larger`."""
        return self._resized(size, self.side * 3 // 2, self.side * 3 // 2)

    def reshaped(self, size: tuple[int, int]) -> View | None:
        """As :meth:`Processor.reshaped`."""
        return self._resized(size, self.side // 2, self.side * 2)


@dataclass(frozen=True)
class NativeProcessor:
    """Keeps a picture's shape: sides are multiples of patch x merge, one visual token for merge x merge patches."""

    patch: int = 14
    merge: int = 2
    min_pixels: int = 56 * 56
    max_pixels: int = 1280 * 28 * 28

    def _units(self, size: tuple[int, int]) -> tuple[int, int]:
        factor = self.patch * self.merge
        tall, wide = smart_resize(*size, factor, self.min_pixels, self.max_pixels)
        return tall // factor, wide // factor

    def _of_units(self, size: tuple[int, int], tall: int, wide: int) -> View:
        factor = self.patch * self.merge
        processing = {
            "processor": "native",
            "patch_size": self.patch,
            "merge_size": self.merge,
            "resample": "bicubic",
        }
        grid = (1, tall * self.merge, wide * self.merge)
        return View(size, (tall * factor, wide * factor), grid, tall * wide, processing)

    def view(self, size: tuple[int, int]) -> View:
        """As :meth:`Processor.view`."""
        return self._of_units(size, *self._units(size))

    def larger(self, size: tuple[int, int]) -> View:
        """As :meth:`Processor.larger`."""
        tall, wide = self._units(size)
        return self._of_units(size, (3 * tall + 1) // 2, (3 * wide + 1) // 2)

    def reshaped(self, size: tuple[int, int]) -> View | None:
        """As :meth:`Processor.reshaped`."""
        tall, wide = self._units(size)
        if tall != wide:
            return self._of_units(size, wide, tall)
        return self._of_units(size, 1, tall * wide) if tall > 1 else None


def smart_resize(height: int, width: int, factor: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """The (height, width) that Qwen2-VL's image processor resizes a picture to.

    Sides become multiples of ``factor``, the area stays within the two bounds, the shape is kept as nearly as that
    allows. A side more than 200 times the other raises UnusablePictureError, as the processor refuses it.
    """
    if max(height, width) > 200 * min(height, width):
        raise UnusablePictureError(f"{height}x{width}: one side is more than 200 times the other")
    tall, wide = (max(factor, round(side / factor) * factor) for side in (height, width))
    if tall * wide > max_pixels:
        shrink = math.sqrt(height * width / max_pixels)
        tall, wide = (max(factor, math.floor(side / shrink / factor) * factor) for side in (height, width))
    elif tall * wide < min_pixels:
        grow = math.sqrt(min_pixels / (height * width))
        tall, wide = (math.ceil(side * grow / factor) * factor for side in (height, width))
    return tall, wide
