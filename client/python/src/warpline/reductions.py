"""Reductions as NumPy calls them: of what a mask chooses (where=), with a further element (initial=), along no axes, with
a ddof that is no integer, and as methods of ufuncs."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from warpline import creation, elementwise, ordering, views
from warpline.elementwise import kind_of
from warpline.implements import NotHere, implements
from warpline.names import ReduceOp

if TYPE_CHECKING:
    from warpline.expressions import Expression

# Elements that a mask does not choose become these, which change no result.
_NEUTRAL = {"sum": 0, "prod": 1, "any": False, "all": True, "count_nonzero": 0}
_OF_CHOSEN = {*_NEUTRAL, "mean", "var", "std"}
# These operations join a further element to the result.
_JOINS = {"sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum"}
_OF_UFUNCS: dict[np.ufunc, ReduceOp] = {np.add: "sum", np.multiply: "prod", np.minimum: "min", np.maximum: "max",
                                        np.logical_and: "all", np.logical_or: "any"}


def make(x: Any, op: ReduceOp, axis: Any, keepdims: bool, dtype: Any, ddof: float, variant: str, name: str, where: Any,
         initial: Any) -> "Expression":
    """x.reduce(op, ...) with all that NumPy's reductions take."""
    given: Expression = x.program._expression(x)
    if where is not True and given.shape is not None:
        where = _mask_of(given, where)
    if isinstance(axis, (tuple, list)) and len(axis) == 0 and given.shape is not None:
        given, axis, keepdims = views.expand_dims(given, -1), -1, False
        where = where if where is True else views.expand_dims(where, -1)
    elif given.shape == () and axis is not None:
        axes = axis if isinstance(axis, (tuple, list)) else [axis]
        views.axes_of(axes, 1 if set(axes) <= {0, -1} else 0)  # NumPy takes the axis of a vector
        axis = None
    if _is_chosen(given) and axis is None and not keepdims and op in _OF_CHOSEN and where is True and not variant and not name:
        # This takes one request, and moves nothing.
        given, mask = given._inputs
        rank = len(views.shape_of("a mask", mask))
        where = views.reshape(mask, [*views.shape_of("a mask", mask), *[1] * (len(views.shape_of(op, given)) - rank)])
    fraction = isinstance(ddof, (float, np.floating)) and math.isfinite(ddof) and not float(ddof).is_integer()
    if where is True and initial is None and not fraction:
        made: Expression = x.program.reduce(given, op, axis, keepdims=keepdims, dtype=dtype, ddof=ddof, variant=variant,
                                            name=name)
        return made
    if variant or name:
        raise TypeError("a reduction with where or initial is several steps, which have no variant and no name")
    if initial is not None:
        return _with_initial(given, op, axis, keepdims, dtype, where, initial)
    if op == "mean":
        return _mean(given, axis, keepdims, dtype, where)
    if op in ("var", "std"):
        return _variance(given, op, axis, keepdims, dtype, ddof, where)
    if op not in _NEUTRAL:
        raise ValueError(f"{op} with where needs an initial, which is the result where the mask chooses nothing")
    return elementwise.where(where, given, _NEUTRAL[op]).reduce(op, axis, keepdims=keepdims, dtype=dtype)


def _is_chosen(x: Any) -> bool:
    """True for the elements that a mask of known shape chooses."""
    return (x._operation is not None and x._operation.kind == "compress"
            and all(y.shape is not None and y.dtype is not None for y in x._inputs))


def _with_initial(x: Any, op: ReduceOp, axis: Any, keepdims: bool, dtype: Any, where: Any, initial: Any) -> "Expression":
    if op not in _JOINS:
        raise TypeError(f"{op} takes no initial")
    if where is not True:
        x = elementwise.where(where, x, _NEUTRAL[op] if op in _NEUTRAL else _of_type(x, initial, x.dtype))
    shape = views.shape_of(op, x)
    reduced = range(len(shape)) if axis is None else views.axes_of(axis, len(shape))
    if 0 in (shape[i] for i in reduced):
        kept = [1 if i in reduced else size for i, size in enumerate(shape) if keepdims or i not in reduced]
        return creation.full_like(x, initial, shape=kept, dtype=dtype or (x.reduce(op, axis).dtype if op in _NEUTRAL else x.dtype))
    result: Expression = x.reduce(op, axis, keepdims=keepdims, dtype=dtype)
    return elementwise.make(_JOINS[op], x.program, (result, _of_type(x, initial, result.dtype)))


def _of_type(x: Any, number: Any, dtype: Any) -> Any:
    """The number as one of this dtype, to which NumPy converts an initial."""
    if dtype is None or np.ndim(number) != 0:
        return number
    # Python's integers must fit, and NumPy's are converted.
    value = np.array(number, dtype) if type(number) is int else np.asarray(number).astype(dtype)
    return elementwise.constant(value[()], dtype)


def _mask_of(x: Any, mask: Any) -> "Expression":
    """The mask as an expression of the shape of x."""
    chosen: Expression = x.program._expression(mask)
    if chosen.dtype is not None and chosen.dtype != np.bool_:
        raise TypeError(f"where is a mask of bool, not {chosen.dtype}")
    shape = views.shape_of("where", chosen)
    if np.broadcast_shapes(shape, x.shape) != x.shape:
        raise ValueError(f"where has the shape {shape}, which does not broadcast to {x.shape}")
    return chosen if shape == x.shape else views.broadcast_to(chosen, x.shape)


def _of_floats(what: str, x: Any, dtype: Any) -> "tuple[np.dtype[Any], np.dtype[Any]]":
    """The dtype of a mean or variance, and that in which it is computed."""
    if x.shape is None or x.dtype is None:
        raise TypeError(f"a {what} of the elements that a mask chooses needs the shape and the dtype of {x}")
    result = np.dtype(np.float64 if x.dtype.kind in "biu" else x.dtype) if dtype is None else np.dtype(dtype)
    if kind_of(result) in "biu":
        raise TypeError(f"a {what} is no {result}: dtype is a type of floats")
    # Sums and counts beyond 65504 are no f16.
    return result, np.dtype(np.float32) if result.itemsize == 2 else result


def _total(x: Any, chosen: Any, axis: Any, keepdims: bool, dtype: Any) -> Any:
    """The sum of the chosen elements."""
    return (x if chosen is None else elementwise.where(chosen, x, 0)).reduce("sum", axis, keepdims=keepdims, dtype=dtype)


def _count(x: Any, chosen: Any, axis: Any, keepdims: bool, dtype: Any) -> Any:
    if chosen is not None:
        return chosen.reduce("count_nonzero", axis, keepdims=keepdims).astype(dtype)
    shape = x.shape
    axes = range(len(shape)) if axis is None else views.axes_of(axis, len(shape))
    return math.prod(shape[i] for i in axes)


def _mean(x: Any, axis: Any, keepdims: bool, dtype: Any, mask: Any) -> "Expression":
    result, computed = _of_floats("mean", x, dtype)
    chosen = None if mask is True else _mask_of(x, mask)
    mean: Expression = _total(x, chosen, axis, keepdims, computed) / _count(x, chosen, axis, keepdims, computed)
    return mean if computed == result else mean.astype(result)


def _variance(x: Any, op: ReduceOp, axis: Any, keepdims: bool, dtype: Any, ddof: float, mask: Any) -> "Expression":
    """Takes two passes: the second one adds up the squares of the differences from the mean."""
    result, computed = _of_floats("variance", x, dtype)
    if result.kind == "c":
        raise NotHere(f"{op} of complex numbers that a mask chooses is not computed on the server")
    chosen = None if mask is True else _mask_of(x, mask)
    wide = x.astype(computed)
    mean = _total(wide, chosen, axis, True, computed) / _count(x, chosen, axis, True, computed)
    difference = wide - mean
    count = _count(x, chosen, axis, keepdims, computed)
    total = _total(difference * difference, chosen, axis, keepdims, computed)
    variance: Expression = total / elementwise.clip(count - float(ddof), 0, None) if chosen is not None else \
        total / max(count - float(ddof), 0.0)
    root = elementwise.make("sqrt", x.program, (variance,)) if op == "std" else variance
    return root.astype(result)


def reduce(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: None = None, keepdims: bool = False,
           initial: Any = None, where: Any = True) -> "Expression":
    """np.add.reduce and the like. Raises NotHere for ufuncs that are no reduction of the server."""
    views.check_no_out(out)
    op = _OF_UFUNCS.get(ufunc)
    if op is None:
        raise NotHere(f"numpy.{ufunc.__name__}.reduce is not computed on the server")
    made: Expression = array.program._expression(array).reduce(op, axis, dtype=dtype, keepdims=keepdims, where=where,
                                                               initial=initial)
    return made


def outer(ufunc: np.ufunc, a: Any, b: Any) -> "Expression":
    """The ufunc of each element of a with each of b. Raises NotHere for ufuncs that the server lacks."""
    if not elementwise.operation_of(ufunc):
        raise NotHere(f"numpy.{ufunc.__name__} is not computed on the server")
    program = elementwise.program_of("outer", a, b)
    left, right = program._expression(a), program._expression(b)
    rank = len(views.shape_of("outer", right))
    made: Expression = ufunc(views.reshape(left, (*views.shape_of("outer", left), *[1] * rank)), right)
    return made


def accumulate(ufunc: np.ufunc, *arguments: Any, **keywords: Any) -> "Expression":
    return ordering.accumulate(ufunc, *arguments, **keywords)


@implements("ptp")
def ptp(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> "Expression":
    """The largest element minus the smallest, as `np.ptp`."""
    views.check_no_out(out)
    x = elementwise.program_of("ptp", a)._expression(a)
    made: Expression = x.max(axis, keepdims=keepdims) - x.min(axis, keepdims=keepdims)
    return made
