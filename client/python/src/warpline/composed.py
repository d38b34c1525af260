"""Functions of NumPy that are made of others, and have no step of their own."""

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from warpline import creation, elementwise, indexing, ordering, views
from warpline.arrays import Array, as_array
from warpline.elementwise import kind_of, program_of
from warpline.implements import NotHere, implements
from warpline.views import shape_of

if TYPE_CHECKING:
    from warpline.expressions import Expression


def _known(what: str, x: Any) -> Any:
    """The expression of x, whose dtype must be known."""
    given = program_of(what, x)._expression(x)
    if given.dtype is None:
        raise TypeError(f"{what} needs the dtype of {x}, which is not known before it is computed")
    return given


def _has_nan(x: Any) -> bool:
    if kind_of(x.dtype) == "c":
        raise NotHere("NaN among complex numbers is not looked for on the server")
    return kind_of(x.dtype) == "f"


def _without_nan(what: str, x: Any, value: Any) -> Any:
    given = _known(what, x)
    return elementwise.where(np.isnan(given), value, given) if _has_nan(given) else given


@implements("nansum")
def nansum(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """The sum of what is no NaN, as `np.nansum`."""
    return _without_nan("nansum", a, 0).sum(axis, dtype=dtype, out=out, keepdims=keepdims)


@implements("nanprod")
def nanprod(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    return _without_nan("nanprod", a, 1).prod(axis, dtype=dtype, out=out, keepdims=keepdims)


@implements("nancumsum")
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    return ordering.cumsum(_without_nan("nancumsum", a, 0), axis, dtype, out)


@implements("nancumprod")
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    return ordering.cumprod(_without_nan("nancumprod", a, 1), axis, dtype, out)


def _extreme(name: str, a: Any, axis: Any, keepdims: bool, out: None, worst: float) -> Any:
    given = _known(f"nan{name}", a)
    if not _has_nan(given):
        return getattr(given, name)(axis, keepdims=keepdims, out=out)
    missing = np.isnan(given)
    found = getattr(elementwise.where(missing, worst, given), name)(axis, keepdims=keepdims, out=out)
    return elementwise.where(missing.all(axis, keepdims=keepdims), math.nan, found)


@implements("nanmin")
def nanmin(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """The least element that is no NaN; NaN where there is none, as `np.nanmin`."""
    return _extreme("min", a, axis, keepdims, out, math.inf)


@implements("nanmax")
def nanmax(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    return _extreme("max", a, axis, keepdims, out, -math.inf)


def _of_numbers(name: str, a: Any, axis: Any, keepdims: bool, dtype: Any, out: None, **more: Any) -> Any:
    given = _known(f"nan{name}", a)
    where = np.logical_not(np.isnan(given)) if _has_nan(given) else True
    return given.reduce(name, axis, keepdims=keepdims, dtype=dtype, out=out, where=where, **more)


@implements("nanmean")
def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """The mean of what is no NaN, as `np.nanmean`."""
    return _of_numbers("mean", a, axis, keepdims, dtype, out)


def _spread(name: str, a: Any, axis: Any, keepdims: bool, dtype: Any, out: None, ddof: float) -> Any:
    spread = _of_numbers(name, a, axis, keepdims, dtype, out, ddof=ddof)
    given = _known(f"nan{name}", a)
    if not _has_nan(given) or ddof == 0:
        return spread
    numbers = np.logical_not(np.isnan(given)).reduce("count_nonzero", axis, keepdims=keepdims)
    return elementwise.where(numbers > ddof, spread, math.nan)


@implements("nanvar")
def nanvar(a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False) -> Any:
    return _spread("var", a, axis, keepdims, dtype, out, ddof)


@implements("nanstd")
def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False) -> Any:
    return _spread("std", a, axis, keepdims, dtype, out, ddof)


@implements("nan_to_num")
def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: float | None = None,
               neginf: float | None = None) -> Any:
    """Numbers in place of NaN and infinities, as `np.nan_to_num`."""
    given = _known("nan_to_num", x)
    if kind_of(given.dtype) == "c" or not copy:
        raise NotHere("nan_to_num of complex numbers, or in place, is not computed on the server")
    if not _has_nan(given):
        return elementwise.positive(given)
    limits = np.finfo(given.dtype)
    result = elementwise.where(np.isnan(given), nan, given)
    result = elementwise.where(given == math.inf, float(limits.max) if posinf is None else posinf, result)
    return elementwise.where(given == -math.inf, float(limits.min) if neginf is None else neginf, result)


@implements("isclose")
def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """abs(a - b) <= atol + rtol * abs(b), or both equal, as `np.isclose`."""
    program = program_of("isclose", a, b)
    x, y = (z if isinstance(z, (int, float, complex)) and not isinstance(z, np.generic) else program._expression(z)
            for z in (a, b))
    for z in (x, y):
        if isinstance(z, complex) or (hasattr(z, "dtype") and z.dtype is not None and kind_of(z.dtype) == "c"):
            raise NotHere("isclose of complex numbers is not computed on the server")
    if isinstance(y, int):
        y = float(y)
    elif not isinstance(y, float) and y.dtype is not None and kind_of(y.dtype) in "biu":
        y = y.astype(np.float64)  # so that no difference overflows
    near = (abs(x - y) <= atol + rtol * abs(y)) & np.isfinite(y)
    result = near | (x == y)
    return result | (np.isnan(x) & np.isnan(y)) if equal_nan else result


@implements("allclose")
def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Computes at once whether all elements are close, as `np.allclose`."""
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


@implements("array_equal")
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Computes at once whether shapes and elements are equal, as `np.array_equal`."""
    program = program_of("array_equal", a1, a2)
    x, y = program._expression(a1), program._expression(a2)
    if shape_of("array_equal", x) != shape_of("array_equal", y):
        return False
    same = x == y
    if equal_nan and "c" in x.dtype.kind + y.dtype.kind:
        raise NotHere("array_equal with NaN of complex numbers is not computed on the server")
    return bool((same | ((x != x) & (y != y)) if equal_nan else same).all())


@implements("isin")
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None) -> Any:
    """Tells for each element whether it is among some others, as `np.isin`. These are sorted, and looked up."""
    program = program_of("isin", element, test_elements)
    x, among = program._expression(element), _known("isin", views.reshape(program._expression(test_elements), -1))
    shape_of("isin", x)
    if "c" in _known("isin", x).dtype.kind + among.dtype.kind:
        raise NotHere("isin of complex numbers is not computed on the server")
    if shape_of("isin", among)[0] == 0:
        return _beside((element, test_elements), [creation.full_like(x, invert, bool)])[0]
    possible = x == x  # NaN is not equal to NaN
    if {kind_of(x.dtype), kind_of(among.dtype)} == {"i", "u"} and np.result_type(x.dtype, among.dtype).kind == "f":
        # No other integer has the bits of one that both types have.
        possible = x >= 0 if kind_of(x.dtype) == "i" else x < 1 << 63
        x, among = x.astype(np.uint64), among.astype(np.uint64)
    ordered = ordering.sort(among)
    found = ordering.searchsorted(ordered, x, "right") > ordering.searchsorted(ordered, x, "left")
    found = found & possible
    return ~found if invert else found


@implements("broadcast_arrays")
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    program = program_of("broadcast_arrays", *args)
    given = [program._expression(x) for x in args]
    shape = np.broadcast_shapes(*(shape_of("broadcast_arrays", x) for x in given))
    return _beside(args, [views.broadcast_to(x, shape) for x in given])


def _beside(args: Any, made: Any) -> Any:
    """Expressions that may have no tensor in them, but whose clients are those of the arguments."""
    for x in made:
        x._near = next(arg for arg in args if hasattr(arg, "_apply"))
    return tuple(made)


@implements("meshgrid")
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """A grid of coordinates, as `np.meshgrid`."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is {indexing!r}: it is 'xy' or 'ij'")
    program = program_of("meshgrid", *xi)
    given = [views.reshape(program._expression(x), -1) for x in xi]
    places = list(range(len(given)))
    if indexing == "xy" and len(given) > 1:
        places[:2] = [1, 0]
    rows = [views.reshape(x, [-1 if i == place else 1 for i in range(len(given))]) for x, place in zip(given, places)]
    return _beside(xi, rows) if sparse else broadcast_arrays(*rows)


@implements("column_stack")
def column_stack(tup: Any) -> "Expression":
    program = program_of("column_stack", *tup)
    given = [program._expression(x) for x in tup]
    columns = [views.reshape(x, (-1, 1)) if len(shape_of("column_stack", x)) < 2 else x for x in given]
    return views.concatenate(columns, 1)


@implements("append")
def append(arr: Any, values: Any, axis: int | None = None) -> "Expression":
    return views.concatenate([arr, values], axis)


@implements("diag")
def diag(v: Any, k: int = 0) -> Any:
    """A diagonal of a matrix, or a matrix with this diagonal, as `np.diag`."""
    given = _known("diag", v)
    shape = shape_of("diag", given)
    if len(shape) == 2:
        return views.diagonal(given, k)
    if len(shape) != 1:
        raise ValueError(f"diag takes arrays of one axis or two, not {len(shape)}")
    offset = operator.index(k)
    size = shape[0] + abs(offset)
    longer = indexing.pad(given, (0, abs(offset))) if offset else given
    on_it = creation._index((size, size), 1) - creation._index((size, size), 0) == offset
    along = views.reshape(longer, (-1, 1) if offset >= 0 else (1, -1))
    return elementwise.where(on_it, along, elementwise.constant(0, given.dtype))


@implements("average")
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """The weighted mean, as `np.average`."""
    if returned:
        raise NotHere("the sum of the weights of average is not returned")
    x = _known("average", a)
    if weights is None:
        return x.mean(axis, keepdims=keepdims)
    w = x.program._expression(weights)
    shape, of_w = shape_of("average", x), shape_of("average", w)
    if of_w != shape:
        axes = views.axes_of(axis, len(shape)) if axis is not None else []
        if len(axes) != 1 or of_w != (shape[axes[0]],):
            raise NotHere(f"average of {shape} with weights of {of_w} is not computed on the server")
        w = views.reshape(w, [size if i == axes[0] else 1 for i, size in enumerate(shape)])
    common = np.result_type(x.dtype, w.dtype, *([np.float64] if kind_of(x.dtype) in "biu" else []))
    x, w = x.astype(common), w.astype(common)
    total = views.broadcast_to(w, shape).sum(axis, keepdims=keepdims)
    return (x * w).sum(axis, keepdims=keepdims) / total


_VECTOR_NORMS: dict[Any, Any] = {None: "norm2", 2: "norm2", 1: "norm1", math.inf: "norminf"}


def _vector_norm(x: Any, order: Any, axis: Any, keepdims: bool) -> Any:
    if order == math.inf and 0 in shape_of("norm", x):
        return abs(x).max(axis, keepdims=keepdims, initial=0)  # of nothing, as in NumPy 2.3 and later
    if order in _VECTOR_NORMS:
        return x.reduce(_VECTOR_NORMS[order], axis, keepdims=keepdims)
    if isinstance(order, str):
        raise NotHere(f"a norm {order!r} of vectors is not computed on the server")
    size = abs(x)
    if order == -math.inf:
        return size.min(axis, keepdims=keepdims)
    if order == 0:
        return (x != 0).sum(axis, keepdims=keepdims).astype(x.dtype)
    return (size ** float(order)).sum(axis, keepdims=keepdims) ** (1 / float(order))


@implements("linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Norms of vectors, and of matrices by their elements or sums, as `np.linalg.norm`."""
    given = _known("norm", x)
    if kind_of(given.dtype) in "biu":
        given = given.astype(np.float64)
    if kind_of(given.dtype) == "c":
        given = abs(given)
    rank = len(shape_of("norm", given))
    axes = list(range(rank)) if axis is None else views.axes_of(axis, rank)
    if axis is None and ord is None:
        return given.reduce("norm2", keepdims=keepdims)
    if len(axes) == 1:
        return _vector_norm(given, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError(f"norm takes one axis or two, not {len(axes)}")
    if ord in (None, "fro"):
        return given.reduce("norm2", axes, keepdims=keepdims)
    if ord not in (1, -1, math.inf, -math.inf):
        raise NotHere(f"the norm {ord!r} of matrices is not computed on the server")
    rows, columns = axes if abs(ord) == 1 else axes[::-1]
    sums = abs(given).sum(rows, keepdims=True)
    result = sums.max(columns, keepdims=True, initial=0) if ord > 0 and 0 in shape_of("norm", sums) else \
        sums.max(columns, keepdims=True) if ord > 0 else sums.min(columns, keepdims=True)
    return result if keepdims else views.squeeze(result, tuple(axes))


@implements("linalg.vector_norm")
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
    given = _known("vector_norm", x)
    given = given.astype(np.float64) if kind_of(given.dtype) in "biu" else given
    return _vector_norm(abs(given) if kind_of(given.dtype) == "c" else given, ord, axis, keepdims)


@implements("bincount")
def bincount(x: Any, /, weights: None = None, minlength: int = 0) -> Any:
    """Counts each integer from 0, as `np.bincount`. Computes the largest one at once, since it is the size."""
    if weights is not None:
        raise NotHere("bincount with weights is not computed on the server")
    given = _known("bincount", x)
    if len(shape_of("bincount", given)) != 1:
        raise ValueError("bincount takes one axis")
    if kind_of(given.dtype) not in "iu":
        raise NotHere("bincount takes integers")
    size = operator.index(minlength)
    if shape_of("bincount", given)[0] > 0:
        least, most = int(given.min()), int(given.max())
        if least < 0:
            raise ValueError(f"bincount of {least}: elements must not be negative")
        size = max(size, most + 1)
    return _counts(ordering.sort(given), np.arange(size + 1) - 0.5 if size < 1 << 50 else None)


def _counts(ordered: Any, edges: Any) -> Any:
    """Counts the sorted elements between neighbouring edges, the last one included."""
    if edges is None:
        raise NotHere("the result is too large")
    places = ordering.searchsorted(ordered, edges[:-1], "left"), ordering.searchsorted(ordered, edges[-1:], "right")
    return indexing.diff(views.concatenate(places))


@implements("histogram")
def histogram(a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: None = None) -> Any:
    """The histogram, as `np.histogram`: an expression of the counts, and the edges. Without a range or edges, computes the
    least and the largest element at once."""
    if weights is not None or isinstance(bins, str):
        raise NotHere("a histogram with weights or with bins by a rule is not computed on the server")
    x: Any = views.reshape(_known("histogram", a), -1)
    if kind_of(x.dtype) not in "iuf":
        raise NotHere("a histogram takes integers and floats")
    edges: Array
    if np.ndim(bins) == 0:
        ends: list[Any] = []
        if range is None and shape_of("histogram", x)[0] > 0:
            ends = [np.asarray(x.min())[()], np.asarray(x.max())[()]]
        # NumPy's own edges, which need no elements but the ends.
        edges = np.histogram_bin_edges(np.asarray(ends, x.dtype), bins, range)
    else:
        edges = as_array(bins)
        if edges.ndim != 1 or (edges[:-1] > edges[1:]).any():
            raise ValueError("bins must increase monotonically, when an array")
    counts = _counts(ordering.sort(x), edges)
    return (counts / np.diff(edges) / counts.sum() if density else counts), edges
