"""Regions of shared memory, their slices, and arrays that lie in them."""

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
    """Memory that the server has too, while the link is open; after that it is ordinary memory.

    slices: which parts are taken; whoever has the region guards them.
    """

    def __init__(self, mapping: Mapping, link: Link) -> None:
        """By open_region."""
        self.mapping = mapping
        self.link = link
        self.slices = Slices(mapping.size)


class Slice:
    """A part of a region that somebody has. offset, size: in bytes.

    extra: it is not of what a pool may have. calls: those that ended with anything but OK, and may still use it. Both
    are guarded by whoever has the region.
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
        """A call may still write to it."""
        self.calls = [call for call in self.calls if self.region.link.using(call)]
        return bool(self.calls)


def reserve(connection: Connection, size: int, seconds: float) -> str:
    """The ticket for a region of that size. errors.Error where the server gives none."""
    request = v1.OpenRequest(size_bytes=size).SerializeToString()
    response, request_id = connection.ask(_OPEN_METHOD, request, seconds)
    return calls.valid(_decode_opened, response, request_id).ticket


def open_region(path: str, ticket: str, size: int, deadline: float) -> Region:
    """The region of a ticket. path: of the region socket. deadline: of time.monotonic. ResourceExhausted if there is
    not so much memory; other errors as of hand_over."""
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
    """The bytes of a slice as NumPy takes them. When the last array of them is garbage, the slice is given back."""

    def __init__(self, slice: Slice, nbytes: int, returned: "deque[Slice] | None") -> None:
        """returned: where to give it back; None: nowhere."""
        self._slice = slice
        self._returned = returned
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (slice.address, False)}

    def __del__(self) -> None:
        # Runs at any place in any thread, so that it can wait for no lock. Memory that the server has no more is
        # nobody's but ours, and goes with this object.
        if self._returned is not None and self._slice.region.link.open:
            self._returned.append(self._slice)


def array_in(slice: Slice, dtype: np.dtype[Any], shape: tuple[int, ...],
             returned: "deque[Slice] | None" = None) -> Array:
    """An array at the beginning of a slice, which is long enough. The memory lasts for as long as the array and its
    views, and when they are gone the slice is put into `returned`."""
    count = 1
    for n in shape:
        count *= n
    flat = np.asarray(_Bytes(slice, count * dtype.itemsize, returned))
    return flat.view(dtype).reshape(shape)
