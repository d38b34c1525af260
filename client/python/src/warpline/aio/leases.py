"""Leases of resident tensors, renewed by a task of the event loop."""

import asyncio
import contextlib
import itertools
import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence

from warpline import errors, residents
from warpline.aio.connection import Connection
from warpline.leases import BATCH, CALL_TIMEOUT, CLOSE_TIMEOUT, Event, Schedule


class _Mailbox:
    """The events that any thread posts to the task. In a child of the process that made it, posting does nothing."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._process = os.getpid()
        self._events: deque[Event] = deque()
        self._some = asyncio.Event()

    def post(self, event: Event) -> None:
        """Posts an event. Finalizers call this at any point of a thread, so it waits for no lock."""
        if os.getpid() == self._process:
            self._events.append(event)
            with contextlib.suppress(RuntimeError):  # The loop is closed, so no task renews leases.
                self._loop.call_soon_threadsafe(self._some.set)

    async def wait(self, seconds: float) -> list[Event]:
        """Waits for events, for at most `seconds`, and takes them."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._some.wait(), seconds)
        self._some.clear()
        return self.take()

    def take(self) -> list[Event]:
        """Takes the events that have been posted."""
        events = []
        while self._events:
            events.append(self._events.popleft())
        return events


class Leases:
    """Like warpline.leases.Leases, with a task in place of the thread."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._mailbox: _Mailbox | None = None
        self._task: asyncio.Task[None] | None = None
        # Key 0 means that the client closes.
        self._keys = itertools.count(1)

    def keep(self, tensor: residents.Resident, ttl: float, owned: bool) -> Callable[[], object]:
        """Like warpline.leases.Leases.keep. Call this in the event loop."""
        if self._mailbox is None:
            self._mailbox = _Mailbox(asyncio.get_running_loop())
            self._task = asyncio.create_task(_run(self._connection, self._mailbox), name="warpline-leases")
            # Ends the task of a client that nobody closes.
            weakref.finalize(self, self._mailbox.post, Event()).atexit = False
        post = self._mailbox.post
        key = next(self._keys)
        post(Event(key, tensor.id, ttl, owned))
        finalizer = weakref.finalize(tensor, post, Event(key, tensor.id, None, owned))
        finalizer.atexit = False

        def let_go() -> None:
            if finalizer.detach():
                post(Event(key))

        return let_go

    async def close(self) -> None:
        """Drops the tensors that are still kept. Takes a few seconds at most."""
        if self._mailbox is not None and self._task is not None:
            self._mailbox.post(Event())
            await asyncio.wait([self._task], timeout=CLOSE_TIMEOUT + 1)
            self._task.cancel()


async def _run(connection: Connection, mailbox: _Mailbox) -> None:
    """The body of the task. It ends when the client closes, or when asyncio.run ends: asyncio.run cancels the task and
    waits for it."""
    schedule = Schedule()
    open, garbage = True, []

    def handle(events: Sequence[Event]) -> list[str]:
        return [id for event in events if (id := schedule.handle(event, time.monotonic())) is not None]

    try:
        while open:
            events = await mailbox.wait(schedule.wait(time.monotonic()))
            open = all(event.key != 0 for event in events)
            garbage = handle(events)
            if open:
                await _drop(connection, garbage, CALL_TIMEOUT)
                await _renew(connection, schedule)
            else:
                await _drop(connection, garbage + schedule.end(), CLOSE_TIMEOUT)
    except asyncio.CancelledError:
        # If the client has closed, no leases are left. The drops in progress may have failed: repeat them.
        await _drop(connection, garbage + handle(mailbox.take()) + schedule.end(), CLOSE_TIMEOUT)
        raise


async def _drop(connection: Connection, ids: Sequence[str], timeout: float) -> None:
    """Drops tensors, best effort: the lease of any other tensor ends by itself."""
    end = time.monotonic() + timeout
    for i in range(0, len(ids), BATCH):
        bodies = [residents.encode_drop(id) for id in ids[i : i + BATCH]]
        await _call_all(connection, residents.DROP_METHOD, bodies, max(end - time.monotonic(), 1e-3))


async def _renew(connection: Connection, schedule: Schedule) -> None:
    due = schedule.due(time.monotonic())
    bodies = [residents.encode_renew(id) for _, id in due]
    answers = await _call_all(connection, residents.RENEW_METHOD, bodies, CALL_TIMEOUT)
    for (key, _), answer in zip(due, answers):
        if isinstance(answer, bytes):
            schedule.renewed(key, answer, time.monotonic())
        else:
            schedule.failed(key, answer.code, time.monotonic())


async def _call_all(connection: Connection, method: str, bodies: Sequence[bytes],
                    timeout: float) -> list[bytes | errors.Error]:
    """Makes calls in parallel. Returns the response or the error of each call."""

    async def one(body: bytes) -> bytes | errors.Error:
        try:
            return (await connection.ask(method, body, timeout))[0]
        except errors.Error as error:
            return error

    return await asyncio.gather(*[one(body) for body in bodies])
