"""The connection of an asynchronous client."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import grpc
import grpc.aio

from warpline import errors, sending, tls
from warpline.aio.threads import in_thread, unless_small
from warpline.sending import Attempts
from warpline.shipments import Shipment


_T = TypeVar("_T")


class Connection:
    """A channel to one server, for one event loop."""

    def __init__(self, target: str, timeout: float, max_retries: int, credentials: grpc.ChannelCredentials | None,
                 options: Sequence[tuple[str, Any]], token: str = "") -> None:
        """See warpline.connect."""
        self._timeout = sending.check_timeout(timeout)
        self._max_retries = sending.check_max_retries(max_retries)
        self._closed = asyncio.Event()
        self._target = target = sending.check_target(target)
        self._credentials = credentials
        self._token = token
        arguments = sending.channel_options(target, options)
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(target, arguments)
        else:
            self._channel = grpc.aio.secure_channel(target, credentials, arguments)

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    async def close(self) -> None:
        """Closes the channel. Calls in flight and later calls raise Cancelled."""
        self._closed.set()
        await self._channel.close()

    def check_open(self) -> None:
        """Raises Cancelled after `close`."""
        if self.closed:
            raise errors.closed("")

    def attempts(self, timeout: float | None, request_id: str | None) -> Attempts:
        """The attempts of a call that begins now. Raises ValueError for arguments that cannot be sent."""
        deadline = time.monotonic() + sending.check_timeout(self._timeout if timeout is None else timeout)
        return Attempts(deadline, self._max_retries, sending.check_request_id(request_id), self._token, self._target)

    async def ask(self, method: str, body: bytes, seconds: float) -> tuple[bytes, str]:
        """Like `invoke`, without retries: the caller has an alternative."""
        return await self._invoke(method, body, Attempts(time.monotonic() + seconds, 0, sending.check_request_id(None),
                                                         self._token, self._target))

    async def invoke(self, method: str, body: bytes, timeout: float | None,
                     request_id: str | None) -> tuple[bytes, str]:
        """Makes a call. Returns the response and the request's id."""
        return await self._invoke(method, body, self.attempts(timeout, request_id))

    async def _invoke(self, method: str, body: bytes, attempts: Attempts) -> tuple[bytes, str]:
        call = self._channel.unary_unary(method)

        async def attempt() -> bytes:
            response: bytes = await call(body, timeout=attempts.left(), metadata=attempts.metadata)
            return response

        return await self.retry(attempts, attempt), attempts.request_id

    async def send(self, shipment: Shipment, attempts: Attempts) -> bytes:
        """Sends a shipment's call. Returns the response."""
        call = self._channel.unary_unary(shipment.call.method)

        async def attempt() -> bytes:
            while True:
                if shipment.may_block:
                    await in_thread(lambda: shipment.place(attempts.left(), attempts.may_retry))
                else:
                    shipment.place(attempts.left(), attempts.may_retry)
                body = await unless_small(shipment.inline_bytes, shipment.encode)
                try:
                    response: bytes = await call(body, timeout=attempts.left(), metadata=attempts.metadata)
                    return response
                except grpc.RpcError as rpc_error:
                    code = rpc_error.code()
                    again = not self.closed and attempts.delay_for(attempts.error_of(rpc_error)) is not None
                    if not await in_thread(lambda: shipment.recover(code, attempts.left(), again)):
                        raise

        return await self.retry(attempts, attempt)

    async def retry(self, attempts: Attempts, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """Like warpline.connections.Connection.retry."""
        while True:
            try:
                return await attempt()
            except errors.Error as error:
                failure = error
            except grpc.RpcError as rpc_error:
                if self.closed:
                    raise errors.closed(attempts.request_id) from None
                failure = attempts.error_of(rpc_error)
                if attempts.failed == 0:
                    # Waiting does not fix a TLS error.
                    explained = await asyncio.to_thread(tls.explained, failure, self._target, self._credentials,
                                                        attempts.left())
                    if explained is not failure:
                        raise explained from None
            except grpc.aio.UsageError:
                # gRPC raises this if the channel is closed.
                raise errors.closed(attempts.request_id) from None
            except asyncio.CancelledError:
                # gRPC also raises this if `close` ended the call and nobody cancelled the task.
                task = asyncio.current_task()
                if not self.closed or task is None or task.cancelling():
                    raise
                raise errors.closed(attempts.request_id) from None
            delay = attempts.delay_after(failure)
            # The traceback refers to this frame and to the caller's objects: free them now.
            del failure
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closed.wait(), delay)
