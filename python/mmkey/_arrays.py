"""Arrays as the source of a content: NumPy, torch, and whatever has a buffer, an array interface or DLPack."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from ._sources import ArrayForm, Buffer, Parts, Source, frozen
from .errors import InvalidRequest, UnsupportedType, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

ARRAYS = "bool, integers of 8 to 64 bits, float16, float32, float64 and bfloat16"


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
