"""Resident tensors of the asynchronous client."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from warpline import calls, connections, errors, residents, transfers
from warpline.aio.connection import Connection
from warpline.aio.leases import Leases
from warpline.aio.threads import in_thread
from warpline.arrays import Array
from warpline.leases import CALL_TIMEOUT
from warpline.residents import TensorInfo
from warpline.tensors import Handle
from warpline.transfers import Transfer

_T = TypeVar("_T")


class Transport:
    """The connections that all tensors of one client share. Elements travel over separate connections, moved by
    threads, so the event loop is not blocked."""

    def __init__(self, connection: Connection, bulk: Callable[[], connections.Connection]) -> None:
        self.connection = connection
        self._open = bulk
        self._lock = threading.Lock()
        self._bulk: connections.Connection | None = None
        self._closed = False

    def bulk(self) -> connections.Connection:
        """The connection for elements. Any thread may call this."""
        with self._lock:
            if self._bulk is None:
                self._bulk = self._open()
                if self._closed:
                    self._bulk.close()
            return self._bulk

    async def close(self) -> None:
        """Closes the connection for elements. Transfers in flight and later transfers raise Cancelled."""
        self._closed = True
        if self._bulk is not None:
            await asyncio.to_thread(self._bulk.close)


async def run(make: Callable[[], Transfer[_T]], discard: Callable[[_T], object] = lambda _: None) -> _T:
    """Makes and runs a transfer in a thread. Cancelling the task cancels the transfer. discard: is called with the
    result of a transfer that succeeded in spite of the cancellation."""
    made: list[Transfer[_T]] = []
    cancelled = threading.Event()

    def work() -> _T:
        made.append(make())
        # The task was cancelled before the transfer existed.
        if cancelled.is_set():
            made[0].cancel()
        return made[0].run()

    def cancel() -> None:
        cancelled.set()
        for transfer in made:
            transfer.cancel()

    return await in_thread(work, cancel, discard)


class Tensor(Handle):
    """A resident tensor of the asynchronous client. `async with` drops the tensor at the end. np.asarray cannot fetch
    or compute asynchronously: use `await t.numpy()` and `await client.run(t @ u)`."""

    def __init__(self, transport: Transport, info: TensorInfo, leases: Leases | None, owned: bool) -> None:
        """leases: renews the lease of the tensor; None: the lease is not renewed."""
        super().__init__(info)
        self._transport = transport
        self._process = os.getpid()
        self._owned = owned
        self._let_go: Callable[[], object] | None = leases.keep(self, info.ttl, owned) if leases else None

    def __bool__(self) -> bool:
        # When a channel closes, gRPC tests the truth of the `self` of every task, such as one that awaits numpy().
        return True

    async def __aenter__(self) -> "Tensor":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        traceback: TracebackType | None) -> None:
        if not self._owned:
            self.release()
            return
        if kind is not None:
            await self._drop_once()
        else:
            await self.drop()

    async def numpy(self, *, out: Array | None = None, channels: int | None = None, timeout: float | None = None,
                    request_id: str | None = None) -> Array:
        """See warpline.Tensor.numpy."""
        bulk = self._transport.bulk()
        return await run(lambda: transfers.Get(bulk, self, out, channels, timeout, request_id))

    async def drop(self, *, timeout: float | None = None) -> None:
        """See warpline.Tensor.drop."""
        if os.getpid() != self._process:
            return
        self.release()
        try:
            await self._transport.connection.invoke(residents.DROP_METHOD, residents.encode_drop(self.id), timeout,
                                                    None)
        except (errors.NotFound, errors.FailedPrecondition):
            pass
        except errors.Cancelled:
            if not self._transport.connection.closed:
                raise

    async def _drop_once(self) -> None:
        """Like warpline.Tensor._drop_once."""
        if os.getpid() == self._process:
            body = residents.encode_drop(self.release())
            with contextlib.suppress(errors.Error):
                await self._transport.connection.ask(residents.DROP_METHOD, body, CALL_TIMEOUT)

    def release(self) -> str:
        """See warpline.Tensor.release."""
        if self._let_go is not None and os.getpid() == self._process:
            self._let_go()
        self._let_go = None
        self._owned = False
        return self.id

    async def renew(self, ttl: float | None = None, *, timeout: float | None = None) -> TensorInfo:
        """See warpline.Tensor.renew."""
        body = residents.encode_renew(self.id, ttl)
        response, request_id = await self._transport.connection.invoke(residents.RENEW_METHOD, body, timeout, None)
        return calls.valid(residents.decode_created, response, request_id)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        raise TypeError(f"{self!r} is of an asynchronous client: await its numpy()")
