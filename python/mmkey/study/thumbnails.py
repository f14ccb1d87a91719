"""Small copies of what a study looked at, as data URIs, so that a page made from the results alone can show them."""

from __future__ import annotations

import base64
import io
import warnings
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from mmkey.study.logical import Clip, Picture
from mmkey.study.pictures import turned

if TYPE_CHECKING:
    from pathlib import Path

    from mmkey.study.logical import Media

_SIDE = 96  # pixels of the longer side
_FRAME = (48, 48)  # of a clip's contact sheet
_COLUMNS = 4


class Thumbnails:
    """Makes each thumbnail once. ``by_name`` are all that were asked for, by the media's name in the results."""

    def __init__(self) -> None:
        self.by_name: dict[str, str] = {}
        self._by_path: dict[Path, str] = {}

    def add(self, media: Media) -> None:
        """Makes a picture's thumbnail, or a clip's contact sheet; other media have none."""
        if media.name in self.by_name:
            return
        if isinstance(media, Picture):
            if media.path not in self._by_path:
                self._by_path[media.path] = _data_uri(_picture(media.path))
            self.by_name[media.name] = self._by_path[media.path]
        elif isinstance(media, Clip):
            self.by_name[media.name] = _data_uri(_contact_sheet(media))


def _picture(path: Path) -> Image.Image:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # broken EXIF: the picture stands all the same
        with Image.open(path) as image:
            image.draft("RGB", (2 * _SIDE, 2 * _SIDE))
            seen = _eight_bit(turned(image)).convert("RGBA")
    seen.thumbnail((_SIDE, _SIDE))
    ground = Image.new("RGBA", seen.size, "white")
    return Image.alpha_composite(ground, seen).convert("RGB")


def _eight_bit(image: Image.Image) -> Image.Image:
    """Modes of 16 bits, 32 bits or floats as grey, their darkest value black and their brightest white."""
    if not image.mode.startswith(("I", "F")):
        return image
    values = np.nan_to_num(np.asarray(image, dtype=np.float64), posinf=0.0, neginf=0.0)
    low, high = values.min(), values.max()
    return Image.fromarray(((values - low) * (255 / (high - low) if high > low else 0)).astype(np.uint8))


def _contact_sheet(clip: Clip) -> Image.Image:
    """The frames, four in a row, from left to right and from top to bottom."""
    rows = -(-len(clip.frames) // _COLUMNS)
    sheet = Image.new("RGB", (_COLUMNS * _FRAME[0], rows * _FRAME[1]), "white")
    for i, frame in enumerate(clip.frames):
        small = Image.fromarray(frame)
        small.thumbnail(_FRAME)
        row, column = divmod(i, _COLUMNS)
        sheet.paste(small, (column * _FRAME[0], row * _FRAME[1]))
    return sheet


def _data_uri(image: Image.Image) -> str:
    """WebP, which holds a thumbnail in one or two kilobytes."""
    buffer = io.BytesIO()
    image.save(buffer, format="WEBP", quality=60, method=4)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
