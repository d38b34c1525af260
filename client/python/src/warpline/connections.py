"""The connection of a blocking client: its channels, and calls with retries."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from warpline import errors, sending, tls
from warpline.sending import HEALTH_METHOD, Attempts

if TYPE_CHECKING:
    from warpline.shipments import Shipment

_T = TypeVar("_T")


class Connection:
    """Channels to one server. Thread-safe."""

    def __init__(self, target: str, timeout: float, max_retries: int, credentials: grpc.ChannelCredentials | None,
                 options: Sequence[tuple[str, Any]], token: str = "") -> None:
        """See warpline.connect."""
        self._timeout = sending.check_timeout(timeout)
        self._max_retries = sending.check_max_retries(max_retries)
        self._target = sending.check_target(target)
        self._credentials = credentials
        self._token = token
        self._options = sending.channel_options(self._target, options)
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._channels = [self._open([])]

    def channel(self, index: int = 0) -> grpc.Channel:
        """The channel number `index`, created on first use. The first channel may share its socket with other clients
        of this process. Each further channel has its own socket."""
        with self._lock:
            while index >= len(self._channels) and not self.closed:
                self._channels.append(self._open([("grpc.use_local_subchannel_pool", 1)]))
            return self._channels[min(index, len(self._channels) - 1)]

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def close(self) -> None:
        """Closes the channels. Calls in flight and later calls raise Cancelled."""
        with self._lock:
            self._closed.set()
        for channel in self._channels:
            channel.close()

    def pause(self, seconds: float) -> None:
        """Waits for `seconds`, or until the connection is closed."""
        self._closed.wait(seconds)

    def check_open(self) -> None:
        """Raises Cancelled after `close`."""
        if self.closed:
            raise errors.closed("")

    def attempts(self, timeout: float | None, request_id: str | None) -> Attempts:
        """The attempts of a call that begins now. Raises ValueError for arguments that cannot be sent."""
        deadline = time.monotonic() + sending.check_timeout(self._timeout if timeout is None else timeout)
        return Attempts(deadline, self._max_retries, sending.check_request_id(request_id), self._token, self._target)

    def attempts_until(self, deadline: float, request_id: str) -> Attempts:
        """The attempts of one of several calls that share a deadline and an id."""
        return Attempts(deadline, self._max_retries, request_id, self._token, self._target)

    def retry(self, attempts: Attempts, attempt: Callable[[], _T],
              wait: Callable[[float], object] | None = None) -> _T:
        """Runs `attempt`, which makes one call, with the retries of `attempts`. Returns its result. wait: waits between
        attempts; None: `pause`."""
        while True:
            try:
                return attempt()
            except errors.Error as error:
                failure = error
            except grpc.RpcError as rpc_error:
                if self.closed:
                    raise errors.closed(attempts.request_id) from None
                failure = attempts.error_of(rpc_error)
                if attempts.failed == 0:
                    # Waiting does not fix a TLS error.
                    explained = tls.explained(failure, self._target, self._credentials, attempts.left())
                    if explained is not failure:
                        raise explained from None
            except ValueError:
                # gRPC raises this if the channel is closed.
                if not self.closed:
                    raise
                raise errors.closed(attempts.request_id) from None
            delay, answered = attempts.delay_after(failure), failure.answered
            # The traceback refers to this frame and to the caller's objects: free them now, not by garbage collection.
            del failure
            with contextlib.nullcontext() if answered else self._connecting(delay):
                (wait or self.pause)(delay)

    def ask(self, method: str, body: bytes, seconds: float, request_id: str | None = None) -> tuple[bytes, str]:
        """Like `invoke`, without retries: the caller has an alternative."""
        return self._invoke(method, body, Attempts(time.monotonic() + seconds, 0, sending.check_request_id(request_id),
                                                   self._token, self._target))

    def invoke(self, method: str, body: bytes, timeout: float | None, request_id: str | None) -> tuple[bytes, str]:
        """Makes a call. Returns the response and the request's id."""
        return self._invoke(method, body, self.attempts(timeout, request_id))

    def _invoke(self, method: str, body: bytes, attempts: Attempts) -> tuple[bytes, str]:
        call = self.channel().unary_unary(method)
        response = self.retry(attempts, lambda: call(body, timeout=attempts.left(), metadata=attempts.metadata))
        return response, attempts.request_id

    def send(self, shipment: "Shipment", attempts: Attempts) -> bytes:
        """Sends a shipment's call. Returns the response."""
        call = self.channel().unary_unary(shipment.call.method)

        def attempt() -> bytes:
            while True:
                shipment.place(attempts.left(), attempts.may_retry)
                try:
                    response: bytes = call(shipment.encode(), timeout=attempts.left(), metadata=attempts.metadata)
                    return response
                except grpc.RpcError as rpc_error:
                    again = not self.closed and attempts.delay_for(attempts.error_of(rpc_error)) is not None
                    if not shipment.recover(rpc_error.code(), attempts.left(), again):
                        raise

        return self.retry(attempts, attempt)

    @contextlib.contextmanager
    def _connecting(self, seconds: float) -> Iterator[None]:
        """Makes gRPC reconnect during the wait. Without a connection gRPC fails calls at once, so no thread of a call
        polls the new connection. gRPC itself polls it only every five seconds. The call made here waits for a
        connection, and its thread polls."""
        try:
            waiting = self.channel().unary_unary(HEALTH_METHOD).future(b"", timeout=seconds, wait_for_ready=True)
        except ValueError:
            yield  # the channel is closed
            return
        try:
            yield
        finally:
            waiting.cancel()

    def _open(self, more: Sequence[tuple[str, Any]]) -> grpc.Channel:
        options = [*self._options, *more]
        if self._credentials is None:
            return grpc.insecure_channel(self._target, options)
        return grpc.secure_channel(self._target, self._credentials, options)
