"""A call on its way to the server and back."""

from collections.abc import Sequence

import grpc

from warpline import calls
from warpline.arrays import Array
from warpline.calls import Call, Report
from warpline.dtypes import DTYPES
from warpline.residents import TensorInfo
from warpline.shapes import Kind

# Ordinary arrays of fewer bytes travel in messages. For them, copying into shared memory and describing the location
# costs as much as gRPC's copies (measured: 0.38 ms either way for a transpose of 128 KiB).
SMALL_BYTES = 128 << 10


class Shipment:
    """A call whose elements are in its messages.

    For each attempt, the owner calls `place` and `encode`, and sends the request. After a failed attempt, it calls
    `recover`. After OK, it calls `deliver`. If the call ends in any other way, it must call `abandon`.
    """

    def __init__(self, call: Call, outs: Sequence[Array | None]) -> None:
        self.call = call
        self._outs = outs
        self._body = b""

    @property
    def inline_bytes(self) -> int:
        """Bytes of the elements that `encode` copies."""
        return 0 if self._body else sum(field.operand.nbytes for field in self.call.operands)

    @property
    def shared_bytes(self) -> int:
        """Bytes of the results that `deliver` may have to copy, in addition to copies into an `out`."""
        return 0

    @property
    def waits(self) -> bool:
        """True if `abandon` waits for the server, because the server may still write to the caller's array."""
        return False

    @property
    def may_block(self) -> bool:
        """True if `place` may copy many elements, or wait for the server."""
        return False

    def place(self, seconds: float, retrying: bool) -> None:
        """Reserves memory for elements that do not travel in the message. Call this before each attempt. seconds: time
        left for the whole call. retrying: true if another attempt may follow. Raises errors.Error if there is no room,
        or no server."""

    def encode(self) -> bytes:
        """The encoded request of one attempt."""
        self._body = self._body or self.call.body
        return self._body

    def recover(self, code: grpc.StatusCode, seconds: float, retrying: bool) -> bool:
        """Handles a failed attempt. Returns True if the cause is fixed and the caller must send again at once. seconds:
        time left to recover. retrying: true if another attempt follows later otherwise."""
        return False

    def deliver(self, response: bytes, request_id: str, report: Report | None) -> list[Array | TensorInfo]:
        """Returns the results. A result with an `out` is in that array."""
        return calls.deliver(calls.decode(self.call, response, request_id, report), self._outs)

    def abandon(self, wait: bool = True) -> None:
        """Gives up the response. With `wait`, nothing writes to the caller's arrays after this returns."""


def bytes_of(kind: Kind) -> int:
    nbytes: int = DTYPES[kind.data_type].itemsize
    for n in kind.shape:
        nbytes *= n
    return nbytes


def concerns(call: Call) -> bool:
    """True if an operand or a result is large enough to need shared memory."""
    return (any(field.operand.nbytes >= SMALL_BYTES for field in call.operands)
            or any(bytes_of(kind) >= SMALL_BYTES for kind in call.results() or ()))
