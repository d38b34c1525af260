"""Arrays that are made on the server: nothing is sent but their shape and a few numbers."""

import math
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from warpline import elementwise, free, views
from warpline.dtypes import DTYPES, data_type
from warpline.implements import implements

if TYPE_CHECKING:
    from warpline.expressions import Expression

_I32, _I64, _U64, _F32, _F64 = (DTYPES[f"DATA_TYPE_{name}"] for name in ("I32", "I64", "U64", "F32", "F64"))


def _sizes(shape: Any) -> tuple[int, ...]:
    sizes = tuple(operator.index(size) for size in (shape if isinstance(shape, Iterable) else (shape,)))
    if any(size < 0 for size in sizes):
        raise ValueError(f"shape is {sizes}: sizes are 0 or more")
    return sizes


def _dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    return DTYPES[data_type(np.dtype(dtype))]


def full(shape: Any, value: Any, dtype: npt.DTypeLike | None = None) -> "Expression":
    """An array with one value everywhere, as `np.full`. dtype: None is that of np.asarray(value)."""
    kind = _dtype(np.asarray(value).dtype if dtype is None else dtype)
    program = free.program
    number = elementwise.constant(value, kind)
    made: Expression = program._step("full", [number], {"shape": _sizes(shape)}, "", "", kind)
    return made


def zeros(shape: Any, dtype: npt.DTypeLike = float) -> "Expression":
    """An array of zeros, as `np.zeros`."""
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: npt.DTypeLike = float) -> "Expression":
    """An array of ones, as `np.ones`."""
    return full(shape, 1, dtype)


def _like(x: Any, value: Any, dtype: Any, shape: Any) -> "Expression":
    sizes = x.shape if shape is None else shape
    kind = x.dtype if dtype is None else dtype
    if sizes is None or kind is None:
        raise TypeError(f"the shape and the dtype of {x} are not known before it is computed: give them")
    made = full(sizes, value, kind)
    made._near = x  # whose client computes it
    return made


@implements("empty_like")
def empty_like(prototype: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None) -> "Expression":
    """Zeros: an expression always has values."""
    return _like(prototype, 0, dtype, shape)


@implements("zeros_like")
def zeros_like(a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None) -> "Expression":
    return _like(a, 0, dtype, shape)


@implements("ones_like")
def ones_like(a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None) -> "Expression":
    return _like(a, 1, dtype, shape)


@implements("full_like")
def full_like(a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True,
              shape: Any = None) -> "Expression":
    if isinstance(fill_value, np.ma.MaskedArray):
        raise TypeError("fill_value is masked, and a server has no masks")
    return _like(a, fill_value, dtype, shape)


def _index(shape: tuple[int, ...], axis: int, dtype: np.dtype[Any] | None = None) -> "Expression":
    """The position of each element along an axis. dtype: None is the smaller one that has all positions."""
    if dtype is None:
        dtype = _I32 if all(size < 1 << 31 for size in shape) else _I64
    made: Expression = free.program._step("index", [], {"axis": axis, "shape": shape}, "", "", dtype)
    return made


def arange(start: float, stop: float | None = None, step: float = 1, dtype: npt.DTypeLike | None = None) -> "Expression":
    """start, start + step and so on below stop, as `np.arange`. With one argument, from 0 to it."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("step is 0: it must be another number")
    kind = _dtype(np.result_type(*(np.asarray(x).dtype for x in (start, stop, step))) if dtype is None else dtype)
    count = max(math.ceil((stop - start) / step), 0)
    position = _index((count,), 0, _I64)
    if kind.kind in "biu":
        if kind == _U64:  # has numbers that an i64 lacks
            position = position.astype(kind)
        return (position * (int(start + step) - int(start)) + int(start)).astype(kind)
    # As NumPy does: the first two elements are rounded, and give the distance.
    computed = kind if kind in (_F32, _F64) or kind.kind == "c" else _F32
    first, second = (computed.type(np.asarray(x).astype(kind)) for x in (start, start + step))
    return (position.astype(computed) * (second - first) + first).astype(kind)


def linspace(start: float, stop: float, num: int = 50, endpoint: bool = True,
             dtype: npt.DTypeLike | None = None) -> "Expression":
    """`num` numbers from start to stop at equal distances, as `np.linspace`: stop is the last one, or with endpoint=False
    the one that would follow."""
    count = operator.index(num)
    if count < 0:
        raise ValueError(f"num is {count}: it is 0 or more")
    parts = count - 1 if endpoint else count
    first, last = float(start), float(stop)
    position = _index((count,), 0, _I64)
    line = position.astype(_F64) * ((last - first) / parts if parts > 0 else math.nan if endpoint else 0.0) + first
    if endpoint and count > 1:
        line = elementwise.where(position == count - 1, last, line)
    if parts <= 0:
        line = full((count,), first, _F64)
    kind = _F64 if dtype is None else _dtype(dtype)
    if kind.kind in "iu":
        line = elementwise.make("floor", line.program, (line,))
    return line if kind == _F64 else line.astype(kind)


def eye(n: int, m: int | None = None, k: int = 0, dtype: npt.DTypeLike = float) -> "Expression":
    """A matrix of n rows and m columns (None: n) with ones on the k-th diagonal, as `np.eye`."""
    shape = _sizes((n, n if m is None else m))
    return (_index(shape, 1) - _index(shape, 0) == k).astype(_dtype(dtype))


def _triangle(what: str, x: Any, k: int, lower: bool) -> "Expression":
    given = elementwise.program_of(what, x)._expression(x)
    shape, dtype = given.shape, given.dtype
    if shape is None or dtype is None or not shape:
        raise TypeError(f"{what} takes an array of one axis or more, whose shape and dtype are known, not {x}")
    if len(shape) == 1:  # as NumPy: a matrix, of which each row is the vector
        shape = shape * 2
        given = views.broadcast_to(given, shape)
    distance = _index(shape, len(shape) - 1) - _index(shape, len(shape) - 2)
    inside = distance <= k if lower else distance >= k
    zero = elementwise.constant(0, dtype)
    return elementwise.make("where", given.program, (inside, given, zero))


@implements("tril")
def tril(m: Any, k: int = 0) -> "Expression":
    """The elements on the k-th diagonal and below it; zeros above."""
    return _triangle("tril", m, k, True)


@implements("triu")
def triu(m: Any, k: int = 0) -> "Expression":
    """The elements on the k-th diagonal and above it; zeros below."""
    return _triangle("triu", m, k, False)
