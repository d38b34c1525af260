"""Reductions under their own names: client.sum(x, axis) for x.sum(axis)."""

from typing import Any

import numpy.typing as npt

from warpline.arrays import Array
from warpline.arguments import Axes
from warpline.calls import Input
from warpline.names import ReduceOp


class Reductions:
    """Reductions under NumPy's names. `reduce` documents the arguments, and has more reductions and more options."""

    def _reduced(self, x: Input, op: ReduceOp, axis: Axes, keepdims: bool, out: Array | None, timeout: float | None,
                 dtype: npt.DTypeLike | None = None, ddof: int = 0) -> Array:
        reduce: Any = self.reduce  # type: ignore[attr-defined]
        result: Array = reduce(x, op, axis, keepdims=keepdims, dtype=dtype, ddof=ddof, out=out, timeout=timeout)
        return result

    def sum(self, x: Input, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None,
            out: Array | None = None, timeout: float | None = None) -> Array:
        """Sum."""
        return self._reduced(x, "sum", axis, keepdims, out, timeout, dtype)

    def prod(self, x: Input, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None,
             out: Array | None = None, timeout: float | None = None) -> Array:
        """Product."""
        return self._reduced(x, "prod", axis, keepdims, out, timeout, dtype)

    def mean(self, x: Input, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None,
             out: Array | None = None, timeout: float | None = None) -> Array:
        """Arithmetic mean."""
        return self._reduced(x, "mean", axis, keepdims, out, timeout, dtype)

    def var(self, x: Input, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False,
            dtype: npt.DTypeLike | None = None, out: Array | None = None, timeout: float | None = None) -> Array:
        """Variance, with NumPy's ddof."""
        return self._reduced(x, "var", axis, keepdims, out, timeout, dtype, ddof)

    def std(self, x: Input, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False,
            dtype: npt.DTypeLike | None = None, out: Array | None = None, timeout: float | None = None) -> Array:
        """Standard deviation, with NumPy's ddof."""
        return self._reduced(x, "std", axis, keepdims, out, timeout, dtype, ddof)

    def min(self, x: Input, axis: Axes = None, *, keepdims: bool = False, out: Array | None = None,
            timeout: float | None = None) -> Array:
        """Smallest element."""
        return self._reduced(x, "min", axis, keepdims, out, timeout)

    def max(self, x: Input, axis: Axes = None, *, keepdims: bool = False, out: Array | None = None,
            timeout: float | None = None) -> Array:
        """Largest element."""
        return self._reduced(x, "max", axis, keepdims, out, timeout)

    def argmin(self, x: Input, axis: int | None = None, *, keepdims: bool = False, out: Array | None = None,
               timeout: float | None = None) -> Array:
        """Index of the first smallest element."""
        return self._reduced(x, "argmin", axis, keepdims, out, timeout)

    def argmax(self, x: Input, axis: int | None = None, *, keepdims: bool = False, out: Array | None = None,
               timeout: float | None = None) -> Array:
        """Index of the first largest element."""
        return self._reduced(x, "argmax", axis, keepdims, out, timeout)

    def any(self, x: Input, axis: Axes = None, *, keepdims: bool = False, out: Array | None = None,
            timeout: float | None = None) -> Array:
        """True if any element is true."""
        return self._reduced(x, "any", axis, keepdims, out, timeout)

    def all(self, x: Input, axis: Axes = None, *, keepdims: bool = False, out: Array | None = None,
            timeout: float | None = None) -> Array:
        """True if all elements are true."""
        return self._reduced(x, "all", axis, keepdims, out, timeout)
