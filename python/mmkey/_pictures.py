"""Pillow pictures as the source of a content: pixels, mode, palette, transparency and EXIF orientation."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._sources import ArrayForm, Buffer, Parts, Source
from .errors import InvalidRequest, MmkeyError, UnsupportedType

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Bytes a pixel that count, for the modes that are arrays of bytes.
BYTE_MODES = {
    **dict.fromkeys(("L", "P"), 1),
    **dict.fromkeys(("LA", "La", "PA"), 2),
    **dict.fromkeys(("RGB", "YCbCr", "LAB", "HSV", "RGBX"), 3),
    **dict.fromkeys(("RGBA", "RGBa", "CMYK"), 4),
}
#: Modes of one number a pixel: the mode it counts as, how its bytes are read, its dtype.
NUMBER_MODES = {
    "I;16": ("I;16", "<u2", "u2"),
    "I;16L": ("I;16", "<u2", "u2"),
    "I;16B": ("I;16", ">u2", "u2"),
    "I;16N": ("I;16", "=u2", "u2"),
    "I": ("I", "=i4", "i4"),
    "F": ("F", "=f4", "f4"),
}
#: Modes whose pixels count as Pillow keeps them in memory: the bytes of a pixel, and how many of them count.
KEPT_AS_THEY_ARE = {
    **dict.fromkeys(("L", "P"), (1, 1)),
    **dict.fromkeys(("I;16", "I;16L", "I;16N"), (2, 2)),
    **dict.fromkeys(("RGB", "YCbCr", "HSV", "RGBX"), (4, 3)),
    **dict.fromkeys(("RGBA", "RGBa", "CMYK", "I", "F"), (4, 4)),
}
EXIF_ORIENTATION = 0x0112


def is_picture(thing: object) -> bool:
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(thing, module.Image)


def picture_source(image: Any) -> Source:
    if not is_picture(image):
        raise UnsupportedType("content", f"is a {type(image).__name__}; allowed is a PIL.Image.Image")
    with _reading():
        frames = getattr(image, "n_frames", 1)
    if frames != 1:
        raise InvalidRequest("content", f"is a picture of {frames} frames; use Content.from_frames")
    if image.mode != "1" and image.mode not in BYTE_MODES and image.mode not in NUMBER_MODES:
        raise UnsupportedType(
            "content", f"is a picture of mode {image.mode!r}; allowed are 1, {', '.join([*BYTE_MODES, *NUMBER_MODES])}"
        )
    if 0 in image.size:
        raise InvalidRequest("content", f"is a picture of size {image.size}, which holds no pixel")
    with _reading():
        image.load()  # now, since a lazily opened file may be closed by the time that it is hashed
    return Buffer(image, _read_picture, image.size)


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """Whatever Pillow raises for a picture that was closed or is broken, but for errors of reading its file."""
    try:
        yield
    except (MmkeyError, OSError, MemoryError):
        raise
    except Exception as error:
        raise InvalidRequest(
            "content", f"is a picture that cannot be read ({' '.join(str(error).split())}); it must be open and whole"
        ) from error


def _read_picture(image: Any) -> Parts:
    with _reading():
        return _picture_parts(image)


def _picture_parts(image: Any) -> Parts:
    width, height = image.size
    mode = image.mode
    data: Any
    form: tuple[str, tuple[int, ...]]
    if mode == "1":
        data = np.asarray(image).astype(np.uint8)
        form = ("b1", (height, width))
    elif mode in NUMBER_MODES:
        data = _pixels_in_place(image)
        mode, stored, dtype = NUMBER_MODES[mode]
        if data is None:
            data = np.frombuffer(image.tobytes(), stored).astype(f"<{dtype}", copy=False)
        form = (dtype, (height, width))
    else:
        depth = BYTE_MODES[mode]
        data = _pixels_in_place(image)
        if data is None:
            data = image.tobytes()
            if mode == "RGBX":  # its fourth byte means nothing
                data = np.ascontiguousarray(np.frombuffer(data, np.uint8).reshape(-1, 4)[:, :3])
        form = ("u1", (height, width) if depth == 1 else (height, width, depth))
    return Parts(ArrayForm(*form, _picture_attrs(image, mode)), data)


def _pixels_in_place(image: Any) -> _core.Pixels | None:
    """The pixels where Pillow keeps them, or None where it does not offer them: its copy is then read.

    Pillow before 13 offers pictures whose rows lie apart as if they did not, and crashes on some mapped ones.
    """
    layout = KEPT_AS_THEY_ARE.get(image.mode)
    if layout is None or int(sys.modules["PIL"].__version__.partition(".")[0]) < 13:
        return None
    try:
        schema, array = image.__arrow_c_array__()
        return _core.Pixels(schema, array, image.width * image.height, *layout)
    except ValueError:  # several blocks of memory, or rows that lie apart
        return None


def _picture_attrs(image: Any, mode: str) -> dict[str, object]:
    attrs: dict[str, object] = {"mode": mode}
    if mode in ("P", "PA"):
        palette_mode = image.palette.mode
        attrs["palette"] = [palette_mode, bytes(image.im.getpalette(palette_mode, palette_mode))]
    if "transparency" in image.info:
        attrs["transparency"] = image.info["transparency"]
    orientation = _orientation(image)
    if orientation is not None:
        attrs["orientation"] = orientation
    return attrs


def _orientation(image: Any) -> int | None:
    """The EXIF orientation if it turns the picture; a broken tag turns nothing."""
    try:
        value = image.getexif().get(EXIF_ORIENTATION)
    except Exception:  # noqa: BLE001 - Pillow raises whatever a broken block leads it to; decoders ignore it too
        return None
    return int(value) if isinstance(value, int) and 2 <= value <= 8 else None
