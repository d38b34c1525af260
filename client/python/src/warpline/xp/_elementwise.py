"""Elementwise functions of the standard."""

import functools
from typing import Any

import numpy as np

from warpline import elementwise
from warpline.programs import FREE
from warpline.xp import _sessions, _types
from warpline.xp._arrays import Array, binary, unary
from warpline.xp._checks import array_of
from warpline.xp._data_types import astype
from warpline.xp._kinds import check_group

Number = bool | int | float | complex


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


def abs(x: Array, /) -> Array:
    return unary("abs", array_of("abs", x))


def acos(x: Array, /) -> Array:
    return unary("acos", array_of("acos", x))


def acosh(x: Array, /) -> Array:
    return unary("acosh", array_of("acosh", x))


def asin(x: Array, /) -> Array:
    return unary("asin", array_of("asin", x))


def asinh(x: Array, /) -> Array:
    return unary("asinh", array_of("asinh", x))


def atan(x: Array, /) -> Array:
    return unary("atan", array_of("atan", x))


def atanh(x: Array, /) -> Array:
    return unary("atanh", array_of("atanh", x))


def ceil(x: Array, /) -> Array:
    return unary("ceil", array_of("ceil", x))


def cos(x: Array, /) -> Array:
    return unary("cos", array_of("cos", x))


def cosh(x: Array, /) -> Array:
    return unary("cosh", array_of("cosh", x))


def exp(x: Array, /) -> Array:
    return unary("exp", array_of("exp", x))


def expm1(x: Array, /) -> Array:
    return unary("expm1", array_of("expm1", x))


def floor(x: Array, /) -> Array:
    return unary("floor", array_of("floor", x))


def log(x: Array, /) -> Array:
    return unary("log", array_of("log", x))


def log10(x: Array, /) -> Array:
    return unary("log10", array_of("log10", x))


def log1p(x: Array, /) -> Array:
    return unary("log1p", array_of("log1p", x))


def log2(x: Array, /) -> Array:
    return unary("log2", array_of("log2", x))


def logical_not(x: Array, /) -> Array:
    return unary("logical_not", array_of("logical_not", x))


def negative(x: Array, /) -> Array:
    return unary("negative", array_of("negative", x))


def positive(x: Array, /) -> Array:
    return unary("positive", array_of("positive", x))


def sign(x: Array, /) -> Array:
    return unary("sign", array_of("sign", x))


def signbit(x: Array, /) -> Array:
    return unary("signbit", array_of("signbit", x))


def sin(x: Array, /) -> Array:
    return unary("sin", array_of("sin", x))


def sinh(x: Array, /) -> Array:
    return unary("sinh", array_of("sinh", x))


def sqrt(x: Array, /) -> Array:
    return unary("sqrt", array_of("sqrt", x))


def tan(x: Array, /) -> Array:
    return unary("tan", array_of("tan", x))


def tanh(x: Array, /) -> Array:
    return unary("tanh", array_of("tanh", x))


def trunc(x: Array, /) -> Array:
    return unary("trunc", array_of("trunc", x))


def conj(x: Array, /) -> Array:
    return unary("conj", array_of("conj", x))


def imag(x: Array, /) -> Array:
    return unary("imag", array_of("imag", x))


def real(x: Array, /) -> Array:
    return unary("real", array_of("real", x))


def round(x: Array, /) -> Array:
    return unary("round", array_of("round", x))


def isfinite(x: Array, /) -> Array:
    return unary("isfinite", array_of("isfinite", x))


def isinf(x: Array, /) -> Array:
    return unary("isinf", array_of("isinf", x))


def isnan(x: Array, /) -> Array:
    return unary("isnan", array_of("isnan", x))


def bitwise_invert(x: Array, /) -> Array:
    return unary("bitwise_invert", array_of("bitwise_invert", x))


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
    return binary("multiply", array_of("square", x), x)


def reciprocal(x: Array, /) -> Array:
    return _pair("divide", 1.0, x)


def clip(x: Array, /, min: Array | Number | None = None, max: Array | Number | None = None) -> Array:
    result = array_of("clip", x)
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
    if isinstance(bound, np.integer):
        bound = int(bound)
    if type(bound) is int and x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        if not limits.min <= bound <= limits.max:
            return (None if (bound < limits.min) == (op == "maximum") else int(limits.max if bound > 0 else limits.min)), op
    if isinstance(bound, Array) and bound.dtype != x.dtype:
        if bound.dtype.kind in "iu" and x.dtype.kind in "iu":
            own, limits = np.iinfo(bound.dtype), np.iinfo(x.dtype)
            if own.min < limits.min:
                bound = _pair("maximum", bound, int(limits.min))
            if own.max > limits.max:
                bound = _pair("minimum", bound, int(limits.max))
        bound = astype(bound, x.dtype)
    return bound, op


def where(condition: Array, x1: Array | Number, x2: Array | Number, /) -> Array:
    """x1 where the condition is true, and x2 elsewhere."""
    if array_of("where", condition).dtype != np.bool_:
        raise TypeError(f"where takes a condition of bool, not {condition.dtype}")
    arrays = [x for x in (x1, x2) if isinstance(x, Array)]
    if not arrays:
        raise TypeError("where takes an array among its two values: xp.astype(condition, dtype) is 1 and 0")
    dtype = functools.reduce(_types.common, [x.dtype for x in arrays])
    given = [x._x.program._cast(x._x, dtype) if isinstance(x, Array) else _types.number_for(dtype, x) for x in (x1, x2)]
    _sessions.of((condition, *arrays))
    return condition._made(elementwise.of_one_dtype("where", FREE, (condition._x, *given)), *arrays)
