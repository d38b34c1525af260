"""Running sums and products, sorts, and what follows from the order of elements."""

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from warpline import arguments, creation, elementwise, indexing, promotion, views
from warpline.arguments import fields_of
from warpline.arrays import as_array
from warpline.dtypes import DTYPES, result_data_type
from warpline.elementwise import program_of
from warpline.implements import NotHere, implements
from warpline.views import shape_of

if TYPE_CHECKING:
    from warpline.expressions import Expression

_I64, _F32, _F64, _BF16 = (DTYPES[f"DATA_TYPE_{name}"] for name in ("I64", "F32", "F64", "BF16"))


def _rows(what: str, x: Any, axis: int | None) -> "tuple[Expression, int]":
    """The expression and the axis; None: all elements in a row."""
    given: Expression = program_of(what, x)._expression(x)
    if axis is None:
        return (given if given.ndim == 1 else views.reshape(given, -1)), 0
    return given, operator.index(axis)


def scan(x: Any, op: str, axis: int | None = None, *, dtype: Any = None, exclusive: bool = False,
         reverse: bool = False) -> "Expression":
    """Each element combined with all before it along an axis; None: along all elements in a row.

    op: "sum", "prod", "min" or "max". After a NaN, all minima and maxima are NaN.
    dtype: Data type of a sum or product; x is converted first. None: that of NumPy's cumsum, but i64 or u64 for integers.
    exclusive: Leaves each element out of its own result: the first is 0, 1, or the greatest or least value of the type.
    reverse: From the end of the axis.
    """
    if op not in ("sum", "prod", "min", "max"):
        raise ValueError(f"op is {op!r}: it is 'sum', 'prod', 'min' or 'max'")
    given, along = _rows("scan", x, axis)
    number = result_data_type(dtype)
    fields = fields_of(op=f"SCAN_OP_{op.upper()}", axis=along, exclusive=arguments.flag_of("exclusive", exclusive),
                       reverse=arguments.flag_of("reverse", reverse), out_data_type=number)
    made: Expression = given.program._step("scan", [given], fields, "", "", DTYPES.get(number))
    return made


@implements("cumsum")
def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> "Expression":
    views.check_no_out(out)
    return scan(a, "sum", axis, dtype=dtype)


@implements("cumprod")
def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> "Expression":
    views.check_no_out(out)
    return scan(a, "prod", axis, dtype=dtype)


def _cumulative(x: Any, op: str, axis: int | None, dtype: Any, out: None, include_initial: bool) -> "Expression":
    views.check_no_out(out)
    rank = len(shape_of("a cumulative operation", x))
    if axis is None and rank != 1:
        raise ValueError(f"axis is needed for {rank} axes")
    along = 0 if axis is None else operator.index(axis)
    result = scan(x, op, along, dtype=dtype)
    if not include_initial:
        return result
    sizes = list(shape_of("a cumulative operation", result))
    sizes[along] = 1
    return views.concatenate([creation.full(sizes, 1 if op == "prod" else 0, result.dtype), result], along)


@implements("cumulative_sum")
def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, out: None = None,
                   include_initial: bool = False) -> "Expression":
    return _cumulative(x, "sum", axis, dtype, out, include_initial)


@implements("cumulative_prod")
def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, out: None = None,
                    include_initial: bool = False) -> "Expression":
    return _cumulative(x, "prod", axis, dtype, out, include_initial)


_ACCUMULATED: dict[Any, str] = {np.add: "sum", np.multiply: "prod", np.minimum: "min", np.maximum: "max"}


def accumulate(ufunc: np.ufunc, array: Any, axis: int = 0, dtype: Any = None, out: None = None) -> "Expression":
    """np.add.accumulate and the like."""
    views.check_no_out(out)
    if ufunc not in _ACCUMULATED:
        raise NotHere(f"numpy.{ufunc.__name__}.accumulate is not computed on the server")
    return scan(array, _ACCUMULATED[ufunc], axis, dtype=dtype)


def _check_kind(kind: Any, order: Any) -> None:
    if order is not None:
        raise NotHere("order is for structured arrays, which a server does not have")
    if kind not in (None, "quicksort", "heapsort", "stable", "mergesort"):
        raise ValueError(f"kind is {kind!r}: every sort is stable")


def _is_complex(x: "Expression") -> bool:
    return x.dtype is not None and elementwise.kind_of(x.dtype) == "c"


def _order_of_complex(x: "Expression", along: int, descending: bool) -> "Expression":
    """The places of complex numbers in the order of their real parts, and of the imaginary parts among equal ones. Those
    with a NaN come last: first those whose imaginary part alone is NaN, and those with two at the end."""
    if descending:
        raise NotHere("complex numbers in descending order are not computed on the server")
    order = argsort(x.imag, along)
    for key in (x.real, np.isnan(x.real) * 2 + np.isnan(x.imag)):
        order = indexing.take_along_axis(order, argsort(indexing.take_along_axis(key, order, along), along), along)
    return order


@implements("sort")
def sort(a: Any, axis: int | None = -1, kind: Any = None, order: None = None, *, stable: bool | None = None,
         descending: bool = False) -> "Expression":
    """Sorted along an axis, as `np.sort`; None: all elements in a row. NaN comes last, in descending order too."""
    _check_kind(kind, order)
    x, along = _rows("sort", a, axis)
    if _is_complex(x):
        return indexing.take_along_axis(x, _order_of_complex(x, along, descending), along)
    made: Expression = x.program._step("sort", [x], fields_of(
        axis=along, descending=arguments.flag_of("descending", descending)), "", "", x.dtype)
    return made


@implements("argsort")
def argsort(a: Any, axis: int | None = -1, kind: Any = None, order: None = None, *, stable: bool | None = None,
            descending: bool = False) -> "Expression":
    """The places of the sorted elements, as `np.argsort`, always of a stable sort."""
    _check_kind(kind, order)
    x, along = _rows("argsort", a, axis)
    if _is_complex(x):
        return _order_of_complex(x, along, descending)
    made: Expression = x.program._step("argsort", [x], fields_of(
        axis=along, descending=arguments.flag_of("descending", descending)), "", "", _I64)
    return made


@implements("partition")
def partition(a: Any, kth: Any, axis: int | None = -1, kind: Any = None, order: None = None) -> "Expression":
    """Elements in an order with each kth in its place, and smaller ones before it, as `np.partition`. The order of the
    others is not specified. For more than 16 places all are sorted. `topk` takes the first in order."""
    return _selected("sort", a, _kth("partition", a, kth, axis, kind, order), axis)


@implements("argpartition")
def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: Any = None, order: None = None) -> "Expression":
    """The places of the elements of `partition`, as `np.argpartition`. Of equal elements those with the lowest places come
    before a kth."""
    return _selected("argsort", a, _kth("argpartition", a, kth, axis, kind, order), axis)


_MAX_KTH = 16  # of SortStep


def _kth(what: str, a: Any, kth: Any, axis: int | None, kind: Any, order: Any) -> list[int]:
    """The places of a selection, checked, as the server counts them."""
    if order is not None:
        raise NotHere("order is for structured arrays, which a server does not have")
    if kind not in (None, "introselect"):
        raise ValueError(f"kind is {kind!r}: it is 'introselect'")
    x, along = _rows(what, a, axis)
    shape = shape_of(what, x)
    size = shape[views.axes_of([along], len(shape))[0]]
    places = np.atleast_1d(kth).tolist()
    for k in places:
        if not -size <= operator.index(k) < size:
            raise ValueError(f"kth is {k}, which is outside of [{-size}, {size})")
    return [operator.index(k) % size for k in places]


def _selected(kind: str, a: Any, kth: Iterable[int], axis: int | None) -> "Expression":
    """A sort or argsort that may stop when these places have their elements: SortStep.kth."""
    x, along = _rows("partition", a, axis)
    if _is_complex(x):
        raise NotHere("partitions of complex numbers are not computed on the server")
    places = sorted(set(kth))
    fields = fields_of(axis=along, kth=places if len(places) <= _MAX_KTH else [])
    made: Expression = x.program._step(kind, [x], fields, "", "", _I64 if kind == "argsort" else x.dtype)
    return made


def topk(x: Any, k: int, axis: int = -1, *, largest: bool = True) -> "tuple[Expression, Expression]":
    """The k largest elements along an axis, or the smallest, in order, and their places as int64. Of equal elements those
    with the lowest places are taken. NaN counts as the largest value."""
    given: Expression = program_of("topk", x)._expression(x)
    along, rows = -1, given
    if axis != -1:  # which every shape has, even one that is not known yet
        rank = len(shape_of("topk", given))
        along = views.axes_of([axis], rank)[0]
        rows = given if along == rank - 1 else views.moveaxis(given, along, -1)
    fields = fields_of(k=operator.index(k), smallest=not arguments.flag_of("largest", largest))
    values: Expression = rows.program._step("topk", [rows], fields, "", "", rows.dtype)
    places = _further(values)
    if rows is given:
        return values, places
    return views.moveaxis(values, -1, along), views.moveaxis(places, -1, along)


def sort_with_indices(x: Any, axis: int = -1, *, descending: bool = False) -> "tuple[Expression, Expression]":
    """Sorted elements along an axis and their places as int64, in one step."""
    given, along = _rows("sort", x, axis)
    if _is_complex(given):
        places = _order_of_complex(given, along, descending)
        return indexing.take_along_axis(given, places, along), places
    values: Expression = given.program._step("sort", [given], fields_of(
        axis=along, descending=arguments.flag_of("descending", descending)), "", "", given.dtype)
    return values, _further(values)


def _further(step: "Expression") -> "Expression":
    """The second result of a step: places."""
    made: Expression = step.program._step("further", [step], {}, "", "", _I64)
    return made


@implements("searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> "Expression":
    """The places of v in a sorted vector, as `np.searchsorted`. sorter: the places that sort a."""
    if side not in ("left", "right"):
        raise ValueError(f"side is {side!r}: it is 'left' or 'right'")
    program = program_of("searchsorted", a, v, sorter)
    x1 = program._expression(a)
    # A number v has the dtype of np.asarray(v), as in NumPy. It does not adopt the dtype of a.
    x2 = creation.full((), v) if promotion.is_number(v) else program._expression(v)
    if x1.dtype is not None and x2.dtype is not None and x1.dtype != x2.dtype:
        common = promotion.common(x1.dtype, x2.dtype)
        x1, x2 = program._cast(x1, common), program._cast(x2, common)
    inputs = [x1, x2] if sorter is None else [x1, x2, indexing.indices_of(program, sorter)]
    made: Expression = program._step("searchsorted", inputs, fields_of(
        right=side == "right", has_sorter=sorter is not None), "", "", _I64)
    return made


@implements("quantile")
def quantile(a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
             keepdims: bool = False) -> "Expression":
    """The q-quantiles along an axis, as `np.quantile`, interpolated linearly. q: A number, or several, in [0, 1], known
    to the client."""
    views.check_no_out(out)
    if method != "linear":
        raise NotHere(f"method is {method!r}: 'linear' is implemented")
    wanted = as_array(q).astype(np.float64)
    if wanted.ndim > 1 or not ((wanted >= 0) & (wanted <= 1)).all():
        raise ValueError(f"q is {q}: quantiles are numbers in [0, 1], or a list of them")
    x, along, kept = _one_axis("quantile", a, axis, keepdims)
    dtype = x.dtype
    assert dtype is not None
    if dtype == _BF16:  # of which NumPy may know nothing
        return quantile(program_of("quantile", a)._expression(a).astype(_F32), q, axis, keepdims=keepdims).astype(_BF16)
    if dtype.kind in "biu":
        x, dtype = x.astype(_F64), _F64
    if dtype.kind != "f":
        raise TypeError(f"quantile does not take {dtype}")
    # NumPy makes arrays of lists of q, and only Python's own numbers are weak.
    computed = dtype if type(q) in (int, float) else np.result_type(dtype, np.asarray(q).dtype)
    size = shape_of("quantile", x)[along]
    if size == 0:
        raise ValueError("quantile of no elements has no value")
    position = np.atleast_1d(wanted) * (size - 1)
    low = np.floor(position).astype(np.int64)
    places = {*low.tolist(), *np.minimum(low + 1, size - 1).tolist(), size - 1}  # the last one is NaN if any element is
    ordered = views.moveaxis(_selected("sort", x, places, along), along, 0)
    lower = indexing.take(ordered, low, 0).astype(computed)
    upper = indexing.take(ordered, np.minimum(low + 1, size - 1), 0).astype(computed)
    weight = (position - low).astype(computed).reshape(-1, *([1] * (len(shape_of("quantile", lower)) - 1)))
    # As NumPy interpolates: from the nearer end.
    between = elementwise.where(weight < 0.5, lower + (upper - lower) * weight, upper - (upper - lower) * (1 - weight))
    # Infinite neighbours that are equal have no difference.
    result = elementwise.where(lower == upper, lower, between)
    last = ordered[-1:]
    result = elementwise.where(last != last, last, result)  # a NaN among the elements
    if wanted.ndim == 0:
        result = result[0]
    return views.reshape(result, kept if wanted.ndim == 0 else [len(position), *kept]) if keepdims else result


@implements("median")
def median(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> "Expression":
    """The median along an axis, as `np.median`: the mean of the middle elements."""
    views.check_no_out(out)
    x, along, kept = _one_axis("median", a, axis, keepdims)
    size = shape_of("median", x)[along]
    if size == 0:
        rest = [n for i, n in enumerate(shape_of("median", x)) if i != along]
        kind = _F64 if x.dtype is None or elementwise.kind_of(x.dtype) in "biu" else x.dtype
        return creation.full_like(x, np.nan, kind, shape=kept if keepdims else rest)
    # The last one is NaN if any element is.
    ordered = views.moveaxis(_selected("sort", x, {(size - 1) // 2, size // 2, size - 1}, along), along, 0)
    middle = ordered[(size - 1) // 2:size // 2 + 1].mean(0)
    if middle.dtype is not None and x.dtype is not None and x.dtype.kind == "f":
        middle = elementwise.where(ordered[-1] != ordered[-1], ordered[-1], middle)
    return views.reshape(middle, kept) if keepdims else middle


@implements("percentile")
def percentile(a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
               keepdims: bool = False) -> "Expression":
    """As quantile, of q in [0, 100]."""
    wanted = as_array(q).astype(np.float64)
    if not ((wanted >= 0) & (wanted <= 100)).all():
        raise ValueError(f"q is {q}: percentiles are numbers in [0, 100], or a list of them")
    fraction = q / 100 if type(q) in (int, float) else np.true_divide(q, 100)
    return quantile(a, fraction, axis, out, overwrite_input, method, keepdims)


def _one_axis(what: str, a: Any, axis: Any, keepdims: bool) -> "tuple[Expression, int, list[int]]":
    """The expression with one axis in place of the given ones, that axis, and the shape of the result if they stay."""
    given: Expression = program_of(what, a)._expression(a)
    shape = shape_of(what, given)
    if given.dtype is None:
        raise TypeError(f"{what} needs the dtype of {a}, which is not known before it is computed")
    axes = list(range(len(shape))) if axis is None else views.axes_of(axis, len(shape))
    kept = [1 if i in axes else size for i, size in enumerate(shape)]
    if len(axes) == 1:
        return given, axes[0], kept
    rest = [i for i in range(len(shape)) if i not in axes]
    moved = given.transpose(rest + axes) if shape else given
    return views.reshape(moved, [*(shape[i] for i in rest), -1]), len(rest), kept
