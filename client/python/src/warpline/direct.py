"""Calls of one operation. If an operand is an expression, the call is a program that ends with the operation."""

from collections.abc import Iterable
from typing import Any

import numpy.typing as npt

from warpline import calls, promotion
from warpline.arguments import Axes
from warpline.arrays import as_array
from warpline.calls import Call, Keep
from warpline.dtypes import DTYPES, data_type, result_data_type
from warpline.expressions import Expression
from warpline.names import Activation, Precision, ReduceOp
from warpline.plans import plan_program
from warpline.programs import FREE
from warpline.residents import Remote


def transpose(x: Any, axes: Iterable[int] | None, variant: str, keep: Keep) -> Call:
    if isinstance(x, Expression):
        return _run(FREE.transpose(x, axes, variant=variant), keep)
    return calls.transpose(x, axes, variant, keep)


def gemm(a: Any, b: Any, c: Any, bias: Any, alpha: float | None, beta: float | None, activation: Activation | None,
         trans_a: bool, trans_b: bool, precision: Precision | None, dtype: npt.DTypeLike | None, variant: str,
         keep: Keep) -> Call:
    """If the operands have different dtypes, the call is a program too: the server casts them."""
    a, b = (x if isinstance(x, Remote) else as_array(x) for x in (a, b))
    c, bias = (x if x is None or isinstance(x, Remote) else as_array(x) for x in (c, bias))
    if any(isinstance(x, Expression) for x in (a, b, c, bias)) or _is_mixed(a, b, [c, bias], result_data_type(dtype)):
        product = FREE.gemm(a, b, c, alpha=alpha, beta=beta, bias=bias, activation=activation, trans_a=trans_a,
                            trans_b=trans_b, precision=precision, dtype=dtype, variant=variant)
        return _run(product, keep)
    return calls.gemm(a, b, c, alpha, beta, bias, activation, trans_a, trans_b, precision, dtype, variant, keep)


def matmul(a: Any, b: Any, dtype: npt.DTypeLike | None, keep: Keep) -> Call:
    return gemm(a, b, None, None, None, None, None, False, False, None, dtype, "", keep)


def reduce(x: Any, op: ReduceOp, axis: Axes, keepdims: bool, dtype: npt.DTypeLike | None, ddof: int, variant: str,
           keep: Keep) -> Call:
    if isinstance(x, Expression):
        return _run(FREE.reduce(x, op, axis, keepdims=keepdims, dtype=dtype, ddof=ddof, variant=variant), keep)
    return calls.reduce(x, op, axis, keepdims, dtype, ddof, variant, keep)


def _is_mixed(a: Any, b: Any, terms: Iterable[Any], out: str) -> bool:
    """True if operands of a gemm, arrays or tensors, are to be cast."""
    dtypes = [DTYPES[data_type(x.dtype)] for x in (a, b, *terms) if x is not None]
    types = promotion.product_types(dtypes[0], dtypes[1], tuple(dtypes[2:]), out)
    return types.out != out or dtypes != [types.factors] * 2 + [types.result] * (len(dtypes) - 2)


def _run(expression: Expression, keep: Keep) -> Call:
    return plan_program([expression])._replace(keep=keep)
