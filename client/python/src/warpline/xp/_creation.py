"""Arrays of the standard that are made of sizes and numbers, or of elements from elsewhere."""

from typing import Any

import numpy as np

from warpline import composed, creation
from warpline.arrays import as_array
from warpline.dtypes import data_type
from warpline.expressions import Expression
from warpline.xp._arrays import Array
from warpline.xp._checks import array_of, of_common_dtype
from warpline.xp._devices import session_of


def _made(x: Expression, device: Any) -> Array:
    return Array(x, session_of(device), 1)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
    """An array of elements from elsewhere: NumPy, DLPack, Python's numbers and sequences. They travel once, and are copied."""
    if isinstance(obj, Array):
        there: Array = obj if device is None else obj.to_device(device)
        if dtype is None or np.dtype(dtype) == obj.dtype:
            if copy is False and there is not obj:
                raise ValueError("an array on another server is a copy")
            return there.__copy__() if copy else there
        if copy is False:
            raise ValueError(f"an array of {dtype} is a copy of one of {obj.dtype}")
        return there._made(there._x.astype(np.dtype(dtype)))
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
    session = session_of(device)
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
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack takes an array with __dlpack__, not {type(x).__name__}")
    if copy is False and not isinstance(x, Array):
        raise BufferError("the elements are not on a server yet: they are copied")
    return asarray(x, device=device, copy=copy)


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def full(shape: int | tuple[int, ...], fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    if isinstance(fill_value, Array):
        fill_value = fill_value._one("full")
    if dtype is None:
        dtype = np.int64 if type(fill_value) is int else np.asarray(fill_value).dtype
    return _made(creation.full(_sizes(shape), fill_value, np.dtype(dtype)), device)


def zeros(shape: int | tuple[int, ...], *, dtype: Any = None, device: Any = None) -> Array:
    return full(shape, 0, dtype=np.float64 if dtype is None else dtype, device=device)


def ones(shape: int | tuple[int, ...], *, dtype: Any = None, device: Any = None) -> Array:
    return full(shape, 1, dtype=np.float64 if dtype is None else dtype, device=device)


def empty(shape: int | tuple[int, ...], *, dtype: Any = None, device: Any = None) -> Array:
    return zeros(shape, dtype=dtype, device=device)


def _like(x: Array, value: Any, dtype: Any, device: Any) -> Array:
    made = creation.full(x.shape, value, x.dtype if dtype is None else np.dtype(dtype))
    return Array(made, x._session if device is None else session_of(device), 1)


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
    return array_of("tril", x)._made(creation.tril(x._x, k))


def triu(x: Array, /, *, k: int = 0) -> Array:
    return array_of("triu", x)._made(creation.triu(x._x, k))


def meshgrid(*arrays: Array, indexing: str = "xy") -> list[Array]:
    """A grid of coordinates."""
    if len(arrays) > 1:
        of_common_dtype("meshgrid", arrays)
    given = [array_of("meshgrid", x)._x for x in arrays]
    return [arrays[0]._made(x, *arrays[1:]) for x in composed.meshgrid(*given, indexing=indexing)] if given else []
