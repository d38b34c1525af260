"""The calls in flight of one event loop. The library's queue has a descriptor, which the loop watches."""

import asyncio
import itertools
import time
import weakref
from typing import Any

from warpline import core
from warpline._core import ffi, lib
from warpline.aio.threads import SMALL_BYTES
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


# More bytes of operands or results may lie in shared memory, which is perhaps to be opened first, and that takes long.
SHARED_BYTES = 64 << 10
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
        nbytes: size of the operands, or of the results if they are larger and memory is shared."""
        begun = time.monotonic()
        connection = self._connection
        handle = connection.begin()
        number, future = next(_numbers), self._loop.create_future()
        call = ffi.new("warpline_call **")
        arguments = (*request.arguments, self._queue.handle, ffi.cast("void *", number), call)
        self._queue.waiting[number] = future, request

        def submit() -> Any:
            return lib.warpline_submit(handle, *arguments)

        def refused(error: Any) -> None:
            del self._queue.waiting[number]
            connection.end()
            if error:
                lib.warpline_error_free(error)

        def discard(_: Any) -> None:
            _discard(future.result())
            connection.end()

        def abandon(_: Any) -> None:
            """The call was submitted, or not, and nobody waits for it any more."""
            if call[0]:
                lib.warpline_call_cancel(call[0])
                future.add_done_callback(discard)
            else:
                refused(None if submitting.cancelled() or submitting.exception() else submitting.result())

        limit = SHARED_BYTES if connection.shares else SMALL_BYTES
        submitting = self._loop.run_in_executor(None, submit) if nbytes > limit else self._done(submit())
        try:
            error = await asyncio.shield(submitting)
            if not error:
                ended = await asyncio.shield(future)
        except BaseException as problem:
            # Nobody may await any more in a coroutine that is closed.
            if isinstance(problem, GeneratorExit):
                submitting.add_done_callback(abandon)
                raise
            await _end_of(submitting)
            if not call[0]:
                abandon(submitting)
                raise
            if not future.done():
                lib.warpline_call_cancel(call[0])
            await _end_of(future)
            discard(future)
            raise
        if error:
            del self._queue.waiting[number]
            connection.end()
            raise connection.error(error, begun, request_id)
        out = ffi.new("warpline_result **")
        error = lib.warpline_call_finish(ended, out)
        warning = connection.warning(handle)
        connection.end()
        try:
            connection.told(warning)
        except BaseException:
            connection.free(error, out[0])
            raise
        if error:
            raise connection.error(error, begun, request_id)
        return out[0]

    def _done(self, value: Any) -> asyncio.Future[Any]:
        future = self._loop.create_future()
        future.set_result(value)
        return future


async def _end_of(future: asyncio.Future[Any]) -> None:
    """Waits, even if the task is cancelled once more: the first cancellation is raised anyway."""
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            pass


def _discard(call: Any) -> None:
    """Frees a call that has ended, with its result."""
    out = ffi.new("warpline_result **")
    error = lib.warpline_call_finish(call, out)
    if error:
        lib.warpline_error_free(error)
    else:
        lib.warpline_result_free(out[0])
