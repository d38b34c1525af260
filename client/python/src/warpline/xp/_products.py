"""Products of the standard."""

from collections.abc import Sequence

from warpline import products
from warpline.expressions import Expression
from warpline.xp import _types
from warpline.xp._arrays import Array, product
from warpline.xp._checks import array_of, of_common_dtype


def matmul(x1: Array, x2: Array, /) -> Array:
    return product(array_of("matmul", x1), array_of("matmul", x2))


def tensordot(x1: Array, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    a, b = _numbers("tensordot", x1, x2)
    return _of_product(x1, x2, products.tensordot(a, b, axes), a)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    a, b = _numbers("vecdot", x1, x2)
    return _of_product(x1, x2, products.vecdot(a, b, axis=axis), a)


def _numbers(what: str, x1: Array, x2: Array) -> list[Expression]:
    for x in (x1, x2):
        if _types.group_of(array_of(what, x).dtype) == "bool":
            raise TypeError(f"{what} takes numbers, not bool")
    return of_common_dtype(what, (x1, x2))


def _of_product(x1: Array, x2: Array, made: Expression, factor: Expression) -> Array:
    """The server's products of i8 are i32, and those of the standard are i8."""
    return x1._made(made if made._dtype == factor._dtype else made.astype(factor._dtype), x2)
