"""The study's own renderer: sizes, grids and token counts as Qwen2.5-VL's processor gives them, without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmkey.study.logical import Clip, LogicalItem, Picture
from mmkey.study.processors import smart_resize
from mmkey.study.recipe import DEFAULT_OPTIONS, Renderer, modality_of

if TYPE_CHECKING:
    from mmkey.study.recipe import Shot

PATCH, MERGE, TEMPORAL_PATCH = 14, 2, 2


def size_of(shot: Shot) -> tuple[int, int]:
    """(height, width) of what a shot shows, as the processor sees it."""
    if isinstance(shot.media, Picture):
        return shot.media.size
    array = shot.media.frames[0] if isinstance(shot.media, Clip) else shot.media.array  # type: ignore[attr-defined]
    return (int(array.shape[0]), int(array.shape[1]))


def resized(shot: Shot) -> tuple[int, int]:
    """(height, width) that the processor resizes to; the option ``resize_to`` overrides the rule."""
    if "resize_to" in shot.options:
        tall, wide = shot.options["resize_to"]
        return (tall, wide)
    return smart_resize(*size_of(shot), PATCH * MERGE, shot.options["min_pixels"], shot.options["max_pixels"])


class NativeRenderer(Renderer):
    """Patches of 14, 2 x 2 patches a token, two frames a temporal patch."""

    options = frozenset({*DEFAULT_OPTIONS, "resize_to", "crop", "back_end"})
    name = "native"

    def item(self, shot: Shot) -> LogicalItem:
        """As :meth:`Renderer.item`."""
        tall, wide = resized(shot)
        frames = len(shot.media.frames) if isinstance(shot.media, Clip) else TEMPORAL_PATCH
        grid = (-(-frames // TEMPORAL_PATCH), tall // PATCH, wide // PATCH)
        sizes = {"patch_size": PATCH, "merge_size": MERGE, "temporal_patch_size": TEMPORAL_PATCH}
        return LogicalItem(
            modality_of(shot),
            shot.media,
            shot.original_size or size_of(shot),
            (tall, wide),
            grid,
            grid[0] * grid[1] * grid[2] // MERGE**2,
            sampling=shot.sampling,
            processing={"processor": self.name, **sizes, **shot.options},
        )
