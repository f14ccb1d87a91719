"""Clips: the study's own (an animated WebP by Pillow) and the user's (by PyAV), and two ways to sample one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageSequence, UnidentifiedImageError

from mmkey.study.errors import StudyError

FrameReader = Callable[[Path], Iterator["np.ndarray[Any, Any]"]]  # frames [height, width, 3] of uint8, in order
FPS = 20.0
_SIZE = (160, 120)
_FRAMES = 60


class UnusableClipError(StudyError):
    """A file that no clip can be read from; the message names it."""


@dataclass(frozen=True)
class ClipFile:
    """A clip on disk. ``size`` is (height, width); ``fps`` its frame rate, or None where the file gives none."""

    path: Path
    name: str
    size: tuple[int, int]
    total_frames: int
    fps: float | None
    reader: FrameReader

    def frames(self, indices: Sequence[int]) -> tuple[np.ndarray[Any, Any], ...]:
        """The frames at ascending ``indices``, decoded from the file: arrays [height, width, 3] of uint8."""
        wanted = set(indices)
        found = {i: frame for i, frame in enumerate(self.reader(self.path)) if i in wanted}
        return tuple(found[i] for i in indices)


# ---------------------------------------------------------------- the study's own clip


def draw_clip(path: Path) -> None:
    """Writes an animated WebP of 60 frames at 20 fps: a ball flies over a pitch, a bar counts the frames."""
    frames = []
    for i in range(_FRAMES):
        t = i / (_FRAMES - 1)
        image = Image.new("RGB", _SIZE, (150, 205, 240))
        draw = ImageDraw.Draw(image)
        draw.rectangle((0, 88, 160, 120), fill=(70, 150, 70))
        draw.rectangle((118, 58, 152, 90), outline=(245, 245, 245), width=3)
        x, y = 10 + 120 * t, 84 - 62 * math.sin(math.pi * t)
        draw.ellipse((x - 8, y - 8, x + 8, y + 8), fill=(230, 120, 30), outline=(90, 40, 10))
        draw.rectangle((0, 114, round(159 * t) + 1, 119), fill=(200, 30, 60))
        frames.append(image)
    first, *rest = frames
    first.save(path, format="WEBP", save_all=True, append_images=rest, duration=round(1000 / FPS), loop=0, quality=85)


def open_clip(path: Path, name: str) -> ClipFile:
    """Reads a clip's size and counts its frames by decoding it: Pillow for an animated picture, PyAV for the rest."""
    try:
        with Image.open(path) as image:
            if getattr(image, "n_frames", 1) > 1:
                image.load()  # some formats tell a frame's duration (ms) only then
                duration = image.info.get("duration")
                return _counted(path, name, 1000 / duration if duration else None, _frames_by_pillow)
            raise UnusableClipError(f"{path}: a still picture, not a clip")
    except (UnidentifiedImageError, Image.DecompressionBombError):
        pass
    try:
        import av  # noqa: PLC0415 (the extra 'video', where a clip needs it)
    except ImportError:
        raise UnusableClipError(f"{path}: reading it needs the extra 'video': pip install 'mmkey[video]'") from None
    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise UnusableClipError(f"{path}: no video stream in it")
            rate = container.streams.video[0].average_rate
        return _counted(path, name, float(rate) if rate else None, _frames_by_av)
    except av.error.FFmpegError as problem:
        raise UnusableClipError(f"{path}: not a video that can be decoded: {problem.strerror}") from None


def _counted(path: Path, name: str, fps: float | None, reader: FrameReader) -> ClipFile:
    total, size = 0, (0, 0)
    for frame in reader(path):
        total, size = total + 1, frame.shape[:2]
    if total < 3:
        raise UnusableClipError(f"{path}: {total} frames; two ways of sampling need at least 3")
    return ClipFile(path, name, size, total, fps, reader)


def _frames_by_pillow(path: Path) -> Iterator[np.ndarray[Any, Any]]:
    with Image.open(path) as image:
        for frame in ImageSequence.Iterator(image):
            yield np.asarray(frame.convert("RGB"))


def _frames_by_av(path: Path) -> Iterator[np.ndarray[Any, Any]]:
    import av  # noqa: PLC0415 (the extra 'video', where a clip needs it)

    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            yield frame.to_ndarray(format="rgb24")


# ---------------------------------------------------------------- two ways to sample


def sample_by_stride(total: int, count: int) -> list[int]:
    """``count`` indices at equal strides from 0, rounded down (as Qwen2.5-VL: 0, 15, ..., 285 of 300)."""
    return [i * total // count for i in range(count)]


def sample_to_the_end(total: int, count: int) -> list[int]:
    """``count`` indices spread from the first frame to the last, rounded (as Qwen3-VL: 0, 16, ..., 299 of 300)."""
    return [round(i * (total - 1) / (count - 1)) for i in range(count)]
