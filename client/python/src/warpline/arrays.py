"""Converts arrays to the API's Tensor and back, with the fewest copies that the layouts allow."""

from collections.abc import Awaitable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np

from warpline import wire
from warpline.dlpack import from_dlpack
from warpline.dtypes import DTYPES, data_type
from warpline.residents import Remote, Resident, ResidentOperand, TensorInfo, decode_kept
from warpline.shapes import Kind
from warpline.v1 import warpline_pb2 as v1

# A NumPy array of any data type.
Array = np.ndarray[Any, Any]

# Block size for gathering arrays that are not contiguous. A gathered block is still in the cache when it is copied
# into the message, so any layout costs one pass over memory. Sending the padding of rows would cost more, even if it
# is a few percent (measured: 25 % padding takes 1.2 times the CPU time).
_BLOCK_BYTES = 256 << 10


def as_array(x: Any) -> Array:
    """Converts `x` to a NumPy array. Copies nothing if `x` is an array, or has `__array_interface__`, or `__dlpack__`
    in host memory. Calls np.asarray for anything else. Raises TypeError for masked arrays (the mask would be lost),
    memory that the CPU cannot read, tensors (their elements are elsewhere), and awaitables."""
    if isinstance(x, Remote):
        raise TypeError(f"{x!r} is no array: it goes where tensors may, or np.asarray fetches its elements")
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("a masked array cannot be sent: fill it first")
    if isinstance(x, Awaitable):
        raise TypeError(f"a {type(x).__name__} is no array: await it")
    if isinstance(x, np.ndarray):
        # Subclasses may index and reshape differently: the rows of an np.matrix are matrices.
        return x if type(x) is np.ndarray else x.view(np.ndarray)
    if not hasattr(x, "__array_interface__") and hasattr(x, "__dlpack__"):
        return from_dlpack(x)
    return np.asarray(x)


class Operand:
    """An array to send: row-major, with its axes in memory order. Arrays that are not contiguous in that order, or
    have another byte order, are gathered while they are copied into the message.

    array: the given array. stored: a view of the array with the axes in the order in which they are sent.
    perm: axis i of the array is axis perm[i] of `stored`. in_order: true if `perm` moves no axis.
    rank, nbytes: number of axes and size of the array.
    """

    def __init__(self, x: Any, any_order: bool = True) -> None:
        """any_order: if false, the axes are sent in the order of `x`, not in memory order."""
        self.array = as_array(x)
        self.data_type = data_type(self.array.dtype)
        self.rank = self.array.ndim
        self.nbytes = self.array.nbytes
        self.perm = tuple(range(self.rank))
        self.in_order = True
        self.stored = self.array
        if any_order and not self.array.flags.c_contiguous:
            order = _memory_order(self.array)
            if order != list(self.perm):
                self.perm = tuple(order.index(i) for i in self.perm)
                self.in_order = False
                self.stored = self.array.transpose(order)

    @property
    def kind(self) -> Kind:
        """Element type and shape of `stored`."""
        return Kind(self.data_type, self.stored.shape)

    @property
    def swaps_last_two(self) -> bool:
        """True if `stored` is the array with its last two axes swapped."""
        rank = self.rank
        return rank >= 2 and self.perm == (*range(rank - 2), rank - 1, rank - 2)

    def header(self) -> bytes:
        """The encoded Tensor message up to its elements, which follow."""
        tensor = v1.Tensor(data_type=self.data_type, shape=self.stored.shape)
        encoded: bytes = tensor.SerializeToString()
        return encoded + wire.length_prefix(_INLINE, self.stored.nbytes)

    def payload(self) -> Iterator[memoryview]:
        """Yields the elements in pieces. Each piece is read when it is requested."""
        if not self.array.size:
            return
        if is_dense(self.stored):
            yield memory(self.stored)
        else:
            yield from _dense_blocks(self.stored)


class SharedOperand:
    """An array in shared memory, in place of an Operand: only its location is sent.

    call: number of the call that sends the operand.
    """

    in_order = True
    swaps_last_two = False
    # Bytes of elements in the request.
    nbytes = 0

    def __init__(self, kind: Kind, row_stride: int, region: str, offset: int) -> None:
        """row_stride: the field of Tensor. region: id of the region. offset: byte offset of the first element."""
        self.kind = kind
        self.call = 0
        self._row_stride = row_stride
        self._region = region
        self._offset = offset

    def header(self) -> bytes:
        """The encoded Tensor message."""
        slice = v1.RegionSlice(id=self._region, offset=self._offset, call=self.call)
        encoded: bytes = v1.Tensor(data_type=self.kind.data_type, shape=self.kind.shape, row_stride=self._row_stride,
                                   region=slice).SerializeToString()
        return encoded

    def payload(self) -> Iterator[memoryview]:
        return iter(())


AnyOperand = Operand | ResidentOperand
# Anything that may be sent in place of an operand.
SentOperand = AnyOperand | SharedOperand

_INLINE = v1.Tensor.INLINE_FIELD_NUMBER
_REGION = v1.Tensor.REGION_FIELD_NUMBER
_RESIDENT = v1.Tensor.RESIDENT_FIELD_NUMBER


def operand_of(x: Any, any_order: bool = True) -> AnyOperand:
    """Makes an operand of an array or a resident tensor."""
    return ResidentOperand(x) if isinstance(x, Resident) else Operand(x, any_order)


def is_dense(x: Array) -> bool:
    """True if the elements are contiguous and in native byte order, as they are sent."""
    return x.flags.c_contiguous and x.dtype.isnative


def row_stride(x: Array) -> int | None:
    """The row_stride, in elements, with which a Tensor describes these elements in place; 0 if they are contiguous.
    None if a Tensor cannot describe the layout."""
    if is_dense(x):
        return 0
    if not x.dtype.isnative or x.ndim < 2 or not x.size or x.shape[-1] > 1 and x.strides[-1] != x.itemsize:
        return None
    # All axes outside the row must be dense. Axes of size 1 may have any stride.
    rows = [(n, stride) for n, stride in zip(x.shape[-2::-1], x.strides[-2::-1]) if n > 1]
    row = dense = rows[0][1] if rows else 0
    for n, stride in rows:
        if stride != dense:
            return None
        dense = stride * n
    return row // x.itemsize if row >= x.shape[-1] * x.itemsize and row % x.itemsize == 0 else None


def _memory_order(x: Array) -> list[int]:
    """The axes in order of decreasing stride."""
    # An axis of size 1 may have any stride: use the stride of a contiguous array.
    strides, dense = [abs(stride) for stride in x.strides], x.itemsize
    for i in reversed(range(x.ndim)):
        if x.shape[i] == 1:
            strides[i] = dense
        dense = strides[i] * x.shape[i]
    axes = list(range(x.ndim))
    # Broadcast axes (stride 0) have no place in memory order.
    return axes if 0 in strides else sorted(axes, key=lambda i: -strides[i])


def _dense_blocks(x: Array) -> Iterator[memoryview]:
    """Yields the elements in row-major order and native byte order, copied block by block."""
    if x.nbytes <= _BLOCK_BYTES or x.ndim == 0:
        native = x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
        yield memory(np.ascontiguousarray(native))
        return
    rows = _BLOCK_BYTES // (x.nbytes // len(x))
    for i in range(0, len(x), rows or 1):
        if rows:
            yield from _dense_blocks(x[i : i + rows])
        else:
            yield from _dense_blocks(x[i])


def memory(dense: Array) -> memoryview:
    """The bytes of a contiguous array. memoryview(array) does not support types that NumPy lacks."""
    return dense.reshape(-1).view(np.uint8).data


class InRegion(NamedTuple):
    """A result in shared memory: id of the region, and offset in bytes."""

    id: str
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def decode_tensor(message: memoryview) -> Array | TensorInfo | InRegion:
    """Decodes a Tensor message. An array is a read-only view of the message, possibly unaligned. A resident tensor
    gives a TensorInfo without its device."""
    number, payload, resident, region = 0, message[:0], None, None
    shape: list[int] = []
    for field, value in wire.fields(message):
        if field == 1:
            number = wire.integer(value)
        elif field == 2:
            shape += wire.integers(value)
        elif field == _INLINE:
            payload = wire.submessage(value)
        elif field == _RESIDENT:
            resident = wire.submessage(value)
        elif field == _REGION:
            region = wire.submessage(value)
    dtype = DTYPES.get(cast(v1.DataType, number))
    if dtype is None:
        raise wire.WireError(f"the element type {number} is unknown")
    if min(shape, default=0) < 0:
        raise wire.WireError(f"{shape} is no shape")
    if resident is not None:
        return decode_kept(resident, dtype, tuple(shape))
    if region is not None:
        slice = v1.RegionSlice.FromString(bytes(region))
        return InRegion(slice.id, slice.offset, dtype, tuple(shape))
    count = 1
    for n in shape:
        count *= n
    if count * dtype.itemsize != len(payload):
        raise wire.WireError(f"{len(payload)} bytes for {shape} elements of {dtype}")
    return np.ndarray(shape, dtype, payload)
