"""The calls that compute nothing: they move elements, and ask about tensors and the server. They wait for the answer."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warpline import core, interrupts, residents, targets
from warpline._core import ffi, lib
from warpline.arrays import Array, as_array
from warpline.calls import Progress, check_out
from warpline.core import Connection
from warpline.dtypes import data_type, result_data_type
from warpline.reports import ServerInfo, server_info_of
from warpline.residents import Resident, TensorInfo


def _seconds(connection: Connection, timeout: float | None) -> float:
    return targets.check_timeout(connection.timeout if timeout is None else timeout)


def _options(connection: Connection, timeout: float | None, request_id: str, channels: int | None,
             told: interrupts.Told | None) -> tuple[Any, Any]:
    """The warpline_transfer_options, and what they point at."""
    options, identity = ffi.new("warpline_transfer_options *"), ffi.new("char[]", request_id.encode())
    options.size = ffi.sizeof("warpline_transfer_options")
    options.timeout = _seconds(connection, timeout)
    options.request_id = identity
    options.channels = targets.check_channels(channels)
    if told is not None:
        options.progress, options.progress_data = lib.warpline_python_progress, told.handle
    return options, identity


def put(connection: Connection, x: Any, ttl: float | None, device: int | None, channels: int | None,
        timeout: float | None, request_id: str | None, progress: Progress | None) -> Any:
    """See Client.put. Returns a warpline_tensor."""
    request_id, told = targets.check_request_id(request_id), interrupts.told_of(progress)
    options, kept = _options(connection, timeout, request_id, channels, told)
    array = as_array(x)
    data_type(array.dtype)
    if device is not None:
        if not 0 <= operator.index(device) < 1 << 30:
            raise ValueError(f"device is {device}: an ordinal, from 0")
        options.device = operator.index(device) + 1
    options.ttl = residents.check_ttl(ttl)
    memory = [kept]
    out = ffi.new("warpline_tensor **")
    connection.call(lib.warpline_put, core.describe(core.in_elements(array), memory), options, out,
                    request_id=request_id)
    if told is not None:
        try:
            told.end(array.nbytes)
        except BaseException:
            lib.warpline_tensor_free(out[0])
            raise
    return out[0]


def get(connection: Connection, tensor: Resident, out: Array | None, channels: int | None, timeout: float | None,
        request_id: str | None, progress: Progress | None) -> Array:
    """See Tensor.numpy."""
    if out is not None:
        check_out(out)
        if out.shape != tensor.shape or out.dtype != tensor.dtype:
            raise ValueError(f"out is {out.dtype}{list(out.shape)}, the tensor {tensor.dtype}{list(tensor.shape)}")
    request_id, told = targets.check_request_id(request_id), interrupts.told_of(progress)
    options, kept = _options(connection, timeout, request_id, channels, told)
    memory = [kept]
    # The pages of new memory become present in the library, while it does not hold the interpreter's lock.
    target = np.empty(tensor.shape, tensor.dtype) if out is None else core.in_elements(out)
    connection.call(lib.warpline_get, tensor._handle, core.describe(target, memory), options, core.NULL,
                    request_id=request_id)
    if told is not None:
        told.end(target.nbytes)
    if out is None or target is out:
        return target
    np.copyto(out, target)
    return out


def empty(connection: Connection, shape: int | Sequence[int], dtype: npt.DTypeLike, timeout: float | None) -> Array:
    """See Client.empty."""
    connection.check_open()
    number = result_data_type(np.float64 if dtype is None else dtype)
    if not _is_native(dtype):
        raise TypeError(f"dtype is {dtype!r}: the elements of shared memory are in the byte order of this machine; "
                        "arrays of another one are taken as operands, and copied")
    sizes = _sizes(shape)
    out = ffi.new("warpline_array **")
    connection.call(lib.warpline_empty, core.dlpack_type(number), len(sizes), ffi.new("int64_t[]", sizes),
                    _seconds(connection, timeout), out)
    return core.own(out[0])


def attach(connection: Connection, id: str, renewed: bool, timeout: float | None) -> Any:
    """See Client.tensor. Returns a warpline_tensor."""
    out = ffi.new("warpline_tensor **")
    connection.call(lib.warpline_attach, core.encoded(residents.check_id(id)), renewed, _seconds(connection, timeout), out)
    return out[0]


def renew(connection: Connection, id: str, ttl: float | None, timeout: float | None) -> TensorInfo:
    """See Tensor.renew."""
    out = ffi.new("warpline_tensor **")
    connection.call(lib.warpline_renew, core.encoded(id), residents.check_ttl(ttl), _seconds(connection, timeout), out)
    return residents.info_of(ffi.gc(out[0], lib.warpline_tensor_free))


def drop(connection: Connection, id: str, timeout: float | None) -> None:
    """See Tensor.drop."""
    connection.call(lib.warpline_drop, core.encoded(id), _seconds(connection, timeout))


def tensors(connection: Connection, timeout: float | None) -> list[TensorInfo]:
    """See Client.tensors."""
    out = ffi.new("warpline_result **")
    connection.call(lib.warpline_list, _seconds(connection, timeout), out)
    result = ffi.gc(out[0], lib.warpline_result_free)
    handles = [lib.warpline_result_take_tensor(result, i) for i in range(lib.warpline_result_count(result))]
    return [residents.info_of(ffi.gc(handle, lib.warpline_tensor_free)) for handle in handles]


def info(connection: Connection, timeout: float | None) -> ServerInfo:
    """See Client.info."""
    out, size = ffi.new("uint8_t **"), ffi.new("size_t *")
    connection.call(lib.warpline_client_info_json, _seconds(connection, timeout), out, size)
    try:
        return server_info_of(bytes(ffi.buffer(out[0], size[0])))
    finally:
        lib.warpline_bytes_free(out[0])


def is_serving(connection: Connection, service: str, timeout: float | None) -> bool:
    """See Client.is_serving."""
    out = ffi.new("int32_t *")
    connection.call(lib.warpline_client_serving, core.encoded(service), _seconds(connection, timeout), out)
    return bool(out[0])


def _is_native(dtype: npt.DTypeLike) -> bool:
    try:
        return np.dtype(dtype).isnative
    except TypeError:
        return True  # a name that NumPy does not know


def _sizes(shape: int | Sequence[int]) -> tuple[int, ...]:
    """Converts a shape as NumPy does. Raises ValueError for a negative size."""
    given: Any = shape
    sizes = (operator.index(given),) if hasattr(given, "__index__") else tuple(map(operator.index, given))
    if min(sizes, default=0) < 0:
        raise ValueError(f"shape is {shape}: sizes of axes, none below zero")
    return sizes
