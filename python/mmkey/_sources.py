"""Where the bytes of a content come from: buffers, arrays, pictures, files, streams.

A source gives its parts when it is hashed and lets go of what it holds right after. Nothing here hashes or encodes.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _core
from .errors import InvalidRequest, UnsupportedType, shown

if TYPE_CHECKING:
    from collections.abc import Callable

#: Files up to this many bytes are read whole and hashed in one batch with others; longer ones are streamed.
WHOLE_FILE = 8 << 20

ARRAYS = "bool, integers of 8 to 64 bits, float16, float32, float64 and bfloat16"


class ArrayForm(NamedTuple):
    """What an array is besides its data."""

    dtype: str
    shape: tuple[int, ...]
    attrs: Mapping[str, object]


class Parts(NamedTuple):
    """One content at the time it is hashed: `data` is contiguous, little-endian and in C order, or `_core.Pixels`."""

    form: ArrayForm | None
    data: Any


class Source:
    """Gives the parts of a content, or streams them."""

    #: Whether the bytes cannot change between two readings.
    immutable = False

    def parts(self) -> Parts | None:
        """The parts, or None where `stream` is to be hashed instead."""
        raise NotImplementedError

    def stream(self) -> Any:
        """A path or binary stream to hash in constant memory."""
        raise NotImplementedError

    def let_go(self) -> Source:
        """What remains once it was hashed."""
        return self

    def rereadable(self) -> Source:
        """This source, or another of the same bytes that can be read more than once."""
        return self

    def hint(self) -> object:
        """Something cheap and hashable that equal contents share."""
        return None


class LetGoError(Exception):
    """The bytes that a second algorithm asks for were let go of after the first."""


class Gone(Source):
    """Bytes that were let go of."""

    def parts(self) -> Parts:
        raise LetGoError

    def __repr__(self) -> str:
        return "let go"


class Buffer(Source):
    """An object in memory and how to read it."""

    def __init__(self, held: object, read: Callable[[Any], Parts], hint: object) -> None:
        self._held = held
        self._read = read
        self._hint = hint
        self.immutable = type(held) is bytes

    def parts(self) -> Parts:
        return self._read(self._held)

    def let_go(self) -> Source:
        if self.immutable:
            return self
        try:
            return Lingering(weakref.ref(self._held), self._read)
        except TypeError:  # a bytearray and others cannot be referenced weakly
            return Gone()

    def hint(self) -> object:
        return self._hint

    def __repr__(self) -> str:
        return f"not hashed yet, {type(self._held).__name__}"


class Lingering(Source):
    """An object that its owner may still hold: readable again as long as that is so."""

    def __init__(self, reference: weakref.ref[Any], read: Callable[[Any], Parts]) -> None:
        self._reference = reference
        self._read = read

    def parts(self) -> Parts:
        held = self._reference()
        return Gone().parts() if held is None else self._read(held)


class Fixed(Source):
    """A complete message."""

    immutable = True

    def __init__(self, message: bytes) -> None:
        self._message = message

    def parts(self) -> Parts:
        return Parts(None, self._message)

    def hint(self) -> object:
        return self._message

    def __repr__(self) -> str:
        return "not hashed yet"


class Frames(Source):
    """An ordered list of contents; their digests are its message."""

    immutable = True

    def __init__(self, frames: tuple[Any, ...]) -> None:
        self.frames = frames
        sources = (frame._source for frame in frames)
        self.depth: int = 1 + max((source.depth for source in sources if isinstance(source, Frames)), default=0)

    def hint(self) -> object:
        return self.frames

    def __repr__(self) -> str:
        return f"not hashed yet, {len(self.frames)} frames"


class File(Source):
    """A file by its path."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        found = os.stat(self._path)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self._path)
        if not stat.S_ISREG(found.st_mode):
            raise UnsupportedType("content", f"{self._path!r} is no regular file; open it and give the stream")
        self._size: int | None = None  # known once it was read: the file may change before
        if found.st_size == 0:
            raise InvalidRequest("content", f"the file {self._path!r} has no bytes")

    def parts(self) -> Parts | None:
        with open(self._path, "rb", buffering=0) as file:
            before = os.fstat(file.fileno())
            self._size = before.st_size
            if before.st_size > WHOLE_FILE:
                return None
            pieces = []
            while piece := file.read(WHOLE_FILE):
                pieces.append(piece)
            data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            after = os.fstat(file.fileno())
        if _identity(before) != _identity(after) or len(data) != before.st_size:
            raise InvalidRequest("content", f"the file {self._path!r} changed while it was read")
        return Parts(None, data)

    def stream(self) -> str:
        return self._path

    def hint(self) -> object:
        return self._size

    def __repr__(self) -> str:
        return f"not hashed yet, {self._path!r}"


class Stream(Source):
    """An open binary stream, read once from where it stands."""

    def __init__(self, file: Any) -> None:
        self._counted = _Counted(file)
        self._begun = False

    def parts(self) -> None:
        return None

    def stream(self) -> io.RawIOBase:
        # What is left after a reading that failed half way is not the content.
        if self._begun:
            raise InvalidRequest(
                "content", "is a stream that an earlier attempt read from and failed; make a new Content"
            )
        self._begun = True
        return self._counted

    def rereadable(self) -> Source:
        return memory_source(io.BufferedReader(self.stream()).read())

    def let_go(self) -> Source:
        return Gone()

    def hint(self) -> object:
        return self._counted.count or None

    def __repr__(self) -> str:
        return "not hashed yet, a stream"


class _Counted(io.RawIOBase):
    """Reads on from another stream and counts the bytes."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if hasattr(self._file, "readinto"):
            size = self._file.readinto(buffer)
        else:
            piece = self._file.read(len(buffer))
            if isinstance(piece, str):
                raise UnsupportedType("content", "is a text stream; open the file in binary mode")
            size = None if piece is None else len(piece)
            if size:
                buffer[:size] = piece
        if size is None:
            raise InvalidRequest("content", "is a stream that would block; read it whole first")
        if not 0 <= size <= len(buffer):
            raise InvalidRequest("content", f"is a stream that says it read {size} of at most {len(buffer)} bytes")
        self.count += size
        return int(size)


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def file_source(file: Any) -> Source:
    if isinstance(file, (str, os.PathLike)):
        return File(file)
    if isinstance(file, io.TextIOBase):
        raise UnsupportedType("content", "is a text stream; open the file in binary mode")
    if not hasattr(file, "read") and not hasattr(file, "readinto"):
        raise UnsupportedType("content", f"is a {type(file).__name__}; allowed are a path and a binary stream")
    return Stream(file)


def memory_source(data: object) -> Source:
    if isinstance(data, str):
        raise UnsupportedType("content", "is text; an encoded file is bytes")
    try:
        view = memoryview(data)  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError) as error:
        raise UnsupportedType("content", f"is a {type(data).__name__}, which is no buffer of bytes ({error})") from None
    with view:
        size = view.nbytes
    if size == 0:
        raise InvalidRequest("content", "holds zero bytes")
    return Buffer(data, _read_bytes, size)


def _read_bytes(data: object) -> Parts:
    view = memoryview(data)  # type: ignore[arg-type]
    return Parts(None, data if view.c_contiguous else view.tobytes())


_SCALARS = frozenset({type(None), bool, int, float, str, bytes})


def frozen(value: Any) -> Any:
    """A copy of a map or another value of one that nobody can write to."""
    if type(value) in _SCALARS:  # most are; to ask the abstract class takes longer than all the rest
        return value
    if isinstance(value, Mapping):
        return MappingProxyType({key: frozen(inner) for key, inner in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(frozen(inner) for inner in value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    return value


# ---------------------------------------------------------------- arrays


def array_source(array: object, attrs: Mapping[str, object] | None) -> Source:
    attrs = frozen({} if attrs is None else attrs)

    def read(held: object) -> Parts:
        return _array_parts(_to_numpy(held), attrs)

    form = _form(_to_numpy(array), attrs)
    return Buffer(array, read, (form.dtype, form.shape))


def _to_numpy(array: object) -> np.ndarray[Any, Any]:
    """The array over the same memory where that is possible."""
    if isinstance(array, np.ma.MaskedArray):
        raise UnsupportedType("content", "is a masked array; fill it first, its mask has no place in a content")
    if isinstance(array, (np.ndarray, np.generic)):
        return np.asarray(array)
    if isinstance(array, (str, bytes, bytearray)) or array is None:
        raise UnsupportedType("content", f"is a {type(array).__name__}, which is no array")
    if is_tensor(array):
        return _from_tensor(array)
    if hasattr(array, "__dlpack_device__"):
        return _from_dlpack(array)
    try:
        if hasattr(array, "__array_interface__"):
            return np.asarray(array)
        return np.asarray(memoryview(array))  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError) as error:
        raise UnsupportedType("content", f"is a {type(array).__name__}, which is no array ({error})") from None


def is_tensor(thing: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.Tensor)


def _from_tensor(tensor: Any) -> np.ndarray[Any, Any]:
    torch = sys.modules["torch"]
    try:
        on_cpu = tensor.detach().cpu().resolve_conj().resolve_neg()
        if on_cpu.dtype == torch.bfloat16:
            return _as_bfloat16(on_cpu.view(torch.int16).numpy())
        return np.asarray(on_cpu.numpy())
    except (TypeError, RuntimeError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise UnsupportedType(
            "content", f"is a {tensor.dtype} tensor on device {str(tensor.device)!r} that cannot be read ({reason})"
        ) from None


class _Bfloat16(np.ndarray[Any, Any]):
    """Marks the bits of bfloat16 values, for which NumPy has no dtype of its own."""


def _as_bfloat16(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return bits.view(np.uint16).view(_Bfloat16)


def _from_dlpack(array: Any) -> np.ndarray[Any, Any]:
    device = array.__dlpack_device__()
    if device != (1, 0):  # kDLCPU
        raise UnsupportedType("content", f"lies on DLPack device {shown(device)}; allowed is the CPU, (1, 0)")
    try:
        return np.from_dlpack(array)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise UnsupportedType("content", f"is an array that cannot be read ({error})") from None


def _form(array: np.ndarray[Any, Any], attrs: Mapping[str, object]) -> ArrayForm:
    dtype = array.dtype
    if isinstance(array, _Bfloat16) or (dtype.name == "bfloat16" and dtype.itemsize == 2):
        code = "bf2"
    elif (dtype.kind in "iu" and dtype.itemsize <= 8) or (dtype.kind == "f" and dtype.itemsize in (2, 4, 8)):
        code = f"{dtype.kind}{dtype.itemsize}"
    elif dtype.kind == "b":
        code = "b1"
    else:
        raise UnsupportedType("content", f"is an array of dtype {dtype}; allowed are {ARRAYS}")
    if array.size == 0:
        raise InvalidRequest("content", f"is an array of shape {array.shape}, which holds no element")
    return ArrayForm(code, array.shape, attrs)


def _array_parts(array: np.ndarray[Any, Any], attrs: Mapping[str, object]) -> Parts:
    form = _form(array, attrs)
    if form.dtype == "bf2":
        array = array.view(np.uint16)
    elif form.dtype == "b1":
        array = array.view(np.uint8) != 0  # whatever byte holds a true, it is hashed as 1
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.astype(array.dtype.newbyteorder("<"))
    if not array.flags.c_contiguous:
        array = array.copy(order="C")
    return Parts(form, array.reshape(-1).view(np.uint8))


# ---------------------------------------------------------------- pictures

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
    if getattr(image, "n_frames", 1) != 1:
        raise InvalidRequest("content", f"is a picture of {image.n_frames} frames; use Content.from_frames")
    if image.mode != "1" and image.mode not in BYTE_MODES and image.mode not in NUMBER_MODES:
        raise UnsupportedType(
            "content", f"is a picture of mode {image.mode!r}; allowed are 1, {', '.join([*BYTE_MODES, *NUMBER_MODES])}"
        )
    if 0 in image.size:
        raise InvalidRequest("content", f"is a picture of size {image.size}, which holds no pixel")
    image.load()  # now, since a lazily opened file may be closed by the time that it is hashed
    return Buffer(image, _picture_parts, image.size)


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
