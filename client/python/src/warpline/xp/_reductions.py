"""Statistical and utility functions of the standard: reductions."""

from typing import Any

import numpy as np

from warpline.names import ReduceOp
from warpline.xp import _types
from warpline.xp._arrays import Array
from warpline.xp._checks import array_of
from warpline.xp._data_types import astype

Axes = int | tuple[int, ...] | None


def _reduced(what: ReduceOp, x: Array, axis: Axes, keepdims: bool, dtype: Any = None, **more: Any) -> Array:
    given = array_of(what, x)
    return given._made(given._x.reduce(what, axis, keepdims=keepdims, dtype=dtype, **more))


def _of_sum(x: Array, dtype: Any) -> Any:
    """The dtype of a sum or product: the default one of the kind, if that is wider."""
    if dtype is not None:
        return np.dtype(dtype)
    if x.dtype.kind == "u":
        return np.dtype(np.uint64)
    return np.dtype(np.int64) if x.dtype.kind in "bi" else x.dtype


def converted_for(what: str, x: Array, dtype: Any) -> Array:
    check = array_of(what, x)
    if _types.group_of(check.dtype) == "bool":
        raise TypeError(f"{what} takes numbers, not bool: xp.count_nonzero counts them, and xp.astype converts them")
    return check if _of_sum(check, dtype) == check.dtype else astype(check, _of_sum(check, dtype))


def sum(x: Array, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Array:
    return wrapped(_reduced("sum", converted_for("sum", x, dtype), axis, keepdims), dtype)


def prod(x: Array, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Array:
    return wrapped(_reduced("prod", converted_for("prod", x, dtype), axis, keepdims), dtype)


def wrapped(made: Array, dtype: Any) -> Array:
    """The server's sums and products of narrow integers are 64 bits wide; modulo the dtype's they are those in it."""
    return made if dtype is None else astype(made, dtype, copy=False)


def _of_floats(what: str, x: Array) -> Array:
    if _types.group_of(array_of(what, x).dtype) not in ("real floating-point", "complex floating-point"):
        raise TypeError(f"{what} takes floating-point arrays, not {x.dtype}: xp.astype converts them")
    return x


def mean(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    return _reduced("mean", _of_floats("mean", x), axis, keepdims)


def std(x: Array, /, *, axis: Axes = None, correction: int | float = 0.0, keepdims: bool = False) -> Array:
    return _spread("std", x, axis, correction, keepdims)


def var(x: Array, /, *, axis: Axes = None, correction: int | float = 0.0, keepdims: bool = False) -> Array:
    return _spread("var", x, axis, correction, keepdims)


def _spread(what: ReduceOp, x: Array, axis: Axes, correction: int | float, keepdims: bool) -> Array:
    given = _ordered(what, _of_floats(what, x))
    found = _reduced(what, given, axis, keepdims, ddof=correction)
    reduced = given.size // found.size if found.size else 0
    # The standard wants NaN where the divisor is not positive.
    return found._binary("multiply", float("nan")) if found.size and reduced - correction <= 0 else found


def _ordered(what: str, x: Array) -> Array:
    if _types.group_of(array_of(what, x).dtype) not in ("integer", "real floating-point"):
        raise TypeError(f"{what} takes real numbers, not {x.dtype}")
    return x


def max(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    return _reduced("max", _ordered("max", x), axis, keepdims)


def min(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    return _reduced("min", _ordered("min", x), axis, keepdims)


def all(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    return _reduced("all", _truth("all", x), axis, keepdims)


def any(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    return _reduced("any", _truth("any", x), axis, keepdims)


def count_nonzero(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    return _reduced("count_nonzero", _truth("count_nonzero", x), axis, keepdims)


def _truth(what: str, x: Array) -> Array:
    """The elements, or of complex numbers whether they are not 0."""
    given = array_of(what, x)
    return given._binary("not_equal", 0) if _types.group_of(given.dtype) == "complex floating-point" else given


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    return _reduced("argmax", _ordered("argmax", x), axis, keepdims)


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    return _reduced("argmin", _ordered("argmin", x), axis, keepdims)
