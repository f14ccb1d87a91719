"""The one request that every mutation changes, and the files that it and its mutations are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw

from mmkey.study.logical import Clip, Picture, Pixels, Scope
from mmkey.study.pictures import look_at_own
from mmkey.study.recipe import Recipe, Shot, Text

if TYPE_CHECKING:
    from pathlib import Path

SCOPE = Scope(
    model_id="mmkey-study/tiny",
    config={"rope_theta": 10000.0, "kv_dtype": "float64", "attention": "sdpa"},
    revision="1",
    adapter=("captions", "1"),
    salt=b"the first tenant's salt",
)
SYSTEM = tuple(range(10, 34))
BETWEEN = (41, 42, 43, 44, 45)
THEN = (51, 52, 53)
QUESTION = tuple(range(61, 73))
FRAMES = (0, 2, 4, 6, 8, 10, 12, 14)
SAMPLING = {"frame_indices": list(FRAMES), "source_fps": 4.0, "sampled_fps": 2.0, "total_frames": 16}
_FRAMES = 16

# index, colour and alpha of the first picture's palette: the sky is see-through
_PALETTE = (
    (120, 180, 240, 90), (30, 90, 140, 255), (200, 60, 60, 255), (245, 245, 240, 255), (90, 60, 35, 255),
    (10, 200, 30, 0),  # nobody sees this colour
)  # fmt: skip


@dataclass(frozen=True)
class Workshop:
    """Writes the pictures of a study into a folder; each is drawn, none is shipped."""

    folder: Path

    def save(self, name: str, image: Image.Image, **options: Any) -> Picture:
        """A picture in a file of that name, by Pillow's writer for its suffix."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / name
        image.save(path, **options)
        return look_at_own(path, name)

    def copy(self, name: str, picture: Picture) -> Picture:
        """The same bytes in another file."""
        path = self.folder / name
        path.write_bytes(picture.path.read_bytes())
        return look_at_own(path, name)

    def base(self) -> Recipe:
        """System prompt, a picture file, text, a picture of pixels, text, a clip, a question."""
        return Recipe(
            SCOPE,
            (
                Text("system", SYSTEM),
                Shot("picture_1", self.save("ship.png", ship())),
                Text("between", BETWEEN),
                Shot("picture_2", Pixels(field_of_colours(), "colours")),
                Text("then", THEN),
                Shot("clip", clip(FRAMES), sampling=SAMPLING),
                Text("question", QUESTION),
            ),
        )


def ship(palette: tuple[tuple[int, int, int, int], ...] = _PALETTE) -> Image.Image:
    """A palette picture of 100 x 150 pixels, partly transparent, all of one index under alpha 0 in its corner."""
    image = Image.new("P", (150, 100), 0)
    image.putpalette(bytes(channel for colour in palette for channel in colour), "RGBA")
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 62, 150, 100), fill=1)
    draw.polygon([(30, 62), (115, 62), (98, 84), (46, 84)], fill=4)
    draw.polygon([(68, 12), (68, 60), (34, 60)], fill=3)
    draw.polygon([(74, 20), (74, 60), (104, 60)], fill=2)
    draw.rectangle((128, 4, 146, 22), fill=5)
    return image


def with_palette(index: int, colour: tuple[int, int, int, int]) -> Image.Image:
    """The ship with one palette entry changed."""
    return ship((*_PALETTE[:index], colour, *_PALETTE[index + 1 :]))


def field_of_colours() -> np.ndarray[Any, Any]:
    """uint8 [112, 168, 3], of a size that needs no resizing, all of it smooth but never alike."""
    y, x = np.mgrid[0:112, 0:168]
    channels = (x * 255 // 167, y * 255 // 111, (x * 3 + y * 5) % 251)
    return np.stack(channels, axis=-1).astype(np.uint8)


def clip(indices: Any, *, total: int = _FRAMES) -> Clip:
    """Frames of 56 x 56 pixels of a ball that flies by, at the given indices of ``total``."""
    frames = []
    for i in indices:
        image = Image.new("RGB", (56, 56), (150, 205, 240))
        x = 4 + 48 * i // total
        ImageDraw.Draw(image).ellipse((x - 6, 20 + i, x + 6, 32 + i), fill=(230, 120, 30))
        frames.append(np.asarray(image))
    return Clip(tuple(frames), f"ball at {', '.join(map(str, indices))}")
