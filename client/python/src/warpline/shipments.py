"""A call on its way to the server and back."""

from collections.abc import Sequence

import grpc

from warpline import calls
from warpline.arrays import Array
from warpline.calls import Call, Report
from warpline.dtypes import DTYPES
from warpline.residents import TensorInfo
from warpline.shapes import Kind

# Ordinary arrays of fewer bytes travel in messages: a copy into shared memory, and the words about it, cost as
# much as what gRPC does with them (measured: 0.38 ms either way for a transpose of 128 KiB).
SMALL_BYTES = 128 << 10


class Shipment:
    """A call whose elements are in its messages.

    Whoever has the shipment has its elements placed for each attempt, encodes it, and sends it. What failed may
    `recover`; what ended with OK is to be delivered; in the end of anything else the shipment is to be abandoned.
    """

    def __init__(self, call: Call, outs: Sequence[Array | None]) -> None:
        self.call = call
        self._outs = outs
        self._body = b""

    @property
    def inline_bytes(self) -> int:
        """Of the elements that `encode` copies."""
        return 0 if self._body else sum(field.operand.nbytes for field in self.call.operands)

    @property
    def shared_bytes(self) -> int:
        """Of the results that `deliver` may have to copy, beside those that go into an `out`."""
        return 0

    @property
    def waits(self) -> bool:
        """`abandon` waits for the server, as it may still write to an array of the caller's."""
        return False

    @property
    def may_block(self) -> bool:
        """`place` may copy many elements, or wait for the server."""
        return False

    def place(self, seconds: float, retrying: bool) -> None:
        """Before each attempt: finds room for the elements where that is not in the message. seconds: what is left for
        the whole call. retrying: there may be another attempt. errors.Error if there is no room, or no server."""

    def encode(self) -> bytes:
        """The request, for one attempt."""
        self._body = self._body or self.call.body
        return self._body

    def recover(self, code: grpc.StatusCode, seconds: float, retrying: bool) -> bool:
        """After an attempt that failed. True: it failed for a reason that is none any more, and is to be sent again
        at once. seconds: what is left for that. retrying: otherwise there will be another attempt, later."""
        return False

    def deliver(self, response: bytes, request_id: str, report: Report | None) -> list[Array | TensorInfo]:
        """The results, those with an `out` in it."""
        return calls.deliver(calls.decode(self.call, response, request_id, report), self._outs)

    def abandon(self, wait: bool = True) -> None:
        """Nobody waits for the response any more. Once this has waited, nothing writes to arrays of the caller's."""


def bytes_of(kind: Kind) -> int:
    nbytes: int = DTYPES[kind.data_type].itemsize
    for n in kind.shape:
        nbytes *= n
    return nbytes


def concerns(call: Call) -> bool:
    """An operand or a result is so large that shared memory may have to be asked for."""
    return (any(field.operand.nbytes >= SMALL_BYTES for field in call.operands)
            or any(bytes_of(kind) >= SMALL_BYTES for kind in call.results() or ()))
