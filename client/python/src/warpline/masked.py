"""Reductions of the elements that a mask chooses: NumPy's where=."""

from typing import TYPE_CHECKING, Any

import numpy as np

from warpline import elementwise, views
from warpline.names import ReduceOp

if TYPE_CHECKING:
    from warpline.expressions import Expression

# What the others become, which changes no result.
_NEUTRAL = {"sum": 0, "prod": 1, "any": False, "all": True}


def reduce(x: Any, op: ReduceOp, axis: Any, keepdims: bool, dtype: Any, mask: Any) -> "Expression":
    """x.reduce(op, ...) of the elements where the mask is true. Raises TypeError for operations that have no result
    without elements."""
    if op == "mean":
        return _mean(x, axis, keepdims, dtype, mask)
    if op not in _NEUTRAL:
        raise TypeError(f"{op} takes no where: it has no result where the mask chooses nothing")
    reduced: Expression = elementwise.where(mask, x, _NEUTRAL[op]).reduce(op, axis, keepdims=keepdims, dtype=dtype)
    return reduced


def _mean(x: Any, axis: Any, keepdims: bool, dtype: Any, mask: Any) -> "Expression":
    if x.shape is None or x.dtype is None:
        raise TypeError(f"a mean of the elements that a mask chooses needs the shape and the dtype of {x}")
    result = np.dtype(np.float64 if x.dtype.kind in "biu" else x.dtype) if dtype is None else np.dtype(dtype)
    # Sums and counts beyond 65504 are no f16.
    computed = np.dtype(np.float32) if result.itemsize == 2 else result
    total = elementwise.where(mask, x, 0).reduce("sum", axis, keepdims=keepdims, dtype=computed)
    chosen = x.program._expression(mask)
    if chosen.shape != x.shape:
        chosen = views.broadcast_to(chosen, x.shape)
    count = chosen.reduce("count_nonzero", axis, keepdims=keepdims)
    mean: Expression = total / count.astype(computed)
    return mean if computed == result else mean.astype(result)
