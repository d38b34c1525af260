"""Reductions under their own names, for the asynchronous client."""

from typing import Any

import numpy.typing as npt

from warpline.arrays import Array
from warpline.arguments import Axes
from warpline.calls import Input
from warpline.names import ReduceOp


class Reductions:
    """Like warpline.reductions.Reductions."""

    async def _reduced(self, x: Input, op: ReduceOp, axis: Axes, keepdims: bool, out: Array | None, timeout: float | None,
                       dtype: npt.DTypeLike | None = None, ddof: int = 0) -> Array:
        reduce: Any = self.reduce  # type: ignore[attr-defined]
        result: Array = await reduce(x, op, axis, keepdims=keepdims, dtype=dtype, ddof=ddof, out=out, timeout=timeout)
        return result

    async def sum(self, x: Input, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None,
                  out: Array | None = None, timeout: float | None = None) -> Array:
        """See warpline.Client.sum."""
        return await self._reduced(x, "sum", axis, keepdims, out, timeout, dtype)

    async def prod(self, x: Input, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None,
                   out: Array | None = None, timeout: float | None = None) -> Array:
        """See warpline.Client.prod."""
        return await self._reduced(x, "prod", axis, keepdims, out, timeout, dtype)

    async def mean(self, x: Input, axis: Axes = None, *, keepdims: bool = False, dtype: npt.DTypeLike | None = None,
                   out: Array | None = None, timeout: float | None = None) -> Array:
        """See warpline.Client.mean."""
        return await self._reduced(x, "mean", axis, keepdims, out, timeout, dtype)

    async def var(self, x: Input, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False,
                  dtype: npt.DTypeLike | None = None, out: Array | None = None, timeout: float | None = None) -> Array:
        """See warpline.Client.var."""
        return await self._reduced(x, "var", axis, keepdims, out, timeout, dtype, ddof)

    async def std(self, x: Input, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False,
                  dtype: npt.DTypeLike | None = None, out: Array | None = None, timeout: float | None = None) -> Array:
        """See warpline.Client.std."""
        return await self._reduced(x, "std", axis, keepdims, out, timeout, dtype, ddof)

    async def min(self, x: Input, axis: Axes = None, *, keepdims: bool = False, out: Array | None = None,
                  timeout: float | None = None) -> Array:
        """See warpline.Client.min."""
        return await self._reduced(x, "min", axis, keepdims, out, timeout)

    async def max(self, x: Input, axis: Axes = None, *, keepdims: bool = False, out: Array | None = None,
                  timeout: float | None = None) -> Array:
        """See warpline.Client.max."""
        return await self._reduced(x, "max", axis, keepdims, out, timeout)

    async def argmin(self, x: Input, axis: int | None = None, *, keepdims: bool = False, out: Array | None = None,
                     timeout: float | None = None) -> Array:
        """See warpline.Client.argmin."""
        return await self._reduced(x, "argmin", axis, keepdims, out, timeout)

    async def argmax(self, x: Input, axis: int | None = None, *, keepdims: bool = False, out: Array | None = None,
                     timeout: float | None = None) -> Array:
        """See warpline.Client.argmax."""
        return await self._reduced(x, "argmax", axis, keepdims, out, timeout)

    async def any(self, x: Input, axis: Axes = None, *, keepdims: bool = False, out: Array | None = None,
                  timeout: float | None = None) -> Array:
        """See warpline.Client.any."""
        return await self._reduced(x, "any", axis, keepdims, out, timeout)

    async def all(self, x: Input, axis: Axes = None, *, keepdims: bool = False, out: Array | None = None,
                  timeout: float | None = None) -> Array:
        """See warpline.Client.all."""
        return await self._reduced(x, "all", axis, keepdims, out, timeout)
