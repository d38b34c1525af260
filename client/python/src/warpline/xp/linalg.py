"""The extension linalg. The server decomposes and inverts no matrices: `warpline.xp.config(fallback="numpy")` does so on the
client; without it these functions are refused."""

from typing import Any, NamedTuple

import numpy as np

from warpline import composed, products, views
from warpline.xp import _client_side
from warpline.xp._arrays import Array
from warpline.xp._checks import of_common_dtype
from warpline.xp._creation import eye
from warpline.xp._elementwise import conj
from warpline.xp._manipulation import broadcast_to, matrix_transpose, moveaxis, stack
from warpline.xp._products import matmul, tensordot, vecdot
from warpline.xp._reductions import count_nonzero, sum
from warpline.xp._reductions import max as largest
from warpline.xp._reductions import min as smallest

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
           "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot",
           "vector_norm"]


class QR(NamedTuple):
    Q: Array
    R: Array


class Eigh(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


class SVD(NamedTuple):
    U: Array
    S: Array
    Vh: Array


class SignAndLog(NamedTuple):
    sign: Array
    logabsdet: Array


def outer(x1: Array, x2: Array, /) -> Array:
    a, b = of_common_dtype("outer", (x1, x2))
    return x1._made(products.outer(a, b), x2)


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    return x._made(views.diagonal(x._x, offset, -2, -1))


def trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Array, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: int | float = 2) -> Array:
    return x._made(composed.vector_norm(x._x, axis=axis, keepdims=keepdims, ord=ord))


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    if ord not in (2, -2, "nuc"):
        return x._made(composed.norm(x._x, ord, (-2, -1), keepdims))
    values = svdvals(x)
    found = sum(values, axis=-1) if ord == "nuc" else largest(values, axis=-1) if ord == 2 else smallest(values, axis=-1)
    return found[..., None, None] if keepdims else found


def matrix_power(x: Array, n: int, /) -> Array:
    """The product of n factors x, by squaring. A negative n inverts x first."""
    if n < 0:
        return matrix_power(inv(x), -n)
    if n == 0:
        return broadcast_to(eye(x.shape[-1], dtype=x.dtype, device=x._session), x.shape)
    if n == 1:
        return x.__copy__()
    half = matrix_power(x, n // 2)
    return half @ half if n % 2 == 0 else half @ half @ x


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    a, b = moveaxis(x1, axis, 0), moveaxis(x2, axis, 0)
    if a.shape[0] != 3 or b.shape[0] != 3:
        raise ValueError(f"cross takes vectors of 3 elements, not {a.shape[0]} and {b.shape[0]}")
    return stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]], axis=axis)


# On the client.

def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    lower: Array = _client_side.computed("linalg.cholesky", np.linalg.cholesky, [x])
    if not upper:
        return lower
    return matrix_transpose(conj(lower) if lower.dtype.kind == "c" else lower)


def det(x: Array, /) -> Array:
    return _one("det", [x])


def inv(x: Array, /) -> Array:
    return _one("inv", [x])


def eigvalsh(x: Array, /) -> Array:
    return _one("eigvalsh", [x])


def solve(x1: Array, x2: Array, /) -> Array:
    if x2.ndim == 1:
        return _one("solve", [x1, x2[:, None]])[..., 0]
    return _one("solve", [x1, x2])


def svdvals(x: Array, /) -> Array:
    return _one("svd", [x], compute_uv=False)


def pinv(x: Array, /, *, rtol: float | None = None) -> Array:
    """The pseudo-inverse. Singular values up to rtol times the largest count as 0; None: max(M, N) times the epsilon of the
    dtype."""
    return _one("pinv", [x], rcond=_tolerance(x, rtol))


def matrix_rank(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Counts the singular values above rtol times the largest; None: as pinv."""
    values = svdvals(x)
    factor = rtol[..., None] if isinstance(rtol, Array) else _tolerance(x, rtol)
    return count_nonzero(values > values[..., :1] * factor, axis=-1)


def _tolerance(x: Array, rtol: float | None) -> float:
    return float(max(x.shape[-2:]) * np.finfo(x.dtype).eps) if rtol is None else rtol


def eigh(x: Array, /) -> Eigh:
    return Eigh(*_client_side.computed("linalg.eigh", np.linalg.eigh, [x]))


def qr(x: Array, /, *, mode: str = "reduced") -> QR:
    """mode: "reduced" or "complete"."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode is {mode!r}: it is 'reduced' or 'complete'")
    return QR(*_client_side.computed("linalg.qr", np.linalg.qr, [x], {"mode": mode}))


def slogdet(x: Array, /) -> SignAndLog:
    return SignAndLog(*_client_side.computed("linalg.slogdet", np.linalg.slogdet, [x]))


def svd(x: Array, /, *, full_matrices: bool = True) -> SVD:
    return SVD(*_client_side.computed("linalg.svd", np.linalg.svd, [x], {"full_matrices": full_matrices}))


def _one(what: str, arrays: list[Array], **settings: Any) -> Array:
    made: Array = _client_side.computed(f"linalg.{what}", getattr(np.linalg, what), arrays, settings)
    return made
