"""Tells what the namespace has, as the standard asks for it."""

from typing import Any, NamedTuple

import numpy as np

from warpline.xp import _sessions
from warpline.xp._data_types import isdtype
from warpline.xp._devices import Device

_DTYPES = {"bool": "?", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "uint8": "u1", "uint16": "u2", "uint32": "u4",
           "uint64": "u8", "float32": "f4", "float64": "f8", "complex64": "c8", "complex128": "c16"}


class FInfo(NamedTuple):
    """Limits of a floating-point dtype; of complex numbers, of their parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


class IInfo(NamedTuple):
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def finfo(type: Any, /) -> FInfo:  # noqa: A002
    """type: a dtype, or an array of it."""
    limits = np.finfo(getattr(type, "dtype", type))
    return FInfo(limits.bits, float(limits.eps), float(limits.max), float(limits.min), float(limits.smallest_normal), limits.dtype)


def iinfo(type: Any, /) -> IInfo:  # noqa: A002
    """type: a dtype, or an array of it."""
    limits = np.iinfo(getattr(type, "dtype", type))
    return IInfo(limits.bits, int(limits.max), int(limits.min), np.dtype(limits.dtype))


class _Info:
    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> Device:
        return Device(_sessions.default().address, 0)

    def devices(self) -> list[Device]:
        session = _sessions.default()
        return [Device(session.address, device.ordinal) for device in session.client.info().devices]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        return {"real floating": np.dtype("f8"), "complex floating": np.dtype("c16"), "integral": np.dtype("i8"),
                "indexing": np.dtype("i8")}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        found = {name: np.dtype(code) for name, code in _DTYPES.items()}
        return found if kind is None else {name: dtype for name, dtype in found.items() if isdtype(dtype, kind)}


def __array_namespace_info__() -> _Info:
    return _Info()
