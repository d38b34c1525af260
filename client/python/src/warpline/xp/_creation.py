"""Arrays of the standard that are made of sizes and numbers, or of elements from elsewhere."""

import functools
from typing import Any

import numpy as np

from warpline import creation
from warpline.arrays import as_array
from warpline.dtypes import data_type
from warpline.expressions import Expression
from warpline.xp import _sessions, _types
from warpline.xp._arrays import Array, Device
from warpline.xp._manipulation import broadcast_arrays, reshape


def _session_of(device: Any) -> _sessions.Session:
    if device is None:
        return _sessions.default()
    if isinstance(device, _sessions.Session):
        return device
    session = _sessions.default()
    if isinstance(device, Device) and device.server == session.address:
        return session
    raise ValueError(f"device is {device!r}: it is a device of an array of xp, or what xp.connect returns")


def _made(x: Expression, device: Any) -> Array:
    return Array(x, _session_of(device), 1)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
    """An array of elements from elsewhere: NumPy, DLPack, Python's numbers and sequences. They travel once, and are copied."""
    if isinstance(obj, Array):
        if dtype is None or np.dtype(dtype) == obj.dtype:
            return Array(obj._x, obj._session, obj._steps) if copy else obj
        if copy is False:
            raise ValueError(f"an array of {dtype} is a copy of one of {obj.dtype}")
        return obj._made(obj._x.astype(np.dtype(dtype)))
    if copy is False:
        raise ValueError("the elements are not on a server yet: they are copied")
    values = _values_of(obj)
    if dtype is not None and isinstance(values, (list, tuple, bool, int, float, complex)):
        array = np.array(values, np.dtype(dtype))  # without a type in between, which may not hold all integers
    else:
        array = as_array(values)
    wanted = _default_of(array, obj) if dtype is None else np.dtype(dtype)
    array = array if array.dtype == wanted else array.astype(wanted)
    data_type(array.dtype)
    session = _session_of(device)
    return Array(session.input(array), session)


def _values_of(obj: Any) -> Any:
    """Sequences with arrays of a server in them, whose elements come here."""
    if isinstance(obj, (list, tuple)):
        return [np.asarray(x) if isinstance(x, Array) else _values_of(x) for x in obj]
    return obj


def _default_of(array: np.ndarray[Any, Any], obj: Any) -> np.dtype[Any]:
    if array.size == 0 and isinstance(obj, (list, tuple)):
        return np.dtype(np.float64)
    return array.dtype


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of the elements of another library's."""
    return asarray(x, device=device, copy=copy)


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def full(shape: int | tuple[int, ...], fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    if dtype is None:
        dtype = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}[type(fill_value)]
    return _made(creation.full(_sizes(shape), fill_value, np.dtype(dtype)), device)


def zeros(shape: int | tuple[int, ...], *, dtype: Any = None, device: Any = None) -> Array:
    return full(shape, 0, dtype=np.float64 if dtype is None else dtype, device=device)


def ones(shape: int | tuple[int, ...], *, dtype: Any = None, device: Any = None) -> Array:
    return full(shape, 1, dtype=np.float64 if dtype is None else dtype, device=device)


def empty(shape: int | tuple[int, ...], *, dtype: Any = None, device: Any = None) -> Array:
    return zeros(shape, dtype=dtype, device=device)


def _like(x: Array, value: Any, dtype: Any, device: Any) -> Array:
    made = creation.full(x.shape, value, x.dtype if dtype is None else np.dtype(dtype))
    return Array(made, x._session if device is None else _session_of(device), 1)


def full_like(x: Array, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    return _like(x, fill_value, dtype, device)


def zeros_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    return _like(x, 0, dtype, device)


def ones_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    return _like(x, 1, dtype, device)


def empty_like(x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
    return _like(x, 0, dtype, device)


def arange(start: int | float, /, stop: int | float | None = None, step: int | float = 1, *, dtype: Any = None,
           device: Any = None) -> Array:
    return _made(creation.arange(start, stop, step, None if dtype is None else np.dtype(dtype)), device)


def linspace(start: int | float | complex, stop: int | float | complex, /, num: int, *, dtype: Any = None, device: Any = None,
             endpoint: bool = True) -> Array:
    if dtype is None:
        dtype = np.complex128 if isinstance(start, complex) or isinstance(stop, complex) else np.float64
    return asarray(np.linspace(start, stop, num, endpoint=endpoint).astype(dtype), device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Array:
    return _made(creation.eye(n_rows, n_cols, k, np.dtype(np.float64 if dtype is None else dtype)), device)


def tril(x: Array, /, *, k: int = 0) -> Array:
    return x._made(creation.tril(x._x, k))


def triu(x: Array, /, *, k: int = 0) -> Array:
    return x._made(creation.triu(x._x, k))


def meshgrid(*arrays: Array, indexing: str = "xy") -> list[Array]:
    """A grid of coordinates."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is {indexing!r}: it is 'xy' or 'ij'")
    if len(arrays) > 1:
        functools.reduce(_types.common, [x.dtype for x in arrays])
    places = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        places[:2] = [1, 0]
    rows = [reshape(x, tuple(-1 if i == place else 1 for i in range(len(arrays)))) for x, place in zip(arrays, places)]
    return broadcast_arrays(*rows)
