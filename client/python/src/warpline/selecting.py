"""Elements that masks choose, and different elements. The size of such a result depends on elements, so what reads it is
computed by another request (stages.py)."""

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpline import creation, elementwise, indexing, ordering, views
from warpline.arrays import as_array
from warpline.dtypes import DTYPES
from warpline.elementwise import program_of
from warpline.implements import NotHere, implements
from warpline.views import shape_of

if TYPE_CHECKING:
    from warpline.expressions import Expression

_BOOL, _I64 = DTYPES["DATA_TYPE_BOOL"], DTYPES["DATA_TYPE_I64"]


def masked(x: Any, mask: Any) -> "Expression":
    """x[mask]: the elements for which the mask is true. Its axes are the first ones of x. The shape is not known
    before the run."""
    program = program_of("a mask", x, mask)
    given, chosen = program._expression(x), program._expression(mask)
    if chosen.dtype is not None and chosen.dtype != _BOOL:
        raise TypeError(f"a mask is of bool, not {chosen.dtype}")
    if given.shape == () and chosen.shape == ():
        given, chosen = views.reshape(given, 1), views.reshape(chosen, 1)
    made: Expression = program._step("compress", [given, chosen], {}, "", "", given.dtype)
    return made


@implements("compress")
def compress(condition: Any, a: Any, axis: int | None = None, out: None = None) -> "Expression":
    """The elements of all in a row, or along axis 0, for which the condition is true, as `np.compress`."""
    views.check_no_out(out)
    if axis is not None and operator.index(axis) != 0:
        raise NotHere("compress goes along axis 0, or over all elements: np.moveaxis moves another axis there")
    x = views.reshape(a, -1) if axis is None else a
    program = program_of("compress", x, condition)
    chosen = program._expression(condition if hasattr(condition, "_apply") else as_array(condition).astype(bool))
    size, length = shape_of("compress", x)[0], shape_of("compress", chosen)[0]
    if length > size:
        raise ValueError(f"the condition has {length} elements for {size}")
    return masked(x if length == size else views.item(x, slice(length)), chosen)


@implements("extract")
def extract(condition: Any, arr: Any) -> "Expression":
    """The elements for which the condition is true, as `np.extract`."""
    program = program_of("extract", condition, arr)
    return compress(views.reshape(program._expression(condition), -1), arr)


def _true(x: Any) -> "Expression":
    given: Expression = program_of("nonzero", x)._expression(x)
    if given.dtype is None:
        raise TypeError(f"the dtype of {x} is not known before it is computed")
    return given if given.dtype == _BOOL else given != 0


@implements("where")
def where(condition: Any, *values: Any) -> Any:
    """`np.where`: of the condition alone, the places where it is true."""
    return elementwise.where(condition, *values) if values else nonzero(condition)


@implements("count_nonzero")
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> "Expression":
    """How many elements along axes are not 0, as `np.count_nonzero`."""
    made: Expression = program_of("count_nonzero", a)._expression(a).reduce("count_nonzero", axis, keepdims=keepdims)
    return made


@implements("nonzero")
def nonzero(a: Any) -> "tuple[Expression, ...]":
    """The places of elements that are not 0, an expression for each axis, as `np.nonzero`."""
    mask, shape = _true(a), shape_of("nonzero", a)
    if not shape:
        raise ValueError("nonzero takes arrays of one axis or more")
    return tuple(masked(creation._index(shape, axis, _I64), mask) for axis in range(len(shape)))


@implements("argwhere")
def argwhere(a: Any) -> "Expression":
    """The places of elements that are not 0, a row for each, as `np.argwhere`."""
    mask, shape = _true(a), shape_of("argwhere", a)
    if not shape:
        raise NotHere("argwhere of no axes is not computed on the server")
    return masked(views.stack([creation._index(shape, axis, _I64) for axis in range(len(shape))], -1), mask)


@implements("flatnonzero")
def flatnonzero(a: Any) -> "Expression":
    """The places of elements that are not 0 among all in a row, as `np.flatnonzero`."""
    return nonzero(views.reshape(a, -1))[0]


class _Groups(NamedTuple):
    """Sorted elements, their places, and true for the first of each group of equal ones."""

    ordered: Any
    places: Any
    first: Any
    shape: tuple[int, ...]


def _groups(x: Any, equal_nan: bool) -> _Groups:
    shape = shape_of("unique", x)
    given = views.reshape(x, -1)
    if given.dtype is None:
        raise TypeError(f"the dtype of {x} is not known before it is computed")
    ordered, places = ordering.sort_with_indices(given)
    before, after = ordered[:-1], ordered[1:]
    differs = after != before
    if equal_nan and elementwise.kind_of(given.dtype) in "fc":
        differs = differs & ((after == after) | (before == before))
    count = shape_of("unique", given)[0]
    first = views.concatenate([creation.full((min(count, 1),), True, _BOOL), differs])
    return _Groups(ordered, places, first, shape)


def _counts(groups: _Groups) -> "Expression":
    count = shape_of("unique", groups.first)[0]
    place = creation._index((count,), 0, _I64)
    starts = elementwise.where(groups.first, place, count)
    following = ordering.scan(starts, "min", 0, exclusive=True, reverse=True)
    return masked(elementwise.clip(following, None, count) - place, groups.first)


def _inverse(groups: _Groups) -> "Expression":
    count = shape_of("unique", groups.first)[0]
    number = ordering.cumsum(groups.first, 0) - 1
    inverse = indexing.put_along_axis(creation.zeros((count,), _I64), groups.places, number, 0)
    return views.reshape(inverse, groups.shape)


class UniqueCounts(NamedTuple):
    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    values: Any
    inverse_indices: Any


class UniqueAll(NamedTuple):
    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


@implements("unique_values")
def unique_values(x: Any) -> "Expression":
    """The different elements, sorted. NaN differs from NaN."""
    groups = _groups(x, False)
    return masked(groups.ordered, groups.first)


@implements("unique_counts")
def unique_counts(x: Any) -> UniqueCounts:
    groups = _groups(x, False)
    return UniqueCounts(masked(groups.ordered, groups.first), _counts(groups))


@implements("unique_inverse")
def unique_inverse(x: Any) -> UniqueInverse:
    groups = _groups(x, False)
    return UniqueInverse(masked(groups.ordered, groups.first), _inverse(groups))


@implements("unique_all")
def unique_all(x: Any) -> UniqueAll:
    groups = _groups(x, False)
    return UniqueAll(masked(groups.ordered, groups.first), masked(groups.places, groups.first), _inverse(groups),
                     _counts(groups))


@implements("unique")
def unique(ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: None = None, *, equal_nan: bool = True, sorted: bool = True) -> Any:
    """The different elements, sorted, as `np.unique`, and what else is asked for."""
    if axis is not None:
        raise NotHere("unique goes over all elements: axis must be None")
    groups = _groups(ar, equal_nan)
    results = [masked(groups.ordered, groups.first)]
    if return_index:
        results.append(masked(groups.places, groups.first))
    if return_inverse:
        results.append(_inverse(groups))
    if return_counts:
        results.append(_counts(groups))
    return results[0] if len(results) == 1 else tuple(results)
