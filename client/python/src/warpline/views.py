"""Views and what joins arrays: steps that move elements, or only read them in another order, and compute nothing.

A view costs no copy where the steps that read it can read the original in another order: elementwise operations, other
views, concatenate, and products of a matrix or its transpose.
"""

import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from warpline import promotion
from warpline.elementwise import program_of
from warpline.implements import implements

if TYPE_CHECKING:
    from warpline.expressions import Expression

# Has another place in NumPy 1.24.
_AxisError: Any = getattr(np, "exceptions", np).AxisError

# Ends of slices as the API has them: all up to the last element, or down to the first.
_TO_THE_LAST, _TO_THE_FIRST = str((1 << 63) - 1), str(-(1 << 63))


def _make(kind: str, x: Any, fields: dict[str, Any]) -> "Expression":
    given = program_of(kind, x)._expression(x)
    made: Expression = given.program._step(kind, [given], fields, "", "", given.dtype)
    return made


def shape_of(what: str, x: Any) -> tuple[int, ...]:
    """The shape, which must be known."""
    shape: tuple[int, ...] | None = x.shape
    if shape is None:
        refusal = getattr(x, "_refusal", None)
        if refusal is not None:
            raise ValueError(f"{what} of {x}, which cannot be computed: {refusal}")
        raise TypeError(f"{what} needs the shape of {x}, which is not known before it is computed: compute that first, as "
                        "by y = client.run(..., keep=True)")
    return shape


def _axis(axis: SupportsIndex, rank: int) -> int:
    index = operator.index(axis)
    if not -rank <= index < rank:
        raise _AxisError(index, rank)
    return index % rank


def axes_of(axes: Any, rank: int) -> list[int]:
    found = [_axis(axis, rank) for axis in (axes if isinstance(axes, Iterable) else [axes])]
    if len(set(found)) < len(found):
        raise ValueError(f"an axis occurs twice in {axes}")
    return found


@implements("reshape")
def reshape(x: Any, shape: Any, order: str = "C", **unsupported: Any) -> "Expression":
    """The elements in row-major order with another shape, of which one size may be -1."""
    if order != "C" or any(value is not None for value in unsupported.values()):
        raise TypeError("reshape takes a shape, and reads elements in C order")
    sizes = list(shape) if isinstance(shape, Iterable) else [shape]
    return _make("reshape", x, {"shape": tuple(operator.index(size) for size in sizes)})


@implements("broadcast_to")
def broadcast_to(x: Any, shape: Any, subok: bool = False) -> "Expression":
    sizes = list(shape) if isinstance(shape, Iterable) else [shape]
    return _make("broadcast_to", x, {"shape": tuple(operator.index(size) for size in sizes)})


@implements("squeeze")
def squeeze(x: Any, axis: Any = None) -> "Expression":
    """Without axes of size 1: the given ones, or all of them."""
    shape = shape_of("squeeze", x)
    gone = axes_of([i for i, size in enumerate(shape) if size == 1] if axis is None else axis, len(shape))
    if any(shape[i] != 1 for i in gone):
        raise ValueError(f"squeeze of axes {sorted(gone)} of {shape}, of which not all have size 1")
    return reshape(x, [size for i, size in enumerate(shape) if i not in gone])


@implements("expand_dims")
def expand_dims(x: Any, axis: Any = 0) -> "Expression":
    """With new axes of size 1, which have these places in the result."""
    shape = shape_of("expand_dims", x)
    count = len(axis) if isinstance(axis, Sequence) else 1
    places, sizes = axes_of(axis, len(shape) + count), iter(shape)
    return reshape(x, [1 if i in places else next(sizes) for i in range(len(shape) + count)])


@implements("moveaxis")
def moveaxis(x: Any, source: Any, destination: Any) -> "Expression":
    rank = len(shape_of("moveaxis", x))
    from_axes, to_axes = axes_of(source, rank), axes_of(destination, rank)
    if len(from_axes) != len(to_axes):
        raise ValueError(f"moveaxis of {len(from_axes)} axes to {len(to_axes)}")
    order = [i for i in range(rank) if i not in from_axes]
    for to, of in sorted(zip(to_axes, from_axes)):
        order.insert(to, of)
    return _permuted(x, order)


@implements("swapaxes")
def swapaxes(x: Any, axis1: SupportsIndex, axis2: SupportsIndex) -> "Expression":
    rank = len(shape_of("swapaxes", x))
    order = list(range(rank))
    i, k = _axis(axis1, rank), _axis(axis2, rank)
    order[i], order[k] = k, i
    return _permuted(x, order)


def _permuted(x: Any, order: Sequence[int]) -> "Expression":
    made: Expression = program_of("transpose", x).transpose(x, order)
    return made


@implements("flip")
def flip(x: Any, axis: Any = None) -> "Expression":
    """In reverse order along some axes, or all."""
    rank = len(shape_of("flip", x))
    axes = axes_of(range(rank) if axis is None else axis, rank)
    return _sliced(x, {i: (str(-1), _TO_THE_FIRST, -1) for i in axes})


@implements("diagonal")
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> "Expression":
    return _make("diagonal", x, {"offset": operator.index(offset), "axis1": operator.index(axis1),
                                 "axis2": operator.index(axis2)})


def slice_fields(ranges: dict[int, tuple[str, str, int]]) -> dict[str, Any]:
    """ranges: start, end and step, by axis."""
    return {"starts": tuple(r[0] for r in ranges.values()), "ends": tuple(r[1] for r in ranges.values()),
            "axes": tuple(ranges), "steps": tuple(r[2] for r in ranges.values())}


def _sliced(x: Any, ranges: dict[int, tuple[str, str, int]]) -> "Expression":
    return _make("slice", x, slice_fields(ranges))


def _range_of(key: slice) -> tuple[str, str, int] | None:
    """Start, end and step of a slice; None if it takes all."""
    step = 1 if key.step is None else operator.index(key.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    start = (0 if step > 0 else -1) if key.start is None else operator.index(key.start)
    end = (_TO_THE_LAST if step > 0 else _TO_THE_FIRST) if key.stop is None else str(operator.index(key.stop))
    return None if (start, end, step) == (0, _TO_THE_LAST, 1) else (str(start), end, step)


def item(x: Any, key: Any) -> "Expression":
    """x[key], for integers, slices, None and ...: the basic indexing of NumPy."""
    ranges, sizes = ranges_of(x, key)
    taken_x = _sliced(x, ranges) if ranges else x
    return taken_x if sizes == taken_x.shape and taken_x is not x else reshape(taken_x, sizes)


def ranges_of(x: Any, key: Any) -> tuple[dict[int, tuple[str, str, int]], tuple[int, ...]]:
    """What a key of basic indexing takes: start, end and step, by axis, and the shape of x[key]."""
    items = list(key) if isinstance(key, tuple) else [key]
    for part in items:
        if part is not None and part is not Ellipsis and not isinstance(part, slice) and not _is_integer(part):
            raise TypeError(f"an index is an integer, a slice, None, ... or an array of indices, not {type(part).__name__}")
    if sum(part is Ellipsis for part in items) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    shape = shape_of("indexing", x)
    named = sum(part is not None and part is not Ellipsis for part in items)
    if named > len(shape):
        raise IndexError(f"too many indices: {named} for {len(shape)} axes")
    if Ellipsis not in items:
        items.append(Ellipsis)
    ranges: dict[int, tuple[str, str, int]] = {}
    sizes: list[int] = []
    axis = 0
    for part in items:
        if part is None:
            sizes.append(1)
        elif part is Ellipsis:
            rest = len(shape) - named
            sizes += shape[axis:axis + rest]
            axis += rest
        elif isinstance(part, slice):
            taken = _range_of(part)
            if taken is not None:
                ranges[axis] = taken
            sizes.append(len(range(*part.indices(shape[axis]))))
            axis += 1
        else:
            index = operator.index(part)
            if not -shape[axis] <= index < shape[axis]:
                raise IndexError(f"index {index} is out of bounds for axis {axis} with size {shape[axis]}")
            index %= shape[axis]
            ranges[axis] = (str(index), str(index + 1), 1)
            axis += 1
    return ranges, tuple(sizes)


def check_no_out(out: Any) -> None:
    if out is not None:
        raise TypeError("out is given to an expression, which is not computed here: give it to a client's run")


def _is_integer(part: Any) -> bool:
    return hasattr(part, "__index__") and not isinstance(part, (bool, np.bool_)) and np.ndim(part) == 0


_MAX_JOINED = 64


@implements("concatenate")
def concatenate(arrays: Sequence[Any], axis: int | None = 0, out: None = None, *, dtype: Any = None,
                casting: str = "same_kind") -> "Expression":
    """Joins arrays along an axis; None: all elements of each, in a row. Dtypes are promoted as by NumPy 2."""
    check_no_out(out)
    program = program_of("concatenate", *arrays)
    given = [program._expression(x) for x in arrays]
    if axis is None:
        given, axis = [reshape(x, -1) for x in given], 0
    if any(x.shape == () for x in given):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    common = None if dtype is None else np.dtype(dtype)
    if common is None and all(x.dtype is not None for x in given):
        common = given[0].dtype
        for x in given[1:]:
            common = promotion.common(common, x.dtype)
    if common is not None:
        for x in given:
            if dtype is not None and x.dtype is not None and not np.can_cast(x.dtype, common, casting):  # type: ignore[arg-type]
                raise TypeError(f"cannot cast {x} to {common} by the rule {casting!r}")
        given = [program._cast(x, common) for x in given]
    fields = {"axis": operator.index(axis)} if axis else {}
    while len(given) > _MAX_JOINED:  # a request has few inputs, so that several may be needed
        given = [program._step("concat", lot, fields, "", "", common) if len(lot) > 1 else lot[0]
                 for lot in (given[i:i + _MAX_JOINED] for i in range(0, len(given), _MAX_JOINED))]
    made: Expression = program._step("concat", given, fields, "", "", common)
    return made


@implements("stack")
def stack(arrays: Sequence[Any], axis: int = 0, out: None = None, *, dtype: Any = None,
          casting: str = "same_kind") -> "Expression":
    """Joins arrays of one shape along a new axis, which has this place in the result."""
    program = program_of("stack", *arrays)
    given = [program._expression(x) for x in arrays]
    shapes = {shape_of("stack", x) for x in given}
    if len(shapes) > 1:
        raise ValueError(f"all arrays of a stack have the same shape, not {sorted(shapes)}")
    place = _axis(axis, len(shapes.pop()) + 1)
    return concatenate([expand_dims(x, place) for x in given], place, out, dtype=dtype, casting=casting)


@implements("vstack")
def vstack(tup: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind") -> "Expression":
    program = program_of("vstack", *tup)
    given = [program._expression(x) for x in tup]
    rows = [reshape(x, (1, -1)) if len(shape_of("vstack", x)) < 2 else x for x in given]
    return concatenate(rows, 0, dtype=dtype, casting=casting)


@implements("hstack")
def hstack(tup: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind") -> "Expression":
    program = program_of("hstack", *tup)
    given = [program._expression(x) for x in tup]
    ranks = [len(shape_of("hstack", x)) for x in given]
    whole = [reshape(x, -1) if rank == 0 else x for x, rank in zip(given, ranks)]
    return concatenate(whole, 0 if max(ranks) < 2 else 1, dtype=dtype, casting=casting)


@implements("ravel")
def ravel(x: Any, order: str = "C") -> "Expression":
    return reshape(x, -1, order)


@implements("flipud")
def flipud(m: Any) -> "Expression":
    return flip(m, 0)


@implements("fliplr")
def fliplr(m: Any) -> "Expression":
    return flip(m, 1)


@implements("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(x: Any) -> "Expression":
    return swapaxes(x, -1, -2)
