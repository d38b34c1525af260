"""Products of arrays that are made of others: what NumPy's dot, inner, outer, vecdot, tensordot and trace compute."""

import math
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from warpline import views
from warpline.dtypes import DTYPES
from warpline.elementwise import program_of
from warpline.implements import implements
from warpline.views import shape_of

if TYPE_CHECKING:
    from warpline.expressions import Expression

_F32, _I8, _I32 = (DTYPES[f"DATA_TYPE_{name}"] for name in ("F32", "I8", "I32"))
_HALVES = (DTYPES["DATA_TYPE_F16"], DTYPES["DATA_TYPE_BF16"])


@implements("outer", "linalg.outer")
def outer(a: Any, b: Any, out: None = None) -> "Expression":
    """The products of each element of a with each of b, as `np.outer`."""
    views.check_no_out(out)
    program = program_of("outer", a, b)
    left, right = (views.reshape(program._expression(x), -1) for x in (a, b))
    return left[:, None] * right[None, :]


@implements("linalg.vecdot")
def vecdot(x1: Any, x2: Any, axis: int = -1) -> "Expression":
    """Sums of products along an axis of both, the first factor conjugated, as `np.vecdot`. The other axes are broadcast.
    Products of 16-bit floats are added up in f32."""
    program = program_of("vecdot", x1, x2)
    left, right = (views.moveaxis(program._expression(x), operator.index(axis), -1) for x in (x1, x2))
    sizes = shape_of("vecdot", left)[-1], shape_of("vecdot", right)[-1]
    if sizes[0] != sizes[1]:
        raise ValueError(f"vecdot of axes of {sizes[0]} and {sizes[1]} elements: they must have as many")
    if left.dtype is not None and left.dtype.kind == "c":
        left = left.conj()
    dtype = (left * right).dtype
    if dtype == _I8:  # as of gemm
        left, dtype = left.astype(_I32), _I32
    if dtype in _HALVES:
        return (left.astype(_F32) * right.astype(_F32)).sum(-1).astype(dtype)
    return (left * right).sum(-1, dtype=dtype)


@implements("tensordot", "linalg.tensordot")
def tensordot(a: Any, b: Any, axes: Any = 2) -> "Expression":
    """Sums of products along axes of both, as `np.tensordot`."""
    program = program_of("tensordot", a, b)
    left, right = program._expression(a), program._expression(b)
    rank_a, rank_b = len(shape_of("tensordot", left)), len(shape_of("tensordot", right))
    if isinstance(axes, Iterable):
        of_a, of_b = ([operator.index(i) for i in (part if isinstance(part, Iterable) else [part])] for part in axes)
    elif 0 <= axes <= min(rank_a, rank_b):
        of_a, of_b = list(range(rank_a - axes, rank_a)), list(range(axes))
    else:
        raise ValueError(f"axes is {axes}: the operands have {rank_a} and {rank_b}")
    of_a, of_b = views.axes_of(of_a, rank_a), views.axes_of(of_b, rank_b)
    sizes_a, sizes_b = shape_of("tensordot", left), shape_of("tensordot", right)
    if [sizes_a[i] for i in of_a] != [sizes_b[i] for i in of_b]:
        raise ValueError(f"tensordot of {sizes_a} and {sizes_b}: the axes {of_a} and {of_b} have other sizes")
    kept_a, kept_b = ([i for i in range(rank) if i not in gone] for rank, gone in ((rank_a, of_a), (rank_b, of_b)))
    inner = math.prod(sizes_a[i] for i in of_a)
    rows = views.reshape(left.transpose(kept_a + of_a), (math.prod(sizes_a[i] for i in kept_a), inner))
    columns = views.reshape(right.transpose(of_b + kept_b), (inner, math.prod(sizes_b[i] for i in kept_b)))
    return views.reshape(rows @ columns, [sizes_a[i] for i in kept_a] + [sizes_b[i] for i in kept_b])


@implements("dot")
def dot(a: Any, b: Any, out: None = None) -> "Expression":
    """Sums over the last axis of a and the last but one of b, as `np.dot`."""
    views.check_no_out(out)
    program = program_of("dot", a, b)
    left, right = program._expression(a), program._expression(b)
    rank_a, rank_b = len(shape_of("dot", left)), len(shape_of("dot", right))
    if rank_a == 0 or rank_b == 0:
        return left * right
    return tensordot(left, right, ([rank_a - 1], [max(rank_b - 2, 0)]))


@implements("inner")
def inner(a: Any, b: Any) -> "Expression":
    """Sums over the last axes of both, as `np.inner`."""
    program = program_of("inner", a, b)
    left, right = program._expression(a), program._expression(b)
    rank_a, rank_b = len(shape_of("inner", left)), len(shape_of("inner", right))
    if rank_a == 0 or rank_b == 0:
        return left * right
    return tensordot(left, right, ([rank_a - 1], [rank_b - 1]))


@implements("trace")
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None) -> "Expression":
    """Sums of diagonals, as `np.trace`."""
    views.check_no_out(out)
    return views.diagonal(a, offset, axis1, axis2).sum(-1, dtype=dtype)
