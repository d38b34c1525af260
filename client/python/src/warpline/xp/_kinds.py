"""Which kinds of elements elementwise operations take."""

import functools
from typing import Any

import numpy as np

from warpline.xp import _types

_NUMERIC = ("integer", "real floating-point", "complex floating-point")
_REAL = ("integer", "real floating-point")
_FLOATING = ("real floating-point", "complex floating-point")
_WHOLE = ("bool", "integer")
_TAKES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "subtract", "multiply", "pow", "negative", "positive", "abs", "sign"), _NUMERIC),
    **dict.fromkeys(("floor_divide", "remainder", "less", "less_equal", "greater", "greater_equal", "floor", "ceil", "trunc",
                     "maximum", "minimum", "clip"), _REAL),
    **dict.fromkeys(("conj", "real", "round", "isfinite", "isinf", "isnan"), _NUMERIC),
    **dict.fromkeys(("divide", "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan",
                     "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"), _FLOATING),
    **dict.fromkeys(("atan2", "copysign", "hypot", "logaddexp", "nextafter", "signbit"), ("real floating-point",)),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"), _WHOLE),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), ("integer",)),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor", "logical_not"), ("bool",)),
    "imag": ("complex floating-point",),
}


@functools.lru_cache(maxsize=1024)
def _takes(op: str, dtype: np.dtype[Any]) -> bool:
    groups = _TAKES.get(op)
    return groups is None or _types.group_of(dtype) in groups


def check_group(op: str, dtype: np.dtype[Any]) -> None:
    """Raises TypeError unless the operation takes elements of this dtype."""
    if not _takes(op, dtype):
        raise TypeError(f"{op} takes {' and '.join(_TAKES[op])} arrays, not {dtype}: xp.astype converts them")
