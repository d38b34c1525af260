"""The extension linalg, as far as the server has it."""

from typing import Any

from warpline import composed, views
from warpline.xp import _types
from warpline.xp._arrays import Array
from warpline.xp._creation import eye
from warpline.xp._functions import broadcast_to, matmul, matrix_transpose, moveaxis, stack, sum, tensordot, vecdot

__all__ = ["cross", "diagonal", "matmul", "matrix_norm", "matrix_power", "matrix_transpose", "outer", "tensordot", "trace", "vecdot",
           "vector_norm"]


def outer(x1: Array, x2: Array, /) -> Array:
    return x1[:, None] * x2[None, :]


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    return x._made(views.diagonal(x._x, offset, -2, -1))


def trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Array, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: int | float = 2) -> Array:
    return x._made(composed.vector_norm(x._x, axis=axis, keepdims=keepdims, ord=ord))


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    return x._made(composed.norm(x._x, ord, (-2, -1), keepdims))


def matrix_power(x: Array, n: int, /) -> Array:
    """The product of n factors x, by squaring. n must not be negative: the server inverts no matrices."""
    if n < 0:
        raise NotImplementedError("matrix_power of negative n: the server inverts no matrices")
    if n == 0:
        return broadcast_to(eye(x.shape[-1], dtype=x.dtype, device=x._session), x.shape)
    half = matrix_power(x, n // 2) if n > 1 else None
    square = x if half is None else half @ half
    return square if n % 2 == 0 or n == 1 else square @ x


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    _types.common(x1.dtype, x2.dtype)
    a, b = moveaxis(x1, axis, 0), moveaxis(x2, axis, 0)
    if a.shape[0] != 3 or b.shape[0] != 3:
        raise ValueError(f"cross takes vectors of 3 elements, not {a.shape[0]} and {b.shape[0]}")
    return stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]], axis=axis)
