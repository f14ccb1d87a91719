"""Still pictures with Pillow: drawing the study's own, looking at the user's, comparing two of them."""

from __future__ import annotations

import warnings
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw, ImageOps, UnidentifiedImageError

from mmkey.study.errors import StudyError
from mmkey.study.logical import Picture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FORMATS = ("JPEG", "PNG", "WEBP")  # a JPEG of several pictures (MPO) opens as the first of them
_EIGHT_BIT = {"1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "LAB", "HSV"}
_CHUNK = 1 << 20
_STRIP = 256
# what a viewer does for each value of the EXIF orientation tag
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class UnusablePictureError(Exception):
    """A file that the study leaves out; the message is the reason, without the file's name."""


# ---------------------------------------------------------------- the study's own pictures


def _gradient(size: tuple[int, int], top: tuple[int, int, int], bottom: tuple[int, int, int]) -> Image.Image:
    """A vertical gradient between two colours; size is (width, height)."""
    ramp = Image.linear_gradient("L").resize(size)
    return ImageOps.colorize(ramp, top, bottom)


def _harbour() -> Image.Image:
    image = _gradient((640, 480), (250, 190, 120), (250, 235, 200))
    draw = ImageDraw.Draw(image)
    draw.ellipse((430, 120, 530, 220), fill=(255, 245, 180))
    draw.rectangle((0, 300, 640, 480), fill=(30, 90, 140))
    for row in range(312, 480, 24):
        for column in range((row // 24 % 2) * 40, 640, 80):
            draw.arc((column, row, column + 40, row + 14), 180, 360, fill=(120, 180, 220), width=3)
    draw.polygon([(140, 310), (400, 310), (350, 370), (190, 370)], fill=(120, 40, 30))
    draw.polygon([(265, 90), (265, 300), (150, 300)], fill=(245, 245, 240))
    draw.polygon([(280, 130), (280, 300), (370, 300)], fill=(200, 60, 60))
    return image


def _forest() -> Image.Image:
    image = _gradient((600, 450), (70, 120, 190), (190, 220, 235))
    draw = ImageDraw.Draw(image)
    draw.polygon([(0, 260), (170, 90), (330, 250), (450, 130), (600, 270), (600, 450), (0, 450)], fill=(120, 130, 150))
    draw.rectangle((0, 330, 600, 450), fill=(60, 110, 50))
    for i, x in enumerate(range(30, 600, 76)):
        base = 350 + i * 37 % 60
        draw.rectangle((x - 7, base, x + 7, base + 40), fill=(90, 60, 35))
        for tier in range(3):
            half, y = 44 - 11 * tier, base - 42 * tier
            draw.polygon([(x - half, y), (x + half, y), (x, y - 70)], fill=(20, 70 + 18 * tier, 40))
    return image


_DRAWINGS: dict[str, tuple[Callable[[], Image.Image], str, dict[str, Any]]] = {
    "harbour": (_harbour, "png", {}),
    "forest": (_forest, "jpg", {"quality": 90}),
}


def draw_picture(name: str, stem: Path) -> Path:
    """Draws one of the study's pictures into ``stem`` plus its suffix; the same bytes whenever Pillow is the same."""
    draw, suffix, options = _DRAWINGS[name]
    path = stem.with_name(f"{stem.name}.{suffix}")
    draw().save(path, **options)
    return path


# ---------------------------------------------------------------- pictures from anywhere


def look_at_own(path: Path, name: str) -> Picture:
    """A picture that the study wrote, as :func:`look_at` gives it; a full disk may have cut it short without a word."""
    try:
        return look_at(path, name)
    except UnusablePictureError as problem:
        raise StudyError(f"{path}: was not written whole ({problem}); is there room on the disk?") from None


def look_at(path: Path, name: str) -> Picture:
    """Decodes a picture once, whole; UnusablePictureError says why it cannot be used."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            warnings.simplefilter("ignore", UserWarning)  # broken EXIF: the picture stands all the same
            with Image.open(path, formats=FORMATS) as image:
                frames = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)
                if frames > 1:
                    raise UnusablePictureError(f"{frames} frames; a still picture has one")  # noqa: TRY301
                upright = turned(image)
                width, height = upright.size
                checksum = zlib.crc32(_mode(upright).encode())
                for strip in _strips(upright):
                    checksum = zlib.crc32(strip, checksum)
    except UnusablePictureError:
        raise
    except UnidentifiedImageError:
        reason = "empty" if path.stat().st_size == 0 else "not a JPEG, PNG or WebP picture"
        raise UnusablePictureError(reason) from None
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise UnusablePictureError(f"more than {Image.MAX_IMAGE_PIXELS:,} pixels, Pillow's limit") from None
    except OSError as problem:
        raise UnusablePictureError(problem.strerror or f"broken: {problem}") from None
    except Exception as problem:  # noqa: BLE001 (a decoder raises whatever a damaged file makes it raise)
        raise UnusablePictureError(f"broken: {str(problem) or type(problem).__name__}") from None
    return Picture(path, name, (height, width), checksum)


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(0x0112, 1))
    except Exception:  # noqa: BLE001 (an EXIF block that cannot be read turns nothing)
        return 1


def same_file_bytes(a: Path, b: Path) -> bool:
    """Whether two files hold equal bytes, in constant memory."""
    if a.stat().st_size != b.stat().st_size:
        return False
    with a.open("rb") as left, b.open("rb") as right:
        while True:
            mine, theirs = left.read(_CHUNK), right.read(_CHUNK)
            if mine != theirs:
                return False
            if not mine:
                return True


def same_pixels(a: Path, b: Path) -> bool:
    """Whether two files decode to the same picture as a viewer sees it: orientation applied, palettes resolved."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with Image.open(a) as left, Image.open(b) as right:
            mine, theirs = turned(left), turned(right)
            if (mine.size, _mode(mine)) != (theirs.size, _mode(theirs)):
                return False
            return all(x == y for x, y in zip(_strips(mine), _strips(theirs), strict=True))


def decoded(path: Path) -> np.ndarray[Any, Any]:
    """A file's pixels as a viewer sees them: uint8 [height, width, 3], or 4 where there is transparency."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with Image.open(path) as image:
            upright = turned(image)
            transparent = "A" in upright.getbands() or "transparency" in upright.info
            return np.asarray(upright.convert("RGBA" if transparent else "RGB"))


def turned(image: Image.Image) -> Image.Image:
    """The picture as a viewer sees it: loaded, and turned as its EXIF orientation says."""
    turn = _TURNS.get(_orientation(image))
    image.load()
    return image if turn is None else image.transpose(turn)


def _mode(image: Image.Image) -> str:
    return "RGBA" if image.mode in _EIGHT_BIT else image.mode


def _strips(image: Image.Image) -> Iterator[bytes]:
    """The pixels from top to bottom, in pieces that stay small whatever the picture's size."""
    width, height = image.size
    for top in range(0, height, _STRIP):
        yield image.crop((0, top, width, min(top + _STRIP, height))).convert(_mode(image)).tobytes()
