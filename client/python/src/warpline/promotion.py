"""Promotion of data types, as NumPy 2 has it. It does not depend on the version of NumPy that is installed.

Python's numbers are weak: they take the data type of the tensor, unless it cannot hold numbers of their kind. All other
operands are strong, NumPy's scalars included: both operands become np.result_type of their data types. bfloat16 stays
bfloat16 with Python's numbers, although NumPy with ml_dtypes makes float32 of it.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from warpline import inference
from warpline.arrays import Array
from warpline.dtypes import BITS, DTYPES, ML_DTYPES, data_type, name_of

_DType = np.dtype[Any]
_I64, _F16, _F32, _F64, _C64, _C128 = (DTYPES[f"DATA_TYPE_{name}"]
                                       for name in ("I64", "F16", "F32", "F64", "C64", "C128"))
_BF16_BITS = BITS["DATA_TYPE_BF16"]
_16_BITS = (_F16, DTYPES["DATA_TYPE_BF16"])


def is_number(x: Any) -> bool:
    """True for Python's numbers and for NumPy scalars."""
    return isinstance(x, (int, float, complex, np.generic))


def is_weak(number: Any) -> bool:
    """True for Python's numbers. np.float64 and np.complex128 inherit from these, but are strong."""
    return not isinstance(number, np.generic)


def common(a: _DType, b: _DType) -> _DType:
    """The data type to which both are promoted. Raises TypeError if there is none."""
    a, b = DTYPES[data_type(a)], DTYPES[data_type(b)]
    if a == b:
        return a
    advice = ""
    if a in BITS.values() or b in BITS.values():
        advice = ", or install the package ml_dtypes, which has more common types"
    else:
        try:
            return np.result_type(a, b)
        except TypeError:
            pass
    raise TypeError(f"{name_of(a)} and {name_of(b)} have no common data type: convert one of them with astype{advice}")


def with_number(dtype: _DType, number: Any, checked: bool = True) -> _DType:
    """The data type to which an operand of type `dtype` and a number are promoted. A 0-d array is a strong number.
    checked: raises OverflowError if the number is an int that an integer type does not hold. Nothing of the sort holds
    for operations that compute in floats or bools."""
    if isinstance(number, (np.generic, np.ndarray)):
        return common(dtype, number.dtype)
    if isinstance(number, bool):
        return dtype
    kind = "f" if dtype in BITS.values() or dtype in ML_DTYPES.values() else dtype.kind
    if isinstance(number, int):
        if kind == "b":
            dtype = _I64
        if kind in "bui" and checked:
            limits = np.iinfo(dtype)
            if not limits.min <= number <= limits.max:
                raise OverflowError(f"Python integer {number} out of bounds for {dtype}")
        return dtype
    if isinstance(number, complex):
        return dtype if kind == "c" else _C128 if kind in "bui" or dtype == _F64 else _C64
    return _F64 if kind in "bui" else dtype


def element(number: Any, dtype: _DType | None) -> Array:
    """The number as an array of rank 0, of the type to which it and an operand of type `dtype` are promoted. Raises
    TypeError if that type is not known, because the number is weak and `dtype` is None."""
    if dtype is None:
        if is_weak(number):
            raise TypeError(f"the other operand has no data type before the run, and {number!r} has none: give the "
                            'placeholder its dtype, or the number, as np.float32(1)')
        return np.asarray(number)
    promoted = with_number(dtype, number)
    if promoted == _BF16_BITS and is_weak(number):
        bits = int(np.float32(number).view("u4"))
        return np.array((bits + 0x7FFF + (bits >> 16 & 1)) >> 16, "u2").view(promoted)
    if promoted in BITS.values() and is_weak(number):
        raise TypeError(f"{number!r} is not made an element of {name_of(promoted)}: install the package ml_dtypes")
    if isinstance(number, int) and promoted.kind not in "bui":
        number = float(number)
    array = np.asarray(number)
    return array if data_type(array.dtype) == data_type(promoted) else array.astype(promoted)


class ProductTypes(NamedTuple):
    """The types of a gemm. factors: of a and b. result: of the result, c and bias. out: the API's name of the result's
    type, "" if it is the default for these factors."""

    factors: _DType
    result: _DType
    out: str


@functools.lru_cache(maxsize=1024)
def product_types(a: _DType, b: _DType, terms: tuple[_DType, ...], out: str) -> ProductTypes:
    """The types to which a gemm's operands are promoted. terms: types of c and bias. out: the API's name of the result's
    type, if the caller chose it. Terms are then promoted to it, but never converted to less."""
    factors = common(a, b)
    if out:
        return ProductTypes(factors, DTYPES[out], out)
    result = inference.step_dtype("gemm", (), (factors, factors)) or factors
    promoted = functools.reduce(common, terms, result)
    if promoted == result:
        return ProductTypes(factors, result, "")
    if factors in _16_BITS and promoted == _F32:
        return ProductTypes(factors, promoted, data_type(promoted))
    return ProductTypes(promoted, promoted, "")
