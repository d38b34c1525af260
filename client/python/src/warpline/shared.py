"""Shared memory between a client and a server on the same host: when and how much the client uses."""

import operator
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from warpline import errors
from warpline.arrays import Array
from warpline.calls import Call
from warpline.connections import Connection
from warpline.dtypes import DTYPES, result_data_type
from warpline.shipments import Shipment, concerns

# Other platforms have no memfd, and all elements travel in messages.
if sys.platform == "linux":
    from warpline.links import NoRegionSocket
    from warpline.pool import Pool
    from warpline.shared_shipments import SharedShipment

# Selects whether elements travel in memory that is shared with the server.
Mode = Literal["auto", "always", "never"]

# Default size of a client's pool, in bytes.
POOL_BYTES = 2 << 30


def region_socket(target: str, mode: str, regions: str | None) -> str | None:
    """The path of the server's region socket; None: no memory is shared. Raises ValueError for arguments that
    contradict each other."""
    if mode not in ("auto", "always", "never"):
        raise ValueError(f"shared_memory is {mode!r}; there are auto, always, never")
    if mode == "never" or mode == "auto" and sys.platform != "linux":
        return None
    unix = re.fullmatch(r"unix:(?://(?=/))?(.+)", target)
    path = regions if regions is not None else f"{unix[1]}.regions" if unix else None
    if mode == "always" and path is None:
        raise ValueError(f"shared_memory is 'always', but {target!r} is no unix socket: give the server's, regions=")
    if mode == "always" and sys.platform != "linux":
        raise ValueError(f"shared_memory is 'always', but this is {sys.platform}, not linux")
    return path


def check_pool_bytes(pool_bytes: int) -> int:
    """Checks pool_bytes. Raises TypeError unless it is an integer, and ValueError unless it is above zero."""
    try:
        count = operator.index(pool_bytes)
    except TypeError:
        raise TypeError(f"pool_bytes is {pool_bytes!r}: a number of bytes, such as 1 << 30") from None
    if count <= 0:
        raise ValueError(f"pool_bytes is {count}: bytes, above zero")
    return count


class Shared:
    """The shared memory of one client, if any. Thread-safe. After a fork, the child has its own."""

    def __init__(self, connect: Callable[[], Connection], path: str | None, mode: str, pool_bytes: int,
                 named: bool) -> None:
        """connect: returns the connection for requesting regions. path: the result of region_socket. named: true if the
        caller gave the path. The caller then gets a warning if the path is unusable and that is not an error."""
        self._connect = connect
        self._path = path
        self._named = named
        self._strict = mode == "always"
        self._pool_bytes = pool_bytes
        self._pools: dict[int, Pool] = {}

    def close(self) -> None:
        """Closes the pool. Existing arrays in shared memory stay valid."""
        pool = self._pools.get(os.getpid())
        if pool is not None:
            pool.close()

    def ship(self, call: Call, outs: Sequence[Array | None]) -> Shipment:
        """Makes the shipment of a call. Raises Cancelled after `close`."""
        if self._path is None:
            return Shipment(call, outs)
        pool, large = self._pool(), concerns(call)
        if not pool.lends() and not large:
            return Shipment(call, outs)
        return SharedShipment(call, outs, pool, self._strict, large)

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike, seconds: float) -> Array:
        """See Client.empty."""
        number = result_data_type(np.float64 if dtype is None else dtype)
        if not _is_native(dtype):
            raise TypeError(f"dtype is {dtype!r}: the elements of shared memory are in the byte order of this machine; "
                            "arrays of another one are taken as operands, and copied")
        element = DTYPES[number]
        sizes = _sizes(shape)
        nbytes = element.itemsize
        for n in sizes:
            nbytes *= n
        if self._path is None or not nbytes:
            return np.empty(sizes, element)
        try:
            pool = self._pool()
            slice = pool.take(nbytes, seconds, extra=True)
        except (errors.ResourceExhausted, errors.Unimplemented, NoRegionSocket):
            if self._strict:
                raise
            return np.empty(sizes, element)
        array = pool.lend(slice, element, sizes)
        assert array is not None
        return array

    def _pool(self) -> Pool:
        process = os.getpid()
        pool = self._pools.get(process)
        if pool is None:
            assert self._path is not None
            # setdefault is atomic: a lock could stay locked after a fork.
            made = Pool(self._connect(), self._path, self._pool_bytes, not self._strict, self._named)
            pool = self._pools.setdefault(process, made)
        return pool


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
