"""A call whose elements are in shared memory."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import grpc
import numpy as np

from warpline import calls, copies, errors, shipments
from warpline.arrays import Array, InRegion, Operand, SentOperand, SharedOperand, row_stride
from warpline.calls import Call, Report
from warpline.dtypes import DTYPES
from warpline.links import NoRegionSocket
from warpline.pool import Pool
from warpline.regions import Region, Slice, array_in
from warpline.residents import TensorInfo
from warpline.shapes import Kind
from warpline.shipments import Shipment, bytes_of
from warpline.v1 import warpline_pb2 as v1

# The server's codes for an unknown region.
_STRANGE = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION)

# Maximum wait for the end of a failed call, after its deadline has passed. Seconds.
_LONGEST_END = 60.0


class _Sink(NamedTuple):
    """The destination of a result. direct: true if it is the caller's array."""

    slice: Slice
    # Offset in the region, in bytes.
    offset: int
    nbytes: int
    direct: bool


class SharedShipment(Shipment):
    """A call that uses shared memory for large arrays that fit there, and for arrays that are there already."""

    def __init__(self, call: Call, outs: Sequence[Array | None], pool: Pool, strict: bool, large: bool) -> None:
        """strict: true if arrays that are not small must not travel in messages. `place` then raises errors.Error if
        shared memory has no room. large: true if the call may have arrays that are not small. Raises Cancelled if the
        pool is closed."""
        super().__init__(call, outs)
        self._pool = pool
        self._user = pool.begin()
        self._strict = strict
        self._large = large
        # Guards the following attributes. A task that nobody awaits any more may abandon the shipment while a thread
        # still copies elements. The thread then abandons the shipment when it is done.
        self._lock = threading.Lock()
        self._abandoned = False
        self._placed = False
        # True if an array found no room because the server was unreachable.
        self._lacking = False
        # Call number of the attempt that was sent and has not ended with OK; and true if it has been withdrawn.
        self._number = 0
        self._withdrawn = False
        self._resent = False
        self._retrying = False
        self._clear()

    @property
    def inline_bytes(self) -> int:
        if not self._regions:
            return super().inline_bytes
        return sum(operand.nbytes for operand in self._operands)

    @property
    def shared_bytes(self) -> int:
        return sum(sink.nbytes for sink in self._sinks.values() if not sink.direct)

    @property
    def waits(self) -> bool:
        return bool(self._number) and any(sink.direct for sink in self._sinks.values())

    @property
    def may_block(self) -> bool:
        return self._large and not self._placed

    def place(self, seconds: float, retrying: bool) -> None:
        with self._held():
            if not self._placed:
                # Use at most half of the time to get a region, and leave the rest for messages.
                self._retrying = retrying
                self._place(time.monotonic() + seconds / 2)
                self._placed = True

    def encode(self) -> bytes:
        if not self._regions:
            return super().encode()
        self._number, self._withdrawn = self._pool.next_call(), False
        for operand in self._operands:
            if isinstance(operand, SharedOperand):
                operand.call = self._number
        names = self.call.outputs
        sinks = [v1.Sink(output=names[i], region=v1.RegionSlice(
            id=sink.slice.region.link.id, offset=sink.offset, call=self._number)) for i, sink in self._sinks.items()]
        return calls.encode(self.call, self._operands, sinks)

    def recover(self, code: grpc.StatusCode, seconds: float, retrying: bool) -> bool:
        with self._held():
            return self._recover(code, seconds, retrying)

    def _recover(self, code: grpc.StatusCode, seconds: float, retrying: bool) -> bool:
        self._withdraw()
        strange = self._regions and (code in _STRANGE or code is grpc.StatusCode.ABORTED)
        if not strange and not retrying:
            return False
        # Do not rewrite slices that the server still uses. A region is certainly unknown to the server when its link
        # is closed. This client may notice the close a little later.
        if not self._settled(seconds, lambda: self._pool.closed):
            return False
        died = not all(region.link.open for region in self._regions)
        again = bool(strange) and not self._resent and (died or code is grpc.StatusCode.ABORTED)
        self._resent = self._resent or again
        if died and again or retrying and (died or self._lacking):
            # Place the elements again for the next attempt: another server with other regions may be running then.
            self._give_back()
        return again

    def deliver(self, response: bytes, request_id: str, report: Report | None) -> list[Array | TensorInfo]:
        with self._held():
            self._number = 0
            try:
                results = calls.decode(self.call, response, request_id, report, self._fetch)
                return calls.deliver(results, self._outs)
            finally:
                self._end()

    def abandon(self, wait: bool = True) -> None:
        self._abandoned = True
        if not self._lock.acquire(blocking=wait):
            return
        try:
            self._withdraw()
            if wait and any(sink.direct for sink in self._sinks.values()):
                if not self._settled(_LONGEST_END):
                    # A server that does not report the end is stopped or gone. Do not use the region again.
                    for region in self._regions:
                        region.link.close()
        finally:
            self._end()
            self._lock.release()

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        finally:
            if self._abandoned:
                self.abandon(wait=False)

    # --- Before the call is sent

    def _clear(self) -> None:
        self._body = b""
        self._placed = self._lacking = False
        self._operands: list[SentOperand] = []
        self._sinks: dict[int, _Sink] = {}
        # Slices taken for this call, which must be given back.
        self._taken: list[Slice] = []
        # All slices that the call uses, including those of the caller's arrays.
        self._slices: list[Slice] = []
        self._regions: list[Region] = []
        # Address ranges that the call reads and writes: a result must not overlap them.
        self._ranges: list[tuple[int, int]] = []

    def _place(self, deadline: float) -> None:
        """Finds a place for each operand and each result."""
        try:
            placed: dict[Any, SharedOperand] = {}
            for field in self.call.operands:
                operand = field.operand
                shared = self._share(operand, placed, deadline) if isinstance(operand, Operand) else None
                self._operands.append(shared or operand)
            for i, kind in enumerate(self.call.results() or ()):
                if not self.call.keeps[i] and i < len(self._outs):
                    self._place_result(i, kind, self._outs[i], deadline)
        except BaseException:
            self._give_back()
            raise

    def _share(self, operand: Operand, placed: dict[Any, SharedOperand], deadline: float) -> SharedOperand | None:
        """Finds an operand in shared memory, or copies it there. Returns None if it must travel in the message."""
        array = operand.stored
        if not array.size:
            return None
        address = address_of(array)
        key = (address, array.dtype, array.shape, array.strides)
        if key in placed:
            return placed[key]
        shared = self._found(operand.kind, array, address)
        if shared is None and array.nbytes >= shipments.SMALL_BYTES:
            slice = self._take(array.nbytes, deadline)
            if slice is not None:
                dtype = array.dtype if array.dtype.isnative else array.dtype.newbyteorder("=")
                copies.copy(array_in(slice, dtype, array.shape), array)
                shared = SharedOperand(operand.kind, 0, slice.region.link.id, slice.offset)
                self._use(slice, slice.address, array.nbytes)
        if shared is not None:
            placed[key] = shared
        return shared

    def _found(self, kind: Kind, array: Array, address: int) -> SharedOperand | None:
        """Makes an operand of an array in shared memory. Returns None if the array is elsewhere, or if a Tensor cannot
        describe its layout."""
        slice = self._pool.find(address)
        stride = None if slice is None else row_stride(array)
        if slice is None or stride is None:
            return None
        # The length includes the padding of all rows but the last.
        length = array.nbytes
        if stride:
            length = array.nbytes // array.shape[-1] * stride - (stride - array.shape[-1]) * array.itemsize
        offset = slice.offset + address - slice.address
        if offset + length > slice.offset + slice.size or offset % array.itemsize:
            return None
        self._use(slice, address, length)
        return SharedOperand(kind, stride, slice.region.link.id, offset)

    def _place_result(self, i: int, kind: Kind, out: Array | None, deadline: float) -> None:
        dtype, nbytes = DTYPES[kind.data_type], bytes_of(kind)
        if not nbytes:
            return
        if out is not None and self._fits(kind, dtype, out):
            address = address_of(out)
            slice = self._pool.find(address)
            offset = 0 if slice is None else slice.offset + address - slice.address
            if slice is not None and self._free(out, address, nbytes) and offset % dtype.itemsize == 0:
                self._use(slice, address, nbytes)
                self._sinks[i] = _Sink(slice, offset, nbytes, True)
                return
        if nbytes >= shipments.SMALL_BYTES:
            slice = self._take(nbytes, deadline)
            if slice is not None:
                self._use(slice, slice.address, nbytes)
                self._sinks[i] = _Sink(slice, slice.offset, nbytes, False)

    def _free(self, out: Array, address: int, nbytes: int) -> bool:
        """True if `out` overlaps no operand or other result. A failed attempt may write to `out`, and a retry needs the
        operands unchanged."""
        operands = [field.operand.array for field in self.call.operands if isinstance(field.operand, Operand)]
        return (not any(begin < address + nbytes and address < end for begin, end in self._ranges)
                and not any(np.may_share_memory(out, array) for array in operands))

    def _fits(self, kind: Kind, dtype: np.dtype[Any], out: Array) -> bool:
        """True if the server can write its result directly into the caller's array."""
        return (self.call.finish is None and type(out) is np.ndarray and out.shape == kind.shape
                and out.dtype == dtype and out.dtype.isnative and out.flags.c_contiguous and out.flags.writeable)

    def _take(self, nbytes: int, deadline: float) -> Slice | None:
        try:
            slice = self._pool.take(nbytes, deadline - time.monotonic())
        except errors.Error as error:
            unreachable = isinstance(error, errors.Unavailable) and not isinstance(error, NoRegionSocket)
            # Without a server, messages fail too. When the server is back, the elements may be too large for a message.
            if self._strict or unreachable and self._retrying:
                raise
            self._lacking = self._lacking or isinstance(error, errors.Unavailable)
            return None
        self._taken.append(slice)
        return slice

    def _use(self, slice: Slice, address: int, nbytes: int) -> None:
        self._slices.append(slice)
        if slice.region not in self._regions:
            self._regions.append(slice.region)
        self._ranges.append((address, address + nbytes))

    # --- After the call has been sent

    def _withdraw(self) -> None:
        """Withdraws an attempt that did not end with OK: the server may still use its slices."""
        if not self._number or self._withdrawn:
            return
        self._withdrawn = True
        for region in self._regions:
            region.link.withdraw(self._number)
        self._pool.mark(self._slices, self._number)

    def _settled(self, seconds: float, given_up: Callable[[], bool] = lambda: False) -> bool:
        """Waits until the server no longer uses any slice of the attempt, or its links are closed. Returns False after
        `seconds`. given_up: ends the wait if it returns True; the pool wakes the wait to check it."""
        deadline = time.monotonic() + seconds
        for region in self._regions if self._withdrawn else ():
            if not region.link.wait(self._number, max(deadline - time.monotonic(), 0.0), given_up):
                return False
        return True

    def _fetch(self, i: int, found: InRegion) -> Array | None:
        """The array of a result that the server has written. None if its location is not the requested one."""
        sink = self._sinks.get(i)
        if sink is None or (found.id, found.offset) != (sink.slice.region.link.id, sink.offset):
            return None
        nbytes = found.dtype.itemsize
        for n in found.shape:
            nbytes *= n
        if nbytes > sink.slice.offset + sink.slice.size - sink.offset:
            # The server has written past the end of the slice: no data in this region is reliable.
            sink.slice.region.link.close()
            return None
        out = self._outs[i]
        if sink.direct:
            return out if out is not None and (out.dtype, out.shape) == (found.dtype, found.shape) else None
        if out is None:
            lent = self._pool.lend(sink.slice, found.dtype, found.shape)
            if lent is not None:
                self._taken = [slice for slice in self._taken if slice is not sink.slice]
                lent.flags.writeable = False
                return lent
        view = array_in(sink.slice, found.dtype, found.shape)
        if out is not None:
            return view  # calls.deliver copies it into out
        result = np.empty(found.shape, found.dtype)
        copies.copy(result, view)
        result.flags.writeable = False
        return result

    def _end(self) -> None:
        self._give_back()
        self._pool.end(self._user)

    def _give_back(self) -> None:
        taken = self._taken
        self._clear()
        if taken:
            self._pool.give_back(taken)


def address_of(array: Array) -> int:
    """Address of the first element."""
    address: int = array.__array_interface__["data"][0]
    return address
