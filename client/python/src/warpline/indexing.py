"""Elements by indices: what NumPy's take, take_along_axis and advanced indexing choose, and what repeats elements."""

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from warpline import creation, elementwise, promotion, views
from warpline.arguments import fields_of
from warpline.arrays import as_array
from warpline.dtypes import DTYPES
from warpline.elementwise import program_of
from warpline.implements import NotHere, implements
from warpline.views import shape_of

if TYPE_CHECKING:
    from warpline.expressions import Expression

_I32, _I64 = DTYPES["DATA_TYPE_I32"], DTYPES["DATA_TYPE_I64"]


def indices_of(program: Any, indices: Any) -> "Expression":
    """Indices as an expression of i32 or i64. Raises TypeError for anything but integers."""
    if not hasattr(indices, "_apply"):
        array = as_array(indices)
        if array.size == 0 and not isinstance(indices, np.ndarray):
            array = array.astype(_I64)
        if array.dtype.kind not in "iu":
            raise TypeError(f"indices are integers, not {array.dtype}")
        indices = array if array.dtype in (_I32, _I64) else array.astype(_I64)
    found: Expression = program._expression(indices)
    if found.dtype is None or found.dtype in (_I32, _I64):
        return found
    if found.dtype.kind not in "iu":
        raise TypeError(f"indices are integers, not {found.dtype}")
    cast: Expression = program._cast(found, _I64)
    return cast


def _made(kind: str, x: Any, others: Sequence[Any], fields: dict[str, Any]) -> "Expression":
    program = program_of(kind, x, *others)
    given = program._expression(x)
    made: Expression = program._step(kind, [given, *others], fields_of(**fields), "", "", given.dtype)
    return made


@implements("take")
def take(a: Any, indices: Any, axis: int | None = None, out: None = None, mode: str = "raise") -> "Expression":
    """Elements along an axis, as `np.take`. None: of all elements in a row. mode: What happens to indices out of range:
    "raise" is an error of the server, "wrap" counts on from the other end, "clip" takes the nearest."""
    views.check_no_out(out)
    program = program_of("take", a, indices)
    x = views.reshape(program._expression(a), -1) if axis is None else program._expression(a)
    chosen = indices_of(program, indices)
    along = 0 if axis is None else operator.index(axis)
    if mode != "raise":
        size = shape_of("take", x)[along]
        if mode not in ("wrap", "clip"):
            raise ValueError(f"mode is {mode!r}: it is 'raise', 'wrap' or 'clip'")
        chosen = chosen % size if mode == "wrap" else elementwise.clip(chosen, 0, size - 1)
    return _made("take", x, [chosen], {"axis": along})


@implements("take_along_axis")
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> "Expression":
    """Elements by indices of the same rank, as `np.take_along_axis`. Indices out of range are an error of the server."""
    program = program_of("take_along_axis", arr, indices)
    x = views.reshape(program._expression(arr), -1) if axis is None else program._expression(arr)
    return _made("take_along_axis", x, [indices_of(program, indices)],
                 {"axis": 0 if axis is None else operator.index(axis)})


def put_along_axis(x: Any, indices: Any, values: Any, axis: int) -> "Expression":
    """A copy of x with values where indices of the same rank say: y[indices[i, j], j] is values[i, j] for axis 0. Where
    several indices name one element, the value of the last one in row-major order stays. Values are broadcast to the
    indices and have the dtype of x, or are numbers. (np.put_along_axis changes its argument, which an expression cannot.)"""
    program = program_of("put_along_axis", x, indices, values)
    given = program._expression(x)
    return _made("put_along_axis", given, [indices_of(program, indices), _values(program, values, given.dtype)],
                 {"axis": operator.index(axis)})


def _values(program: Any, values: Any, dtype: Any) -> "Expression":
    if promotion.is_number(values):
        if dtype is None:
            raise TypeError("a number needs the dtype of the array that it is written to")
        return creation.full((), values, dtype)
    found: Expression = program._expression(values)
    if dtype is None or found.dtype == dtype:
        return found
    cast: Expression = program._cast(found, dtype)
    return cast


def set_slice(x: Any, key: Any, values: Any) -> "Expression":
    """A copy of x in which x[key] is `values`, for integers, slices and ... in the key. Values are broadcast to x[key]
    and have the dtype of x, or are numbers."""
    if any(_is_array(part) for part in (key if isinstance(key, tuple) else [key])):
        raise TypeError("set_slice takes integers, slices, None and ...: put_along_axis takes indices, and np.where a mask")
    program = program_of("set_slice", x, values)
    given = program._expression(x)
    ranges, shape = views.ranges_of(given, key)
    put = _values(program, values, given.dtype)
    # Integers leave their axes out of x[key], but not out of what the step writes.
    sizes = list(shape_of("set_slice", given))
    for axis, (start, end, step) in ranges.items():
        sizes[axis] = len(range(*slice(int(start), int(end), int(step)).indices(sizes[axis])))
    if list(shape) != sizes:
        put = views.reshape(views.broadcast_to(put, shape), sizes)
    return _made("set_slice", given, [put], views.slice_fields(ranges))


def item(x: Any, key: Any) -> "Expression":
    """x[key]: NumPy's indexing by integers, slices, None, ... and arrays of integers, which are broadcast to each other."""
    items = _without_masks(x, list(key) if isinstance(key, tuple) else [key])
    places = [i for i, part in enumerate(items) if _is_array(part)]
    if not places:
        return views.item(x, key)
    program = program_of("indexing", x, *(items[i] for i in places))
    given = program._expression(x)
    # The axes that arrays take stay whole in basic indexing.
    basic = [slice(None) if i in places else part for i, part in enumerate(items)]
    named = [part for part in items if part is not None and part is not Ellipsis]
    rest = max(len(shape_of("indexing", given)) - len(named), 0)
    # How many axes of x each part names, and how many of x[basic] it makes.
    named_by = [0 if part is None else rest if part is Ellipsis else 1 for part in basic]
    kept = [1 if part is None else rest if part is Ellipsis else 0 if _is_one(part) else 1 for part in basic]
    axes = [sum(kept[:place]) for place in places]
    taken = views.item(given, tuple(basic))
    chosen = indices_of(program, items[places[0]])
    if len(places) > 1:
        together = list(range(axes[0], axes[0] + len(axes)))
        taken = views.moveaxis(taken, axes, together)
        shape = shape_of("indexing", taken)
        sizes = [shape[axis] for axis in together]
        chosen = indices_of(program, _places_of([items[i] for i in places], [sum(named_by[:i]) for i in places], sizes))
        taken = views.reshape(taken, [*shape[:axes[0]], math.prod(sizes), *shape[axes[0] + len(axes):]])
    result = take(taken, chosen, axes[0])
    # Integers count as arrays of one index: with slices between them, the axes of indices come first.
    advanced = [i for i, part in enumerate(items) if i in places or _is_one(part)]
    if any(i not in advanced for i in range(advanced[0], advanced[-1])):
        count = len(shape_of("indexing", chosen))
        return views.moveaxis(result, range(axes[0], axes[0] + count), range(count))
    return result


def _without_masks(x: Any, items: list[Any]) -> list[Any]:
    """The parts of a key with the places where masks are true in place of masks, which must be known to the client."""
    if not any(is_mask(part) for part in items):
        return items
    shape = shape_of("indexing", x)
    takes = [0 if part is None else np.ndim(part) if is_mask(part) else 1 for part in items if part is not Ellipsis]
    found: list[Any] = []
    axis = 0
    for part in items:
        if part is Ellipsis:
            axis += len(shape) - sum(takes)
        elif is_mask(part):
            if hasattr(part, "_apply"):
                raise TypeError("a mask on the server is the only index, x[mask]: beside others a mask is an array of the client")
            mask = np.asarray(part)
            if mask.shape != shape[axis:axis + mask.ndim]:
                raise IndexError(f"a mask of shape {mask.shape} for axes of sizes {shape[axis:axis + mask.ndim]}")
            found += mask.nonzero()
            axis += mask.ndim
            continue
        elif part is not None:
            axis += 1
        found.append(part)
    return found


def _places_of(indices: Sequence[Any], axes: Sequence[int], sizes: Sequence[int]) -> Any:
    """The places, in row-major order, of elements whose indices along each axis are given. Indices that are here are
    checked here. Where one of the others is out of range, so is the place: the server says so."""
    places: Any = np.int64(0)
    wrong: Any = np.False_
    for given, axis, size in zip(indices, axes, sizes, strict=True):
        here = not hasattr(given, "_apply")
        index = as_array(given) if here else given
        if index.dtype is not None and index.dtype.kind not in "iu" and not (here and index.size == 0):
            raise TypeError(f"indices are integers, not {index.dtype}")
        index = index.astype(_I64)
        outside = (index < -size) | (index >= size)
        if not here:
            wrong = wrong | outside
        elif outside.any():
            raise IndexError(f"index {index[outside][0]} is out of bounds for axis {axis} with size {size}")
        places = places * size + np.where(index < 0, index + size, index)
    return np.where(wrong, math.prod(sizes), places)


def own_key(key: Any) -> Any:
    """A key of t[...] with NumPy arrays in place of other libraries' arrays."""
    if isinstance(key, tuple):
        return tuple(own_key(part) for part in key)
    foreign = hasattr(key, "__array__") and not hasattr(key, "_apply") and not isinstance(key, (np.ndarray, np.generic))
    return as_array(key) if foreign or isinstance(key, np.ma.MaskedArray) else key


def is_mask(key: Any) -> bool:
    """True if a key is an array of bools and nothing else."""
    if not _is_array(key):
        return False
    dtype = key.dtype if hasattr(key, "dtype") else np.asarray(key).dtype
    return dtype is not None and dtype.kind == "b"


def _is_one(part: Any) -> bool:
    return part is not None and part is not Ellipsis and not isinstance(part, slice) and not _is_array(part)


def _is_array(part: Any) -> bool:
    if isinstance(part, (list, np.ndarray)):
        return np.ndim(part) > 0 or isinstance(part, np.ndarray) and part.dtype.kind == "b"
    return hasattr(part, "_apply")


@implements("roll")
def roll(a: Any, shift: Any, axis: Any = None) -> "Expression":
    """Elements that leave one end of an axis come in at the other, as `np.roll`."""
    if axis is None:
        shifts, axes = [operator.index(as_array(shift)[()])], []
    else:
        shifts, axes = (row.tolist() for row in np.broadcast_arrays(np.atleast_1d(as_array(shift)), np.atleast_1d(axis)))
        for along in axes:  # which may name an axis twice
            views.axes_of([along], len(shape_of("roll", a)))
    return _made("roll", a, [], {"shifts": shifts, "axes": axes})


@implements("tile")
def tile(A: Any, reps: Any) -> "Expression":  # noqa: N803
    """The array again and again along each axis, as `np.tile`."""
    return _made("tile", A, [], {"counts": [operator.index(n) for n in np.atleast_1d(reps)]})


@implements("repeat")
def repeat(a: Any, repeats: Any, axis: int | None = None) -> "Expression":
    """Each element several times, as `np.repeat`. repeats: A number, or one for each element of the axis."""
    counts = as_array(repeats)
    along = None if axis is None else operator.index(axis)
    if counts.ndim == 0:
        return _made("repeat", a, [], {"count": operator.index(repeats), "axis": along})
    x = views.reshape(a, -1) if along is None else a
    return take(x, np.repeat(np.arange(shape_of("repeat", x)[along or 0]), counts), along or 0)


_PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


@implements("pad")
def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> "Expression":
    """More elements at the ends of axes, as `np.pad`: `constant_values`, or what the modes edge, reflect,
    symmetric and wrap say. Values may be pairs, as widths are."""
    if mode not in _PAD_MODES:
        raise NotHere(f"mode is {mode!r}: it is one of {', '.join(_PAD_MODES)}")
    shape = shape_of("pad", array)
    widths = np.broadcast_to(as_array(pad_width), (len(shape), 2))
    if widths.dtype.kind not in "iu" or (widths < 0).any():
        raise ValueError(f"pad_width is {pad_width}: widths are integers, 0 or more")
    if mode == "constant":
        if np.ndim(constant_values) == 0:
            return _padded(array, widths, as_array(constant_values)[()])
        numbers = np.broadcast_to(as_array(constant_values), (len(shape), 2))
        result = array
        for axis, end in np.ndindex(widths.shape):  # later ones have the corners
            width = np.zeros_like(widths)
            width[axis, end] = widths[axis, end]
            result = _padded(result, width, numbers[axis, end])
        return result
    result = array
    for axis, (before, after) in enumerate(widths.tolist()):
        places: Any = np.pad(np.arange(shape[axis]), (before, after), mode=mode)  # type: ignore[call-overload]
        result = take(result, places, axis) if before or after else result
    return result if result is not array else elementwise.positive(array)


def _padded(array: Any, widths: Any, number: Any) -> "Expression":
    program = program_of("pad", array)
    given = program._expression(array)
    # Zeros need no operand; -0 is another number.
    values = [_values(program, number, given.dtype)] if any(np.asarray(number).tobytes()) else []
    return _made("pad", given, values, {"before": widths[:, 0].tolist(), "after": widths[:, 1].tolist()})


def _extended(a: Any, axis: int, before: Any, behind: Any) -> "Expression":
    """The array between two others, along an axis. A number becomes a slice of it."""
    program = program_of("diff", a)
    x = program._expression(a)
    sizes = list(shape_of("diff", x))
    sizes[views.axes_of([axis], len(sizes))[0]] = 1
    parts = []
    for part in (before, x, behind):
        if part is None or part is np._NoValue:  # type: ignore[attr-defined]
            continue
        given = program._expression(part)
        parts.append(views.broadcast_to(given, sizes) if given.shape == () else given)
    return views.concatenate(parts, axis)


@implements("diff")
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> "Expression":
    """Differences of neighbours along an axis, n times, as `np.diff`. prepend, append: numbers or arrays that come before
    and behind."""
    if any(more is not None and more is not np._NoValue for more in (prepend, append)):  # type: ignore[attr-defined]
        a = _extended(a, axis, prepend, append)
    count, rank = operator.index(n), len(shape_of("diff", a))
    if count < 0:
        raise ValueError(f"n is {count}: it must be at least 0")
    if rank == 0:
        raise ValueError("diff takes arrays of one axis or more")
    before = (slice(None),) * views.axes_of([axis], rank)[0]
    result = a
    for _ in range(count):
        later, earlier = views.item(result, (*before, slice(1, None))), views.item(result, (*before, slice(None, -1)))
        result = later != earlier if later.dtype == bool else later - earlier
    return result if result is not a else elementwise.positive(a)
