"""The extension fft. The server has no Fourier transforms: `warpline.xp.config(fallback="numpy")` computes them on the
client; without it they are refused. What only moves elements is computed on the server."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warpline.xp import _client_side
from warpline.xp._arrays import Array
from warpline.xp._creation import asarray
from warpline.xp._manipulation import roll

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq",
           "rfftn"]

Axes = int | Sequence[int] | None


def _transformed(what: str, x: Array, **settings: Any) -> Array:
    narrow = x.dtype in (np.float32, np.complex64)

    def transform(elements: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = getattr(np.fft, what)(elements, **settings)
        return found.astype({"f": "f4", "c": "c8"}[found.dtype.kind]) if narrow else found

    made: Array = _client_side.computed(f"fft.{what}", transform, [x])
    return made


def _along_one(what: str) -> Callable[..., Array]:
    def transform(x: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
        return _transformed(what, x, n=n, axis=axis, norm=norm)
    transform.__name__ = what
    return transform


def _along_several(what: str) -> Callable[..., Array]:
    def transform(x: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
                  norm: str = "backward") -> Array:
        return _transformed(what, x, s=s, axes=axes, norm=norm)
    transform.__name__ = what
    return transform


fft, ifft, rfft, irfft, hfft, ihfft = map(_along_one, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = map(_along_several, ("fftn", "ifftn", "rfftn", "irfftn"))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of fft's results, in cycles for each unit of the spacing d."""
    return asarray(np.fft.fftfreq(n, d), dtype=np.float64 if dtype is None else dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of rfft's results, in cycles for each unit of the spacing d."""
    return asarray(np.fft.rfftfreq(n, d), dtype=np.float64 if dtype is None else dtype, device=device)


def fftshift(x: Array, /, *, axes: Axes = None) -> Array:
    """Moves the frequency 0 to the middle of each axis."""
    along = _along(x, axes)
    return roll(x, tuple(x.shape[axis] // 2 for axis in along), axis=along)


def ifftshift(x: Array, /, *, axes: Axes = None) -> Array:
    """Undoes fftshift."""
    along = _along(x, axes)
    return roll(x, tuple(-(x.shape[axis] // 2) for axis in along), axis=along)


def _along(x: Array, axes: Axes) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
