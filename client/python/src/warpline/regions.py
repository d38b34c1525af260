"""Regions of shared memory, their slices, and arrays in slices."""

from collections import deque
from typing import Any

import grpc
import numpy as np
from google.protobuf.message import DecodeError

from warpline import calls, errors, wire
from warpline.connections import Connection
from warpline.links import Link, hand_over
from warpline.mappings import Mapping
from warpline.slices import Slices
from warpline.v1 import warpline_pb2 as v1

Array = np.ndarray[Any, Any]

_OPEN_METHOD = "/warpline.v1.RegionService/Open"


class Region:
    """Memory that the server shares while the link is open. After that, it is ordinary memory.

    slices: the allocated parts. The owner of the region must guard them with a lock.
    """

    def __init__(self, mapping: Mapping, link: Link) -> None:
        """Use open_region."""
        self.mapping = mapping
        self.link = link
        self.slices = Slices(mapping.size)


class Slice:
    """An allocated part of a region. offset, size: in bytes.

    extra: the slice does not count against the limit of the pool. calls: calls that did not end with OK and may still
    use the slice. The owner of the region must guard both with a lock.
    """

    __slots__ = ("region", "offset", "size", "extra", "calls")

    def __init__(self, region: Region, offset: int, size: int, extra: bool = False) -> None:
        self.region = region
        self.offset = offset
        self.size = size
        self.extra = extra
        self.calls: list[int] = []

    @property
    def address(self) -> int:
        return self.region.mapping.address + self.offset

    def busy(self) -> bool:
        """True if a call may still write to the slice."""
        self.calls = [call for call in self.calls if self.region.link.using(call)]
        return bool(self.calls)


def reserve(connection: Connection, size: int, seconds: float) -> str:
    """Asks the server for a ticket for a region of `size` bytes. Raises errors.Error if the server gives none."""
    request = v1.OpenRequest(size_bytes=size).SerializeToString()
    response, request_id = connection.ask(_OPEN_METHOD, request, seconds)
    return calls.valid(_decode_opened, response, request_id).ticket


def open_region(path: str, ticket: str, size: int, deadline: float) -> Region:
    """Opens the region of a ticket. path: path of the region socket. deadline: on the clock time.monotonic. Raises
    ResourceExhausted if there is not enough memory, and the errors of hand_over."""
    try:
        mapping = Mapping(size)
    except OSError as error:
        raise errors.ResourceExhausted(grpc.StatusCode.RESOURCE_EXHAUSTED,
                                       f"no memory for a region of {size} bytes: {error}") from error
    try:
        return Region(mapping, hand_over(path, ticket, mapping.fd, deadline))
    finally:
        mapping.close_fd()


def _decode_opened(response: bytes) -> v1.OpenResponse:
    try:
        return v1.OpenResponse.FromString(response)
    except DecodeError as error:
        raise wire.WireError(str(error)) from error


class _Bytes:
    """The bytes of a slice in a form that NumPy accepts. When the last array in the slice is garbage, the slice is
    given back."""

    def __init__(self, slice: Slice, nbytes: int, returned: "deque[Slice] | None") -> None:
        """returned: receives the slice when it is given back; None: the slice is not given back."""
        self._slice = slice
        self._returned = returned
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (slice.address, False)}

    def __del__(self) -> None:
        # A finalizer may run at any point in any thread, so it must not wait for a lock. Memory that the server no
        # longer shares belongs only to this object, and is freed with it.
        if self._returned is not None and self._slice.region.link.open:
            self._returned.append(self._slice)


def array_in(slice: Slice, dtype: np.dtype[Any], shape: tuple[int, ...],
             returned: "deque[Slice] | None" = None) -> Array:
    """Makes an array at the beginning of a slice, which must be large enough. The memory lasts as long as the array and
    its views. After that, the slice is put into `returned`."""
    count = 1
    for n in shape:
        count *= n
    flat = np.asarray(_Bytes(slice, count * dtype.itemsize, returned))
    return flat.view(dtype).reshape(shape)
