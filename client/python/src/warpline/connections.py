"""The connection of a blocking client: channels, and calls over them, tried again where that helps."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from warpline import errors, sending
from warpline.sending import Attempts

if TYPE_CHECKING:
    from warpline.shipments import Shipment

_T = TypeVar("_T")


class Connection:
    """Channels to one server. Thread-safe."""

    def __init__(self, target: str, timeout: float, max_retries: int, credentials: grpc.ChannelCredentials | None,
                 options: Sequence[tuple[str, Any]]) -> None:
        """See warpline.connect."""
        self._timeout = sending.check_timeout(timeout)
        self._max_retries = max_retries
        self._target = sending.check_target(target)
        self._credentials = credentials
        self._options = sending.channel_options(self._target, options)
        self._closed = False
        self._lock = threading.Lock()
        self._channels = [self._open([])]

    def channel(self, index: int = 0) -> grpc.Channel:
        """The channel of that number, made when it is first asked for. The first may share its socket with other
        clients of this process; each of the others has its own."""
        with self._lock:
            while index >= len(self._channels) and not self._closed:
                self._channels.append(self._open([("grpc.use_local_subchannel_pool", 1)]))
            return self._channels[min(index, len(self._channels) - 1)]

    def close(self) -> None:
        """Calls in flight and later ones raise Cancelled."""
        with self._lock:
            self._closed = True
        for channel in self._channels:
            channel.close()

    def attempts(self, timeout: float | None, request_id: str | None) -> Attempts:
        """Of a call that begins now. ValueError for what cannot be sent."""
        deadline = time.monotonic() + sending.check_timeout(self._timeout if timeout is None else timeout)
        return Attempts(deadline, self._max_retries, sending.check_request_id(request_id))

    def attempts_until(self, deadline: float, request_id: str) -> Attempts:
        """Of one of several calls that have a deadline and an id together."""
        return Attempts(deadline, self._max_retries, request_id)

    def retry(self, attempts: Attempts, attempt: Callable[[], _T],
              wait: Callable[[float], object] = time.sleep) -> _T:
        """What `attempt` returns, which makes one call and is tried again as `attempts` says. wait: between them."""
        while True:
            try:
                return attempt()
            except grpc.RpcError as rpc_error:
                delay = attempts.delay_after(rpc_error)
            except ValueError:
                # gRPC's, of a channel that is closed.
                if not self._closed:
                    raise
                raise errors.closed(attempts.request_id) from None
            wait(delay)

    def ask(self, method: str, body: bytes, seconds: float) -> tuple[bytes, str]:
        """As `invoke`, once: the caller knows what to do instead."""
        attempts = Attempts(time.monotonic() + seconds, 0, sending.check_request_id(None))
        call = self.channel().unary_unary(method)
        response = self.retry(attempts, lambda: call(body, timeout=attempts.left(), metadata=attempts.metadata))
        return response, attempts.request_id

    def invoke(self, method: str, body: bytes, timeout: float | None, request_id: str | None) -> tuple[bytes, str]:
        """The response, and the request's id."""
        attempts = self.attempts(timeout, request_id)
        call = self.channel().unary_unary(method)
        response = self.retry(attempts, lambda: call(body, timeout=attempts.left(), metadata=attempts.metadata))
        return response, attempts.request_id

    def send(self, shipment: "Shipment", attempts: Attempts) -> bytes:
        """The response to a call."""
        call = self.channel().unary_unary(shipment.call.method)

        def attempt() -> bytes:
            while True:
                try:
                    response: bytes = call(shipment.encode(), timeout=attempts.left(), metadata=attempts.metadata)
                    return response
                except grpc.RpcError as rpc_error:
                    if not shipment.recover(rpc_error.code(), attempts.left(), attempts.may_retry):
                        raise

        return self.retry(attempts, attempt)

    def _open(self, more: Sequence[tuple[str, Any]]) -> grpc.Channel:
        options = [*self._options, *more]
        if self._credentials is None:
            return grpc.insecure_channel(self._target, options)
        return grpc.secure_channel(self._target, self._credentials, options)
