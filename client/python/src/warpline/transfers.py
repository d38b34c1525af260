"""Transfers elements to and from a resident tensor: in ranges, over several channels at once."""

import contextlib
import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Generic, TypeVar

import grpc
import numpy as np

from warpline import errors, residents, wire
from warpline.arrays import Array, as_array, is_dense, memory
from warpline.calls import not_valid, valid
from warpline.connections import Connection
from warpline.dtypes import data_type
from warpline.residents import TensorInfo
from warpline.sending import Attempts
from warpline.v1 import warpline_pb2 as v1

# Bytes of the elements in one message.
_MESSAGE_BYTES = 1 << 20
# Maximum bytes of the elements in one call. A failed call sends these bytes again.
_RANGE_BYTES = 64 << 20
# Threshold in bytes for several connections: one thread of gRPC moves the bytes of each connection.
_LARGE_BYTES = 64 << 20
_LARGE_CHANNELS = 4
_MAX_CHANNELS = 64
# Timeout of the drop after a failure, in seconds.
_DROP_TIMEOUT = 2.0
# Polling interval of a transfer that waits for its next attempt, in seconds.
_GLANCE = 0.1

_T = TypeVar("_T")


def channels_of(channels: int | None, nbytes: int) -> int:
    """The number of channels to use. Raises ValueError if `channels` is out of range."""
    if channels is None:
        return _LARGE_CHANNELS if nbytes >= _LARGE_BYTES else 1
    if not 1 <= channels <= _MAX_CHANNELS:
        raise ValueError(f"channels is {channels}: 1 to {_MAX_CHANNELS}")
    return channels


def ranges_of(nbytes: int, channels: int) -> list[tuple[int, int]]:
    """Begin and end of each call's bytes. Ranges consist of whole messages; if possible, every channel gets a range."""
    messages = -(-nbytes // _MESSAGE_BYTES)
    size = min(_RANGE_BYTES, -(-messages // channels) * _MESSAGE_BYTES)
    return [(begin, min(begin + size, nbytes)) for begin in range(0, nbytes, size or 1)]


class Transfer(Generic[_T]):
    """A transfer of one tensor's elements. Call `run` once; `cancel` ends it from another thread."""

    def __init__(self, connection: Connection, channels: int | None, timeout: float | None,
                 request_id: str | None) -> None:
        attempts = connection.attempts(timeout, request_id)
        self._connection = connection
        self._channels = channels
        self._request_id = attempts.request_id
        # The ranges share this deadline.
        self._deadline = time.monotonic() + attempts.left()
        self._stopped = threading.Event()
        self._failures: list[BaseException] = []
        # Calls in flight. The lock orders the start of calls and `cancel`.
        self._calls: set[Any] = set()
        self._lock = threading.Lock()

    def run(self) -> _T:
        """Blocks until all elements have arrived. Raises the first failure, after all calls in flight have ended."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Cancels the transfer: `run` raises Cancelled soon."""
        self._stopped.set()
        with self._lock:
            calls = list(self._calls)
        for call in calls:
            call.cancel()

    def _invoke(self, method: str, body: bytes) -> bytes:
        left = max(self._deadline - time.monotonic(), 1e-3)
        return self._connection.invoke(method, body, left, self._request_id)[0]

    def _move_all(self, nbytes: int, move: Callable[[grpc.Channel, int, int], None]) -> None:
        """Calls `move` with every range, from one thread per channel."""
        channels = channels_of(self._channels, nbytes)
        ranges = deque(ranges_of(nbytes, channels) or [(0, 0)])
        channels = min(channels, len(ranges))

        def work(index: int) -> None:
            try:
                channel = self._connection.channel(index)
                while not self._stopped.is_set() and ranges:
                    try:
                        begin, end = ranges.popleft()
                    except IndexError:
                        return  # Another thread took the last range.
                    move(channel, begin, end)
            except BaseException as error:
                self._failures.append(error)
                self.cancel()

        if channels == 1:
            work(0)
        else:
            with ThreadPoolExecutor(channels, "warpline-transfer") as pool:
                try:
                    wait([pool.submit(work, i) for i in range(channels)])
                except BaseException:
                    self.cancel()
                    raise
        if self._failures:
            raise self._failures[0]
        if self._stopped.is_set():
            raise self._cancelled()

    def _retry(self, attempts: Attempts, attempt: Callable[[float], None]) -> None:
        """Repeats the call of one range until it succeeds. `attempt` takes the seconds left."""

        def once() -> None:
            if self._stopped.is_set():
                raise self._cancelled()
            try:
                attempt(attempts.left())
            except grpc.FutureCancelledError:
                raise self._cancelled() from None

        self._connection.retry(attempts, once, self._wait)

    def _wait(self, seconds: float) -> None:
        """Waits for `seconds`, or until the transfer is cancelled or the client closed. Polls for the close."""
        end = time.monotonic() + seconds
        while not self._connection.closed and (left := end - time.monotonic()) > 0:
            if self._stopped.wait(min(left, _GLANCE)):
                return

    def _attempts(self) -> Attempts:
        return self._connection.attempts_until(self._deadline, self._request_id)

    @contextlib.contextmanager
    def _going(self, call: Any) -> Iterator[None]:
        """Registers a call in flight, so `cancel` ends it."""
        with self._lock:
            self._calls.add(call)
        try:
            if self._stopped.is_set():
                call.cancel()
            yield
        finally:
            with self._lock:
                self._calls.remove(call)
            # Ends a call that was given up early.
            call.cancel()

    def _cancelled(self) -> errors.Error:
        return errors.Cancelled(grpc.StatusCode.CANCELLED, "the transfer was cancelled", self._request_id)


class Put(Transfer[TensorInfo]):
    """Makes a tensor of an array. If that fails, the tensor is dropped."""

    def __init__(self, connection: Connection, x: Any, ttl: float | None, device: int | None, channels: int | None,
                 timeout: float | None, request_id: str | None) -> None:
        """The arguments are those of Client.put. Sends nothing."""
        super().__init__(connection, channels, timeout, request_id)
        self._array = as_array(x)
        # If the array is not contiguous, each message gathers its elements.
        self._bytes = memory(self._array) if is_dense(self._array) else None
        number = data_type(self._array.dtype)
        channels_of(channels, 0)
        self._request = residents.encode_create(number, self._array.shape, ttl, device)
        self._id = ""
        self._doubt: errors.Error | None = None

    def run(self) -> TensorInfo:
        response = self._invoke(residents.CREATE_METHOD, self._request)
        info = valid(residents.decode_created, response, self._request_id)
        self._id = info.id
        try:
            if self._array.nbytes:
                self._move_all(self._array.nbytes, self._put)
            if self._doubt is not None:
                renewed = self._invoke(residents.RENEW_METHOD, residents.encode_renew(info.id))
                if valid(residents.decode_created, renewed, self._request_id).missing_bytes:
                    raise self._doubt
        except BaseException:
            self._drop()
            raise
        return dataclasses.replace(info, missing_bytes=0)

    def _put(self, channel: grpc.Channel, begin: int, end: int) -> None:
        call = channel.stream_unary(residents.PUT_METHOD)
        attempts = self._attempts()

        def attempt(left: float) -> None:
            put = call.future(self._messages(begin, end), timeout=left, metadata=attempts.metadata)
            with self._going(put):
                put.result()

        try:
            self._retry(attempts, attempt)
        except errors.InvalidArgument as error:
            # An attempt that seemed to fail may have succeeded. The server rejects the same elements the second time.
            if not attempts.failed:
                raise
            self._doubt = error

    def _messages(self, begin: int, end: int) -> Iterator[bytes]:
        """Yields the messages of one call. The elements are copied once, into the message."""
        for at in range(begin, end, _MESSAGE_BYTES):
            data = self._slice(at, min(at + _MESSAGE_BYTES, end))
            head = v1.PutRequest(id=self._id if at == begin else "", offset=at).SerializeToString()
            yield b"".join((head, wire.length_prefix(v1.PutRequest.DATA_FIELD_NUMBER, len(data)), data))

    def _slice(self, begin: int, end: int) -> memoryview:
        if self._bytes is not None:
            return self._bytes[begin:end]
        size = self._array.itemsize
        elements = self._array.flat[begin // size : end // size]
        return memory(elements if elements.dtype.isnative else elements.astype(elements.dtype.newbyteorder("=")))

    def _drop(self) -> None:
        """Drops the tensor, best effort: otherwise its lease ends by itself."""
        with contextlib.suppress(errors.Error):
            self._connection.ask(residents.DROP_METHOD, residents.encode_drop(self._id), _DROP_TIMEOUT,
                                 self._request_id)


class Get(Transfer[Array]):
    """Reads all elements of a tensor."""

    def __init__(self, connection: Connection, tensor: residents.Resident, out: Array | None, channels: int | None,
                 timeout: float | None, request_id: str | None) -> None:
        """The arguments are those of Tensor.numpy. Sends nothing."""
        super().__init__(connection, channels, timeout, request_id)
        if out is not None and (out.shape != tensor.shape or out.dtype != tensor.dtype):
            raise ValueError(f"out is {out.dtype}{list(out.shape)}, the tensor {tensor.dtype}{list(tensor.shape)}")
        channels_of(channels, 0)
        self._id = tensor.id
        self._out = out
        self._array = out if out is not None and is_dense(out) else np.empty(tensor.shape, tensor.dtype)
        self._bytes = self._array.reshape(-1).view(np.uint8)

    def run(self) -> Array:
        # Empty tensors are fetched too, because the tensor may not exist.
        self._move_all(self._array.nbytes, self._get)
        if self._out is None or self._out is self._array:
            return self._array
        np.copyto(self._out, self._array)
        return self._out

    def _get(self, channel: grpc.Channel, begin: int, end: int) -> None:
        call = channel.unary_stream(residents.GET_METHOD)
        attempts = self._attempts()
        # Position of the next message. A retry continues from this position.
        at = begin

        def attempt(left: float) -> None:
            nonlocal at
            if begin < at == end:
                return
            request = v1.GetRequest(id=self._id, offset=at, length=end - at).SerializeToString()
            get = call(request, timeout=left, metadata=attempts.metadata)
            with self._going(get):
                for message in get:
                    at = self._place(message, at, end)
            if at != end:
                raise wire.WireError(f"its elements end at byte {at} of {end}")

        try:
            self._retry(attempts, attempt)
        except wire.WireError as error:
            raise not_valid(error, self._request_id) from error

    def _place(self, message: bytes, at: int, end: int) -> int:
        """Copies the elements of a GetResponse to position `at`. Returns the end position."""
        offset, data = 0, memoryview(b"")
        for number, value in wire.fields(memoryview(message)):
            if number == v1.GetResponse.OFFSET_FIELD_NUMBER:
                offset = wire.integer(value)
            elif number == v1.GetResponse.DATA_FIELD_NUMBER:
                data = wire.submessage(value)
        if offset != at or len(data) > end - at:
            raise wire.WireError(f"{len(data)} bytes at {offset} where bytes {at} to {end} were to come")
        self._bytes[at : at + len(data)] = np.frombuffer(data, np.uint8)
        return at + len(data)
