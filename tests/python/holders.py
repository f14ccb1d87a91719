"""Everything that may hold token ids, bytes or an array: each holder takes plain values and gives an object."""

from __future__ import annotations

import array
import io
import mmap
import random
from typing import Any

import numpy as np


class DLPack:
    """A CPU tensor of some other library: nothing but the two methods of the DLPack protocol."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._values.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._values.__dlpack_device__()


class OldDLPack(DLPack):
    """The same, from before the protocol knew versions, devices and copies."""

    def __dlpack__(self, stream: Any = None) -> Any:
        return self._values.__dlpack__(stream=stream)


class DeviceTensor(DLPack):
    """A tensor on a GPU: whoever reads it as if it were in memory fails."""

    def __init__(self, values: np.ndarray, device: tuple[int, int] = (2, 0)) -> None:
        super().__init__(values)
        self._device = device

    def __dlpack__(self, **keywords: Any) -> Any:
        raise BufferError("this tensor is on another device")

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


class ArrayInterface:
    """An object that shows its memory by NumPy's array interface alone."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values
        self.__array_interface__ = values.__array_interface__


def strided(values: np.ndarray) -> np.ndarray:
    """The same values, every third element of a larger array along each axis."""
    large = np.zeros([3 * n for n in values.shape], values.dtype)
    view = large[tuple(slice(1, None, 3) for _ in values.shape)]
    view[...] = values
    return view


def backwards(values: np.ndarray) -> np.ndarray:
    """The same values, held in memory from last to first."""
    flipped = np.ascontiguousarray(values[tuple(slice(None, None, -1) for _ in values.shape)])
    return flipped[tuple(slice(None, None, -1) for _ in values.shape)]


def unaligned(values: np.ndarray) -> np.ndarray:
    """The same values, at an odd address."""
    raw = bytearray(values.nbytes + 1)
    view = np.frombuffer(raw, np.uint8)[1:].view(values.dtype).reshape(values.shape)
    view[...] = values
    return view


def swapped(values: np.ndarray) -> np.ndarray:
    """The same values in the other byte order."""
    return values.astype(values.dtype.newbyteorder("S"))


def frozen(values: np.ndarray) -> np.ndarray:
    values = values.copy()
    values.flags.writeable = False
    return values


INTEGER_DTYPES = [np.dtype(c) for c in "bBhHiIlLqQ"]
ARRAY_CODES = "bBhHiIlLqQ"


def holds(dtype: np.dtype, ids: list[int]) -> bool:
    return not ids or max(ids) <= np.iinfo(dtype).max


def id_holders(ids: list[int]) -> dict[str, Any]:
    """Every holder of token ids that these fit, by name."""
    found: dict[str, Any] = {"list": list(ids), "tuple": tuple(ids)}
    for code in ARRAY_CODES:
        if holds(np.dtype(code), ids):
            found[f"array {code}"] = array.array(code, ids)
    for dtype in INTEGER_DTYPES:
        if not holds(dtype, ids):
            continue
        values = np.array(ids, dtype)
        name = f"{dtype.char} {dtype.name}"
        found |= {
            f"ndarray {name}": values,
            f"ndarray {name}, other byte order": swapped(values),
            f"ndarray {name}, strided": strided(values),
            f"ndarray {name}, backwards": backwards(values),
            f"ndarray {name}, unaligned": unaligned(values),
            f"ndarray {name}, read-only": frozen(values),
            f"ndarray {name}, strided in the other byte order": strided(swapped(values)),
            f"ndarray {name}, a column": np.stack([values, values], axis=1)[:, 1],
            f"DLPack {name}": DLPack(values),
            f"old DLPack {name}": OldDLPack(values),
            f"DLPack {name}, strided": DLPack(strided(values)),
            f"array interface {name}": ArrayInterface(values),
            f"array interface {name}, strided in the other byte order": ArrayInterface(strided(swapped(values))),
            f"list of NumPy {name}": list(values),
        }
        if dtype.itemsize > 1:  # bytes alone may be ids or a byte string
            found |= {
                f"memoryview {name}": memoryview(values),
                f"memoryview {name}, other byte order": memoryview(swapped(values)),
                f"memoryview {name}, strided": memoryview(values.repeat(2))[::2],
            }
    return found


class Trickle(io.RawIOBase):
    """A stream that gives what it likes, as a socket does."""

    def __init__(self, data: bytes, seed: int) -> None:
        super().__init__()
        self._inner = io.BytesIO(data)
        self._random = random.Random(seed)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self._random.choice([1, 3, 63, 64, 65, 1023, 1025, 70_000]))
        return self._inner.readinto(memoryview(buffer)[:size])


class ReadOnly:
    """An object with a read method and nothing else."""

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self._inner.read(size if size < 0 else min(size, 777))


def byte_holders(data: bytes, folder: Any) -> dict[str, Any]:
    """Every holder of an encoded file, by name, as Content.of takes it."""
    path = folder / "data.bin"
    path.write_bytes(data)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    spaced = bytearray(2 * len(data))
    spaced[::2] = data
    return {
        "path": path,
        "bytes": data,
        "bytearray": bytearray(data),
        "memoryview": memoryview(data),
        "memoryview of a bytearray": memoryview(bytearray(data)),
        "memoryview, strided": memoryview(spaced)[::2],
        "memoryview, unaligned": memoryview(b"?" + data)[1:],
        "mmap": mapped,
        "BytesIO": io.BytesIO(data),
        "trickling stream": Trickle(data, 1),
        "buffered trickling stream": io.BufferedReader(Trickle(data, 2), buffer_size=100),
        "object with read alone": ReadOnly(data),
    }


def array_holders(values: np.ndarray) -> dict[str, Any]:
    """Every holder of an array, by name; memoryviews and the protocols only where they know the dtype."""
    found: dict[str, Any] = {
        "C order": np.ascontiguousarray(values),
        "Fortran order": np.asfortranarray(values),
        "strided": strided(values),
        "backwards": backwards(values),
        "unaligned": unaligned(values),
        "read-only": frozen(values),
        "transposed twice": np.ascontiguousarray(values.T).T,
        "cut from a larger one": np.pad(values, 1)[tuple(slice(1, -1) for _ in values.shape)],
    }
    if values.dtype.isbuiltin == 1:
        found |= {
            "other byte order": swapped(values),
            "strided in the other byte order": strided(swapped(values)),
            "memoryview": memoryview(values),
            "memoryview in Fortran order": memoryview(np.asfortranarray(values)),
            "memoryview in the other byte order": memoryview(swapped(values)),
            "array interface": ArrayInterface(values),
            "array interface in Fortran order": ArrayInterface(np.asfortranarray(values)),
            "array interface in the other byte order": ArrayInterface(swapped(values)),
            "DLPack": DLPack(values.copy()),
            "old DLPack": OldDLPack(values.copy()),  # which knows no read-only memory
            "DLPack in Fortran order": DLPack(values.copy(order="F")),
        }
    return found
