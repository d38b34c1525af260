"""The functions of the standard, but those of creation."""

import builtins
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from warpline import elementwise, indexing, ordering, products, selecting, views
from warpline.expressions import Expression
from warpline.names import ReduceOp
from warpline.programs import FREE
from warpline.xp import _client_side, _sessions, _types
from warpline.xp._arrays import Array, binary, check_group, product, unary

Axes = int | tuple[int, ...] | None
Number = bool | int | float | complex


# Elementwise.

def _pair(op: str, x1: Any, x2: Any) -> Array:
    if isinstance(x1, Array) and isinstance(x2, Array):
        return binary(op, x1, x2)
    if isinstance(x1, Array):
        return _checked(op, x1._binary(op, x2), x2)
    if isinstance(x2, Array):
        return _checked(op, x2._binary(op, x1, True), x1)
    raise TypeError(f"{op} takes an array, not {type(x1).__name__} and {type(x2).__name__}")


def _checked(op: str, made: Any, other: Any) -> Array:
    if made is NotImplemented:
        raise TypeError(f"{op} takes arrays of warpline.xp and numbers, not {type(other).__name__}: xp.asarray makes one")
    result: Array = made
    return result


def _array(what: str, x: Any) -> Array:
    if not isinstance(x, Array):
        raise TypeError(f"{what} takes arrays of warpline.xp, not {type(x).__name__}: xp.asarray makes one")
    return x



def abs(x: Array, /) -> Array:
    return unary("abs", _array("abs", x))


def acos(x: Array, /) -> Array:
    return unary("acos", _array("acos", x))


def acosh(x: Array, /) -> Array:
    return unary("acosh", _array("acosh", x))


def asin(x: Array, /) -> Array:
    return unary("asin", _array("asin", x))


def asinh(x: Array, /) -> Array:
    return unary("asinh", _array("asinh", x))


def atan(x: Array, /) -> Array:
    return unary("atan", _array("atan", x))


def atanh(x: Array, /) -> Array:
    return unary("atanh", _array("atanh", x))


def ceil(x: Array, /) -> Array:
    return unary("ceil", _array("ceil", x))


def cos(x: Array, /) -> Array:
    return unary("cos", _array("cos", x))


def cosh(x: Array, /) -> Array:
    return unary("cosh", _array("cosh", x))


def exp(x: Array, /) -> Array:
    return unary("exp", _array("exp", x))


def expm1(x: Array, /) -> Array:
    return unary("expm1", _array("expm1", x))


def floor(x: Array, /) -> Array:
    return unary("floor", _array("floor", x))


def log(x: Array, /) -> Array:
    return unary("log", _array("log", x))


def log10(x: Array, /) -> Array:
    return unary("log10", _array("log10", x))


def log1p(x: Array, /) -> Array:
    return unary("log1p", _array("log1p", x))


def log2(x: Array, /) -> Array:
    return unary("log2", _array("log2", x))


def logical_not(x: Array, /) -> Array:
    return unary("logical_not", _array("logical_not", x))


def negative(x: Array, /) -> Array:
    return unary("negative", _array("negative", x))


def positive(x: Array, /) -> Array:
    return unary("positive", _array("positive", x))


def sign(x: Array, /) -> Array:
    return unary("sign", _array("sign", x))


def signbit(x: Array, /) -> Array:
    return unary("signbit", _array("signbit", x))


def sin(x: Array, /) -> Array:
    return unary("sin", _array("sin", x))


def sinh(x: Array, /) -> Array:
    return unary("sinh", _array("sinh", x))


def sqrt(x: Array, /) -> Array:
    return unary("sqrt", _array("sqrt", x))


def tan(x: Array, /) -> Array:
    return unary("tan", _array("tan", x))


def tanh(x: Array, /) -> Array:
    return unary("tanh", _array("tanh", x))


def trunc(x: Array, /) -> Array:
    return unary("trunc", _array("trunc", x))


def conj(x: Array, /) -> Array:
    return unary("conj", _array("conj", x))


def imag(x: Array, /) -> Array:
    return unary("imag", _array("imag", x))


def real(x: Array, /) -> Array:
    return unary("real", _array("real", x))


def round(x: Array, /) -> Array:
    return unary("round", _array("round", x))


def isfinite(x: Array, /) -> Array:
    return unary("isfinite", _array("isfinite", x))


def isinf(x: Array, /) -> Array:
    return unary("isinf", _array("isinf", x))


def isnan(x: Array, /) -> Array:
    return unary("isnan", _array("isnan", x))


def bitwise_invert(x: Array, /) -> Array:
    return unary("bitwise_invert", _array("bitwise_invert", x))


def add(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("add", x1, x2)


def atan2(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("atan2", x1, x2)


def bitwise_and(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("bitwise_and", x1, x2)


def bitwise_left_shift(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("bitwise_left_shift", x1, x2)


def bitwise_or(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("bitwise_or", x1, x2)


def bitwise_right_shift(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("bitwise_right_shift", x1, x2)


def bitwise_xor(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("bitwise_xor", x1, x2)


def copysign(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("copysign", x1, x2)


def divide(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("divide", x1, x2)


def equal(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("equal", x1, x2)


def floor_divide(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("floor_divide", x1, x2)


def greater(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("greater", x1, x2)


def greater_equal(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("greater_equal", x1, x2)


def hypot(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("hypot", x1, x2)


def less(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("less", x1, x2)


def less_equal(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("less_equal", x1, x2)


def logaddexp(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("logaddexp", x1, x2)


def logical_and(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("logical_and", x1, x2)


def logical_or(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("logical_or", x1, x2)


def logical_xor(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("logical_xor", x1, x2)


def maximum(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("maximum", x1, x2)


def minimum(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("minimum", x1, x2)


def multiply(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("multiply", x1, x2)


def nextafter(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("nextafter", x1, x2)


def not_equal(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("not_equal", x1, x2)


def pow(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("pow", x1, x2)


def remainder(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("remainder", x1, x2)


def subtract(x1: Array | Number, x2: Array | Number, /) -> Array:
    return _pair("subtract", x1, x2)


def square(x: Array, /) -> Array:
    return binary("multiply", _array("square", x), x)


def reciprocal(x: Array, /) -> Array:
    return _pair("divide", 1.0, x)


def clip(x: Array, /, min: Array | Number | None = None, max: Array | Number | None = None) -> Array:
    result = x if min is None and max is None else _array("clip", x)
    check_group("clip", result.dtype)
    if min is None and max is None:
        return unary("positive", result)
    bounds = [_bound(x, min, "maximum"), _bound(x, max, "minimum")]
    for bound, op in bounds:
        if bound is not None:
            result = _pair(op, result, bound)
    return result


def _bound(x: Array, bound: Any, op: str) -> tuple[Any, str]:
    """A bound of clip: an integer beyond the dtype is none, or the limit of the dtype."""
    if type(bound) is int and x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        if not limits.min <= bound <= limits.max:
            return (None if (bound < limits.min) == (op == "maximum") else int(limits.max if bound > 0 else limits.min)), op
    if isinstance(bound, Array) and bound.dtype != x.dtype:
        bound = astype(bound, x.dtype)
    return bound, op


def where(condition: Array, x1: Array | Number, x2: Array | Number, /) -> Array:
    """x1 where the condition is true, and x2 elsewhere."""
    if _array("where", condition).dtype != np.bool_:
        raise TypeError(f"where takes a condition of bool, not {condition.dtype}")
    arrays = [x for x in (x1, x2) if isinstance(x, Array)]
    if not arrays:
        raise TypeError("where takes an array among its values")
    dtype = functools.reduce(_types.common, [x.dtype for x in arrays])
    given = [x._x.program._cast(x._x, dtype) if isinstance(x, Array) else _types.number_for(dtype, x) for x in (x1, x2)]
    _sessions.of((condition, *arrays))
    return condition._made(elementwise.of_one_dtype("where", FREE, (condition._x, *given)), *arrays)


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """The elements as another dtype."""
    given = _array("astype", x).to_device(x.device if device is None else device)
    wanted = np.dtype(dtype)
    if wanted == given.dtype and not copy:
        return x
    if _types.group_of(given.dtype) == "complex floating-point" and _types.group_of(wanted) in ("integer", "real floating-point"):
        raise TypeError(f"complex numbers are not converted to {wanted}: real takes a part of them")
    return given._made(given._x.astype(wanted))


# Reductions.

def _reduced(what: ReduceOp, x: Array, axis: Axes, keepdims: bool, dtype: Any = None, **more: Any) -> Array:
    given = _array(what, x)
    return given._made(given._x.reduce(what, axis, keepdims=keepdims, dtype=dtype, **more))


def _of_sum(x: Array, dtype: Any) -> Any:
    """The dtype of a sum or product: the default one of the kind, if that is wider."""
    if dtype is not None:
        return np.dtype(dtype)
    if x.dtype.kind == "u":
        return np.dtype(np.uint64)
    return np.dtype(np.int64) if x.dtype.kind in "bi" else x.dtype


def _converted_for(what: str, x: Array, dtype: Any) -> Array:
    check = _array(what, x)
    if _types.group_of(check.dtype) == "bool":
        raise TypeError(f"{what} takes numbers, not bool")
    return check if _of_sum(check, dtype) == check.dtype else astype(check, _of_sum(check, dtype))


def sum(x: Array, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Array:
    return _wrapped(_reduced("sum", _converted_for("sum", x, dtype), axis, keepdims), dtype)


def prod(x: Array, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Array:
    return _wrapped(_reduced("prod", _converted_for("prod", x, dtype), axis, keepdims), dtype)


def _wrapped(made: Array, dtype: Any) -> Array:
    """The server's sums and products of narrow integers are 64 bits wide; modulo the dtype's they are those in it."""
    return made if dtype is None else astype(made, dtype, copy=False)


def _of_floats(what: str, x: Array) -> Array:
    if _types.group_of(_array(what, x).dtype) not in ("real floating-point", "complex floating-point"):
        raise TypeError(f"{what} takes floating-point arrays, not {x.dtype}")
    return x


def mean(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    return _reduced("mean", _of_floats("mean", x), axis, keepdims)


def std(x: Array, /, *, axis: Axes = None, correction: int | float = 0.0, keepdims: bool = False) -> Array:
    return _reduced("std", _of_floats("std", x), axis, keepdims, ddof=correction)


def var(x: Array, /, *, axis: Axes = None, correction: int | float = 0.0, keepdims: bool = False) -> Array:
    return _reduced("var", _of_floats("var", x), axis, keepdims, ddof=correction)


def _ordered(what: str, x: Array) -> Array:
    if _types.group_of(_array(what, x).dtype) not in ("integer", "real floating-point"):
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
    given = _array(what, x)
    return given._binary("not_equal", 0) if _types.group_of(given.dtype) == "complex floating-point" else given


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    return _reduced("argmax", _ordered("argmax", x), axis, keepdims)


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    return _reduced("argmin", _ordered("argmin", x), axis, keepdims)


def cumulative_sum(x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Array:
    given = _converted_for("cumulative_sum", x, dtype)
    return _wrapped(given._made(ordering.cumulative_sum(given._x, axis=axis, include_initial=include_initial)), dtype)


def cumulative_prod(x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Array:
    given = _converted_for("cumulative_prod", x, dtype)
    if _types.group_of(given.dtype) == "complex floating-point":
        return _cumulative_prod_here(given, axis, include_initial)
    return _wrapped(given._made(ordering.cumulative_prod(given._x, axis=axis, include_initial=include_initial)), dtype)


def _cumulative_prod_here(x: Array, axis: int | None, include_initial: bool) -> Array:
    if axis is None and x.ndim != 1:
        raise ValueError(f"cumulative_prod needs an axis for an array of {x.ndim} axes")
    along = 0 if axis is None else axis
    products: Array = _client_side.computed("cumulative_prod of complex numbers", np.cumprod, [x], {"axis": along})
    if not include_initial:
        return products
    first = np.ones([1 if i == along % x.ndim else size for i, size in enumerate(x.shape)], x.dtype)
    return concat([Array(x._session.input(first), x._session), products], axis=along)


def diff(x: Array, /, *, axis: int = -1, n: int = 1, prepend: Array | None = None, append: Array | None = None) -> Array:
    given = _array("diff", x)
    if _types.group_of(given.dtype) == "bool":
        raise TypeError("diff takes numbers, not bool")
    others = [y for y in (prepend, append) if y is not None]
    more = {name: y._x for name, y in (("prepend", prepend), ("append", append)) if y is not None}
    return given._made(indexing.diff(given._x, n, axis, **more), *others)


# Manipulation.

def _several(what: str, arrays: Sequence[Array]) -> list[Expression]:
    given = [_array(what, x) for x in arrays]
    if not given:
        raise ValueError(f"{what} takes one array or more")
    _sessions.of(given)
    dtype = functools.reduce(_types.common, [x.dtype for x in given])
    return [x._x.program._cast(x._x, dtype) for x in given]


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    arrays = list(arrays)
    return arrays[0]._made(views.concatenate(_several("concat", arrays), axis), *arrays[1:])


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    arrays = list(arrays)
    return arrays[0]._made(views.stack(_several("stack", arrays), axis), *arrays[1:])


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    moved = moveaxis(x, axis, 0)
    return tuple(moved[i] for i in range(moved.shape[0]))


def reshape(x: Array, /, shape: int | tuple[int, ...], *, copy: bool | None = None) -> Array:
    if copy is False:
        raise ValueError("arrays never share memory: reshape makes a new one")
    return _array("reshape", x)._made(views.reshape(x._x, (shape,) if isinstance(shape, int) else tuple(shape)))


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    return _array("permute_dims", x)._made(x._x.transpose(tuple(axes)))


def matrix_transpose(x: Array, /) -> Array:
    return _array("matrix_transpose", x).mT


def moveaxis(x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Array:
    return _array("moveaxis", x)._made(views.moveaxis(x._x, source, destination))


def expand_dims(x: Array, /, axis: int = 0) -> Array:
    given = _array("expand_dims", x)
    if not -given.ndim - 1 <= axis <= given.ndim:
        raise IndexError(f"axis is {axis}, which is outside of [{-given.ndim - 1}, {given.ndim}]")
    return given._made(views.expand_dims(given._x, axis))


def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    return _array("squeeze", x)._made(views.squeeze(x._x, axis))


def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    return _array("broadcast_to", x)._made(views.broadcast_to(x._x, tuple(shape)))


def broadcast_arrays(*arrays: Array) -> list[Array]:
    shape = np.broadcast_shapes(*(_array("broadcast_arrays", x).shape for x in arrays))
    return [broadcast_to(x, shape) for x in arrays]


def flip(x: Array, /, *, axis: Axes = None) -> Array:
    return _array("flip", x)._made(views.flip(x._x, axis))


def roll(x: Array, /, shift: int | tuple[int, ...], *, axis: Axes = None) -> Array:
    return _array("roll", x)._made(indexing.roll(x._x, shift, axis))


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    return _array("tile", x)._made(indexing.tile(x._x, repetitions))


def repeat(x: Array, repeats: int | Array, /, *, axis: int | None = None) -> Array:
    given = _array("repeat", x)
    counts = np.asarray(repeats) if isinstance(repeats, Array) else repeats
    return given._made(indexing.repeat(given._x, counts, axis))


# Searching, sorting, sets.

def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    return _ordered("sort", x)._made(ordering.sort(x._x, axis, descending=descending))


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    given = _ordered("argsort", x)
    if given.ndim == 0:
        raise ValueError("argsort takes arrays of one axis or more")
    return given._made(ordering.argsort(given._x, axis, descending=descending))


def searchsorted(x1: Array, x2: Array, /, *, side: str = "left", sorter: Array | None = None) -> Array:
    a, b = _several("searchsorted", (x1, x2))
    others = [x2] if sorter is None else [x2, sorter]
    return x1._made(ordering.searchsorted(a, b, side, None if sorter is None else sorter._x), *others)


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """The places of elements that are not 0. Computed at once, since their number depends on elements."""
    given = _array("nonzero", x)
    if given.ndim == 0:
        raise ValueError("nonzero takes arrays of one axis or more")
    found = selecting.nonzero(given._x)
    given._session.compute(found)
    return tuple(Array(y, given._session) for y in found)


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    given = _array("take", x)
    if axis is None and given.ndim != 1:
        raise ValueError(f"take needs an axis for an array of {given.ndim} axes")
    return given._made(indexing.take(given._x, _array("take", indices)._x, 0 if axis is None else axis), indices)


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    return _array("take_along_axis", x)._made(indexing.take_along_axis(x._x, indices._x, axis), indices)


class UniqueAll(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    values: Array
    inverse_indices: Array


def _unique(x: Array, function: Any) -> list[Array]:
    """Computed at once, since the number of different elements depends on elements."""
    if _types.group_of(_array("unique", x).dtype) == "complex floating-point":
        return list(_client_side.computed("unique elements of complex numbers", _UNIQUE[function], [x]))
    found = function(x._x)
    found = list(found) if isinstance(found, tuple) else [found]
    x._session.compute(found)
    return [Array(y, x._session) for y in found]


def _unique_here(x: np.ndarray[Any, Any], *wanted: int) -> list[Any]:
    """wanted: places among the values, the first places of each, the places in the values, and the counts."""
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    every = (values, first, inverse.reshape(x.shape), counts)
    return [every[i] for i in wanted]


# What NumPy computes instead.
_UNIQUE: dict[Any, Any] = {
    selecting.unique_values: lambda x: _unique_here(x, 0), selecting.unique_counts: lambda x: _unique_here(x, 0, 3),
    selecting.unique_inverse: lambda x: _unique_here(x, 0, 2), selecting.unique_all: lambda x: _unique_here(x, 0, 1, 2, 3)}


def unique_values(x: Array, /) -> Array:
    return _unique(x, selecting.unique_values)[0]


def unique_counts(x: Array, /) -> UniqueCounts:
    return UniqueCounts(*_unique(x, selecting.unique_counts))


def unique_inverse(x: Array, /) -> UniqueInverse:
    return UniqueInverse(*_unique(x, selecting.unique_inverse))


def unique_all(x: Array, /) -> UniqueAll:
    return UniqueAll(*_unique(x, selecting.unique_all))


# Products.

def matmul(x1: Array, x2: Array, /) -> Array:
    return product(_array("matmul", x1), _array("matmul", x2))


def tensordot(x1: Array, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    a, b = _numbers("tensordot", x1, x2)
    return _of_product(x1, x2, products.tensordot(a, b, axes), a)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    a, b = _numbers("vecdot", x1, x2)
    return _of_product(x1, x2, products.vecdot(a, b, axis=axis), a)


def _numbers(what: str, x1: Array, x2: Array) -> list[Expression]:
    for x in (x1, x2):
        if _types.group_of(_array(what, x).dtype) == "bool":
            raise TypeError(f"{what} takes numbers, not bool")
    return _several(what, (x1, x2))


def _of_product(x1: Array, x2: Array, made: Expression, factor: Expression) -> Array:
    """The server's products of i8 are i32, and those of the standard are i8."""
    return x1._made(made if made._dtype == factor._dtype else made.astype(factor._dtype), x2)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Tells whether a dtype is of a kind: a name such as "real floating", a dtype, or a tuple of these."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, each) for each in kind)
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
