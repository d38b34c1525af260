"""The calls in flight of one event loop. The library's queue has a descriptor, which the loop watches."""

import asyncio
import itertools
import time
import weakref
from typing import Any

from warpline import core
from warpline._core import ffi, lib
from warpline.aio.threads import unless_small
from warpline.calls import Request


class _Queue:
    """A queue of the library. waiting: by number, the calls in flight, with what they read and write."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        out = ffi.new("warpline_queue **")
        core.check(lib.warpline_queue_create(out))
        self.handle = out[0]
        self.waiting: dict[int, tuple[asyncio.Future[Any], Request]] = {}
        self._loop = loop
        self._closing = False
        _queues.add(self)
        loop.add_reader(lib.warpline_queue_descriptor(self.handle), self._take)

    def close(self) -> None:
        """Frees the queue after the last of its calls. If the loop ends before that, the queue stays, because the calls
        still use their memory."""
        self._closing = True
        if not self.waiting and self in _queues:
            _queues.remove(self)
            if not self._loop.is_closed():
                self._loop.remove_reader(lib.warpline_queue_descriptor(self.handle))
            lib.warpline_queue_free(self.handle)

    def _take(self) -> None:
        while self.waiting and (call := lib.warpline_queue_next(self.handle, 0.0)):
            number = int(ffi.cast("uintptr_t", lib.warpline_call_user_data(call)))
            self.waiting.pop(number)[0].set_result(call)
        if self._closing:
            self.close()


# All that are open.
_queues: set[_Queue] = set()
_numbers = itertools.count(1)


class Calls:
    """Makes the calls of one client, in one event loop."""

    def __init__(self, connection: core.Connection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._queue = _Queue(self._loop)
        self._close = weakref.finalize(self, self._queue.close)
        self._close.atexit = False

    def close(self) -> None:
        """Call this after the last call has begun."""
        self._close()

    async def run(self, request: Request, request_id: str, nbytes: int) -> Any:
        """Makes the call, and returns its warpline_result. Cancelling the task cancels the call and waits for its end.
        nbytes: size of the operands, which may be copied."""
        begun = time.monotonic()
        connection = self._connection
        handle = connection.begin()
        number, future = next(_numbers), self._loop.create_future()
        call = ffi.new("warpline_call **")
        arguments = (*request.arguments, self._queue.handle, ffi.cast("void *", number), call)
        self._queue.waiting[number] = future, request

        def discard(_: Any) -> None:
            _discard(future.result())
            connection.end()

        try:
            error = await unless_small(nbytes, lambda: lib.warpline_submit(handle, *arguments))
            if error:
                raise connection.error(error, begun, request_id)
            ended = await asyncio.shield(future)
        except BaseException as problem:
            if not call[0]:
                del self._queue.waiting[number]
                connection.end()
                raise
            if not future.done():
                lib.warpline_call_cancel(call[0])
            # Nobody may await any more in a coroutine that is closed.
            while not future.done() and not isinstance(problem, GeneratorExit):
                try:
                    await asyncio.wait([future])
                except asyncio.CancelledError:
                    pass  # Cancelled again: the first cancellation is raised anyway.
            if future.done():
                discard(future)
            else:
                future.add_done_callback(discard)
            raise
        out = ffi.new("warpline_result **")
        error = lib.warpline_call_finish(ended, out)
        connection.warn(handle)
        connection.end()
        if error:
            raise connection.error(error, begun, request_id)
        return out[0]


def _discard(call: Any) -> None:
    """Frees a call that has ended, with its result."""
    out = ffi.new("warpline_result **")
    error = lib.warpline_call_finish(call, out)
    if error:
        lib.warpline_error_free(error)
    else:
        lib.warpline_result_free(out[0])
