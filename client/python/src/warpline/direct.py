"""Calls of one operation. If an operand is an expression, the call is a program that ends with the operation."""

from collections.abc import Iterable
from typing import Any

import numpy.typing as npt

from warpline import calls
from warpline.arguments import Axes
from warpline.calls import Call, Keep
from warpline.expressions import Expression
from warpline.names import Activation, Precision, ReduceOp
from warpline.programs import FREE, plan_program


def transpose(x: Any, axes: Iterable[int] | None, variant: str, keep: Keep) -> Call:
    if isinstance(x, Expression):
        return _run(FREE.transpose(x, axes, variant=variant), keep)
    return calls.transpose(x, axes, variant, keep)


def gemm(a: Any, b: Any, c: Any, alpha: float | None, beta: float | None, bias: Any, activation: Activation | None,
         trans_a: bool, trans_b: bool, precision: Precision | None, dtype: npt.DTypeLike | None, variant: str,
         keep: Keep) -> Call:
    if any(isinstance(x, Expression) for x in (a, b, c, bias)):
        product = FREE.gemm(a, b, c, alpha=alpha, beta=beta, bias=bias, activation=activation, trans_a=trans_a,
                            trans_b=trans_b, precision=precision, dtype=dtype, variant=variant)
        return _run(product, keep)
    return calls.gemm(a, b, c, alpha, beta, bias, activation, trans_a, trans_b, precision, dtype, variant, keep)


def reduce(x: Any, op: ReduceOp, axis: Axes, keepdims: bool, dtype: npt.DTypeLike | None, ddof: int, variant: str,
           keep: Keep) -> Call:
    if isinstance(x, Expression):
        return _run(FREE.reduce(x, op, axis, keepdims=keepdims, dtype=dtype, ddof=ddof, variant=variant), keep)
    return calls.reduce(x, op, axis, keepdims, dtype, ddof, variant, keep)


def _run(expression: Expression, keep: Keep) -> Call:
    return plan_program([expression])._replace(keep=keep)
