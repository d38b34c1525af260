"""Data type functions of the standard."""

import functools
from typing import Any

import numpy as np

from warpline.xp import _types
from warpline.xp._arrays import Array
from warpline.xp._checks import array_of
from warpline.xp._devices import session_of


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """The elements as another dtype."""
    given = array_of("astype", x)
    if device is not None:
        given = given.to_device(session_of(device))
    wanted = np.dtype(dtype)
    if wanted == given.dtype and not copy:
        return given
    if _types.group_of(given.dtype) == "complex floating-point" and _types.group_of(wanted) in ("integer", "real floating-point"):
        raise TypeError(f"complex numbers are not converted to {wanted}: real takes a part of them")
    return given._made(given._x.astype(wanted))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Tells whether a dtype is of a kind: a name such as "real floating", a dtype, or a tuple of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    given = np.dtype(dtype)
    kinds = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
             "complex floating": "c", "numeric": "iufc"}
    if isinstance(kind, str):
        if kind not in kinds:
            raise ValueError(f"kind is {kind!r}: it is one of {', '.join(kinds)}")
        return given.kind in kinds[kind]
    return given == np.dtype(kind)


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype of an operation of these arrays, dtypes and numbers."""
    dtypes = [x.dtype if isinstance(x, Array) else np.dtype(x) for x in arrays_and_dtypes
              if isinstance(x, Array) or not isinstance(x, (bool, int, float, complex))]
    if not dtypes:
        raise ValueError("result_type takes an array or a dtype")
    dtype = functools.reduce(_types.common, dtypes)
    for x in arrays_and_dtypes:
        if isinstance(x, (bool, int, float, complex)) and not isinstance(x, Array):
            _types.number_for(dtype, x)
    return dtype


def can_cast(from_: Any, to: Any, /) -> bool:
    """Tells whether a dtype holds all elements of another one."""
    return bool(np.can_cast(from_.dtype if isinstance(from_, Array) else np.dtype(from_), np.dtype(to)))
