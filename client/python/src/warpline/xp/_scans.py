"""Running sums and products, and differences of neighbours."""

from typing import Any

import numpy as np

from warpline import indexing, ordering
from warpline.xp import _client_side, _types
from warpline.xp._arrays import Array
from warpline.xp._checks import array_of
from warpline.xp._manipulation import concat
from warpline.xp._reductions import converted_for, wrapped


def cumulative_sum(x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Array:
    given = converted_for("cumulative_sum", x, dtype)
    return wrapped(given._made(ordering.cumulative_sum(given._x, axis=axis, include_initial=include_initial)), dtype)


def cumulative_prod(x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Array:
    given = converted_for("cumulative_prod", x, dtype)
    if _types.group_of(given.dtype) == "complex floating-point":
        return _cumulative_prod_here(given, axis, include_initial)
    return wrapped(given._made(ordering.cumulative_prod(given._x, axis=axis, include_initial=include_initial)), dtype)


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
    given = array_of("diff", x)
    if _types.group_of(given.dtype) == "bool":
        raise TypeError("diff takes numbers, not bool")
    others = [y for y in (prepend, append) if y is not None]
    more = {name: y._x for name, y in (("prepend", prepend), ("append", append)) if y is not None}
    return given._made(indexing.diff(given._x, n, axis, **more), *others)
