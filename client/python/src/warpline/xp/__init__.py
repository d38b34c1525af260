"""Arrays of the Python array API standard (2024.12) on a warpline server.

    import warpline.xp as xp                 # the server of $WARPLINE_SERVER; or xp.connect("host:port")
    x = xp.asarray(big)                      # travels once
    z = (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)
    print(xp.sort(z[:, 0])[:10])             # one request; ten numbers come back

Operations are computed when a value is looked at. Shapes and dtypes are always known.
"""

from math import e, inf, nan, pi
from typing import TYPE_CHECKING

import numpy as np

from warpline.xp import _hints, _numpy, fft, linalg  # noqa: F401  Array finds _numpy here
from warpline.xp._arrays import Array
from warpline.xp._creation import (
    arange, asarray, empty, empty_like, eye, from_dlpack, full, full_like, linspace, meshgrid, ones, ones_like, tril, triu, zeros,
    zeros_like)
from warpline.xp._data_types import astype, can_cast, isdtype, result_type
from warpline.xp._devices import Device
from warpline.xp._elementwise import (
    abs, acos, acosh, add, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_or,
    bitwise_right_shift, bitwise_xor, ceil, clip, conj, copysign, cos, cosh, divide, equal, exp, expm1, floor, floor_divide,
    greater, greater_equal, hypot, imag, isfinite, isinf, isnan, less, less_equal, log, log10, log1p, log2, logaddexp,
    logical_and, logical_not, logical_or, logical_xor, maximum, minimum, multiply, negative, nextafter, not_equal, positive,
    pow, real, reciprocal, remainder, round, sign, signbit, sin, sinh, sqrt, square, subtract, tan, tanh, trunc, where)
from warpline.xp._manipulation import (
    broadcast_arrays, broadcast_to, concat, expand_dims, flip, matrix_transpose, moveaxis, permute_dims, repeat, reshape, roll,
    squeeze, stack, tile, unstack)
from warpline.xp._products import matmul, tensordot, vecdot
from warpline.xp._reductions import all, any, argmax, argmin, count_nonzero, max, mean, min, prod, std, sum, var
from warpline.xp._scans import cumulative_prod, cumulative_sum, diff
from warpline.xp._searching import (
    argsort, nonzero, searchsorted, sort, take, take_along_axis, unique_all, unique_counts, unique_inverse, unique_values)
from warpline.xp._errors import LeaseLost, QuotaFull, ServerLost
from warpline.xp._fallback import Refused, config
from warpline.xp._info import __array_namespace_info__, finfo, iinfo
from warpline.xp._profile import profile
from warpline.xp._sessions import connect
from warpline.xp._values import compute, compute_async

__array_api_version__ = "2024.12"

newaxis = None
bool = np.dtype(np.bool_)  # noqa: A001
int8, int16, int32, int64 = (np.dtype(f"i{size}") for size in (1, 2, 4, 8))
uint8, uint16, uint32, uint64 = (np.dtype(f"u{size}") for size in (1, 2, 4, 8))
float32, float64, complex64, complex128 = (np.dtype(name) for name in ("f4", "f8", "c8", "c16"))

if not TYPE_CHECKING:  # which would take every name for one that is here
    def __getattr__(name):
        _hints.of_namespace(name)

__all__ = [
    "Array", "Device", "LeaseLost", "QuotaFull", "Refused", "ServerLost", "__array_api_version__", "__array_namespace_info__",
    "abs", "acos", "acosh", "add", "all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "asin", "asinh", "astype",
    "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "bool", "broadcast_arrays", "broadcast_to", "can_cast", "ceil", "clip", "complex128", "complex64", "compute",
    "compute_async", "concat", "config", "conj", "connect", "copysign", "cos", "cosh", "count_nonzero", "cumulative_prod",
    "cumulative_sum", "diff", "divide", "e", "empty", "empty_like", "equal", "exp", "expand_dims", "expm1", "eye", "fft",
    "finfo", "flip", "float32", "float64", "floor", "floor_divide", "from_dlpack", "full", "full_like", "greater",
    "greater_equal", "hypot", "iinfo", "imag", "inf", "int16", "int32", "int64", "int8", "isdtype", "isfinite", "isinf",
    "isnan", "less", "less_equal", "linalg", "linspace", "log", "log10", "log1p", "log2", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "matmul", "matrix_transpose", "max", "maximum", "mean", "meshgrid", "min",
    "minimum", "moveaxis", "multiply", "nan", "negative", "newaxis", "nextafter", "nonzero", "not_equal", "ones", "ones_like",
    "permute_dims", "pi", "positive", "pow", "prod", "profile", "real", "reciprocal", "remainder", "repeat", "reshape",
    "result_type", "roll", "round", "searchsorted", "sign", "signbit", "sin", "sinh", "sort", "sqrt", "square", "squeeze",
    "stack", "std", "subtract", "sum", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile", "tril", "triu", "trunc",
    "uint16", "uint32", "uint64", "uint8", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack", "var",
    "vecdot", "where", "zeros", "zeros_like"]
