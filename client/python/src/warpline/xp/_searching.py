"""Searching, sorting, set and indexing functions of the standard."""

from typing import Any, NamedTuple

from warpline import indexing, ordering, selecting
from warpline.xp._arrays import Array
from warpline.xp._checks import array_of, of_common_dtype
from warpline.xp._reductions import _ordered


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    return _ordered("sort", x)._made(ordering.sort(x._x, axis, descending=descending))


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    given = _ordered("argsort", x)
    if given.ndim == 0:
        raise ValueError("argsort takes arrays of one axis or more")
    return given._made(ordering.argsort(given._x, axis, descending=descending))


def searchsorted(x1: Array, x2: Array, /, *, side: str = "left", sorter: Array | None = None) -> Array:
    a, b = of_common_dtype("searchsorted", (x1, x2))
    others = [x2] if sorter is None else [x2, sorter]
    return x1._made(ordering.searchsorted(a, b, side, None if sorter is None else sorter._x), *others)


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """The places of elements that are not 0. Computed at once, since their number depends on elements."""
    given = array_of("nonzero", x)
    if given.ndim == 0:
        raise ValueError("nonzero takes arrays of one axis or more")
    found = selecting.nonzero(given._x)
    given._session.compute(found)
    return tuple(Array(y, given._session) for y in found)


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    given = array_of("take", x)
    if axis is None and given.ndim != 1:
        raise ValueError(f"take needs an axis for an array of {given.ndim} axes")
    return given._made(indexing.take(given._x, array_of("take", indices)._x, 0 if axis is None else axis), indices)


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    places = array_of("take_along_axis", indices)
    return array_of("take_along_axis", x)._made(indexing.take_along_axis(x._x, places._x, axis), places)


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
    found = function(array_of("unique", x)._x)
    found = list(found) if isinstance(found, tuple) else [found]
    x._session.compute(found)
    return [Array(y, x._session) for y in found]


def unique_values(x: Array, /) -> Array:
    return _unique(x, selecting.unique_values)[0]


def unique_counts(x: Array, /) -> UniqueCounts:
    return UniqueCounts(*_unique(x, selecting.unique_counts))


def unique_inverse(x: Array, /) -> UniqueInverse:
    return UniqueInverse(*_unique(x, selecting.unique_inverse))


def unique_all(x: Array, /) -> UniqueAll:
    return UniqueAll(*_unique(x, selecting.unique_all))
