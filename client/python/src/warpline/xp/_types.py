"""Data types as the standard promotes them: within a kind, and never by value."""

import functools
from typing import Any

import numpy as np

from warpline.elementwise import kind_of

DType = np.dtype[Any]

_GROUPS = {"b": "bool", "i": "integer", "u": "integer", "f": "real floating-point", "c": "complex floating-point"}


def group_of(dtype: DType) -> str:
    return _GROUPS[kind_of(dtype)]


@functools.lru_cache(maxsize=1024)
def common(a: DType, b: DType) -> DType:
    """The dtype to which two arrays are promoted. Raises TypeError for those of different kinds, and for u64 with a
    signed type, which no integer holds."""
    if a == b:
        return a
    groups = {group_of(a), group_of(b)}
    if len(groups) == 1 or groups == {"real floating-point", "complex floating-point"}:
        found = np.result_type(a, b)
        if group_of(found) in groups:
            return found
    raise TypeError(f"{a} and {b} are not promoted to each other by the array API standard: astype converts one of them")


def takes_number(dtype: DType, kind: type) -> bool:
    """Tells whether an array of this dtype takes part in an operation with a Python number of this class."""
    group = group_of(dtype)
    if kind is bool:
        return group == "bool"
    if kind is int:
        return group != "bool"
    return group in (("real floating-point", "complex floating-point") if kind is float else ("complex floating-point",))


def number_for(dtype: DType, number: Any) -> Any:
    """The number as an operand beside an array of this dtype. Raises TypeError if the standard does not promote it, and
    OverflowError for an integer that the dtype does not hold."""
    if isinstance(number, np.generic):
        number = number.item()
    if not takes_number(dtype, type(number)):
        raise TypeError(f"a Python {type(number).__name__} is not promoted to {dtype} by the array API standard: astype converts "
                        "the array")
    if type(number) is int and kind_of(dtype) in "iu":
        limits = np.iinfo(dtype)
        if not limits.min <= number <= limits.max:
            raise OverflowError(f"{number} is out of bounds for {dtype}")
    return number
