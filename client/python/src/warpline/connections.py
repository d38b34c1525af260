"""The connection of a blocking client: channels, and calls over them, tried again where that helps."""

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
        """The channel of that number, made when it is first asked for. The first may share its socket with other
        clients of this process; each of the others has its own."""
        with self._lock:
            while index >= len(self._channels) and not self.closed:
                self._channels.append(self._open([("grpc.use_local_subchannel_pool", 1)]))
            return self._channels[min(index, len(self._channels) - 1)]

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def close(self) -> None:
        """Calls in flight and later ones raise Cancelled."""
        with self._lock:
            self._closed.set()
        for channel in self._channels:
            channel.close()

    def pause(self, seconds: float) -> None:
        """For so long, or until this is closed."""
        self._closed.wait(seconds)

    def check_open(self) -> None:
        """Cancelled after `close`."""
        if self.closed:
            raise errors.closed("")

    def attempts(self, timeout: float | None, request_id: str | None) -> Attempts:
        """Of a call that begins now. ValueError for what cannot be sent."""
        deadline = time.monotonic() + sending.check_timeout(self._timeout if timeout is None else timeout)
        return Attempts(deadline, self._max_retries, sending.check_request_id(request_id), self._token, self._target)

    def attempts_until(self, deadline: float, request_id: str) -> Attempts:
        """Of one of several calls that have a deadline and an id together."""
        return Attempts(deadline, self._max_retries, request_id, self._token, self._target)

    def retry(self, attempts: Attempts, attempt: Callable[[], _T],
              wait: Callable[[float], object] | None = None) -> _T:
        """What `attempt` returns, which makes one call and is tried again as `attempts` says. wait: between them;
        None: for so long, or until this is closed."""
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
                    # What is wrong with TLS does not get better by waiting.
                    explained = tls.explained(failure, self._target, self._credentials, attempts.left())
                    if explained is not failure:
                        raise explained from None
            except ValueError:
                # gRPC's, of a channel that is closed.
                if not self.closed:
                    raise
                raise errors.closed(attempts.request_id) from None
            delay, answered = attempts.delay_after(failure), failure.answered
            # Its traceback has this frame, and what the caller has: it is not to wait for a garbage collection.
            del failure
            with contextlib.nullcontext() if answered else self._connecting(delay):
                (wait or self.pause)(delay)

    def ask(self, method: str, body: bytes, seconds: float, request_id: str | None = None) -> tuple[bytes, str]:
        """As `invoke`, once: the caller knows what to do instead."""
        return self._invoke(method, body, Attempts(time.monotonic() + seconds, 0, sending.check_request_id(request_id),
                                                   self._token, self._target))

    def invoke(self, method: str, body: bytes, timeout: float | None, request_id: str | None) -> tuple[bytes, str]:
        """The response, and the request's id."""
        return self._invoke(method, body, self.attempts(timeout, request_id))

    def _invoke(self, method: str, body: bytes, attempts: Attempts) -> tuple[bytes, str]:
        call = self.channel().unary_unary(method)
        response = self.retry(attempts, lambda: call(body, timeout=attempts.left(), metadata=attempts.metadata))
        return response, attempts.request_id

    def send(self, shipment: "Shipment", attempts: Attempts) -> bytes:
        """The response to a call."""
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
        """Has gRPC connect again meanwhile. While there is no connection it lets calls fail at once, so that none of
        their threads looks after the one that is being made, and gRPC itself does so every five seconds only. Calls
        that wait for a connection have a thread that does."""
        try:
            waiting = self.channel().unary_unary(HEALTH_METHOD).future(b"", timeout=seconds, wait_for_ready=True)
        except ValueError:
            yield  # The channel is closed.
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
