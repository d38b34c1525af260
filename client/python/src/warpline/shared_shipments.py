"""A call whose elements lie in shared memory."""

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

# What the server says of a region that it does not know.
_STRANGE = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION)

# How long the end of a call that failed is waited for, once it is nobody's deadline any more.
_LONGEST_END = 60.0


class _Sink(NamedTuple):
    """Where a result is to go. direct: it is an array of the caller's."""

    slice: Slice
    # In the region, in bytes.
    offset: int
    nbytes: int
    direct: bool


class SharedShipment(Shipment):
    """A call whose elements lie in shared memory, if they are many or lie there already, and if there is room."""

    def __init__(self, call: Call, outs: Sequence[Array | None], pool: Pool, strict: bool, large: bool) -> None:
        """strict: what is not small may not be in the messages; `place` raises errors.Error if there is no room for it
        elsewhere. large: there may be something that is not small. Cancelled if the pool is closed."""
        super().__init__(call, outs)
        self._pool = pool
        self._user = pool.begin()
        self._strict = strict
        self._large = large
        # Whoever has it may use what follows. A thread may still copy elements when a task that nobody awaits any more
        # abandons the shipment: the thread then does that when it is done.
        self._lock = threading.Lock()
        self._abandoned = False
        self._placed = False
        # Something found no room as the server could not be reached.
        self._lacking = False
        # The number of an attempt that has been sent and has not ended with OK, and whether it has been withdrawn.
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
                # If there is no region in half of the time, the other half is left for messages.
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
        # What the server still uses is not to be written again. That it does not know a region is known for certain
        # when its link is closed, which may be noticed a little later.
        if not self._settled(seconds, lambda: self._pool.closed):
            return False
        died = not all(region.link.open for region in self._regions)
        again = bool(strange) and not self._resent and (died or code is grpc.StatusCode.ABORTED)
        self._resent = self._resent or again
        if died and again or retrying and (died or self._lacking):
            # It is placed anew when it is sent again, as by then there may be another server, with other regions.
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
                    # A server that does not say so is stopped or gone. The region is not used again.
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

    # --- Before it is sent

    def _clear(self) -> None:
        self._body = b""
        self._placed = self._lacking = False
        self._operands: list[SentOperand] = []
        self._sinks: dict[int, _Sink] = {}
        # Taken for this call, to be given back.
        self._taken: list[Slice] = []
        # All that it uses, those of the caller's arrays too.
        self._slices: list[Slice] = []
        self._regions: list[Region] = []
        # Addresses of what is read and written: no result may lie there.
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
        """An operand in shared memory: where it lies, or where it is copied to. None: it is to be in the message."""
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
        """An operand that lies in shared memory in a way that a Tensor can describe."""
        slice = self._pool.find(address)
        stride = None if slice is None else row_stride(array)
        if slice is None or stride is None:
            return None
        # With the padding of all rows but the last.
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
        """Nothing that is sent, or is to be sent again after an attempt that may have written there, lies there."""
        operands = [field.operand.array for field in self.call.operands if isinstance(field.operand, Operand)]
        return (not any(begin < address + nbytes and address < end for begin, end in self._ranges)
                and not any(np.may_share_memory(out, array) for array in operands))

    def _fits(self, kind: Kind, dtype: np.dtype[Any], out: Array) -> bool:
        """The server could write its result into the array of the caller's as it is."""
        return (self.call.finish is None and type(out) is np.ndarray and out.shape == kind.shape
                and out.dtype == dtype and out.dtype.isnative and out.flags.c_contiguous and out.flags.writeable)

    def _take(self, nbytes: int, deadline: float) -> Slice | None:
        try:
            slice = self._pool.take(nbytes, deadline - time.monotonic())
        except errors.Error as error:
            unreachable = isinstance(error, errors.Unavailable) and not isinstance(error, NoRegionSocket)
            # Without the server, messages do not travel either; and once it is there, the elements may be too many for
            # a message.
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

    # --- After it has been sent

    def _withdraw(self) -> None:
        """The attempt that was sent has not ended with OK: whether the server still uses its slices is not known."""
        if not self._number or self._withdrawn:
            return
        self._withdrawn = True
        for region in self._regions:
            region.link.withdraw(self._number)
        self._pool.mark(self._slices, self._number)

    def _settled(self, seconds: float, given_up: Callable[[], bool] = lambda: False) -> bool:
        """Waits until the server uses no slice of the attempt any more, or cannot say so. given_up: it is not waited
        for, and the pool wakes who waits."""
        deadline = time.monotonic() + seconds
        for region in self._regions if self._withdrawn else ():
            if not region.link.wait(self._number, max(deadline - time.monotonic(), 0.0), given_up):
                return False
        return True

    def _fetch(self, i: int, found: InRegion) -> Array | None:
        """The array of a result that the server has written. None if it has done so elsewhere."""
        sink = self._sinks.get(i)
        if sink is None or (found.id, found.offset) != (sink.slice.region.link.id, sink.offset):
            return None
        nbytes = found.dtype.itemsize
        for n in found.shape:
            nbytes *= n
        if nbytes > sink.slice.offset + sink.slice.size - sink.offset:
            # What lies behind the slice has been overwritten: nothing in this region can be relied upon.
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
            return view  # To be copied into it.
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
    """Of the first element."""
    address: int = array.__array_interface__["data"][0]
    return address
