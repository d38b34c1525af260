"""Leases of resident tensors, renewed in the background for as long as somebody has the tensor here."""

import atexit
import itertools
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import grpc

from warpline import residents, wire
from warpline.connections import Connection

# Of one call of ours. Seconds.
CALL_TIMEOUT = 5.0
# What closing a client takes at the most, to drop what is left. Seconds.
CLOSE_TIMEOUT = 5.0
# Calls in flight at one time.
BATCH = 64
# The longest time for which nothing is looked at. Seconds.
_LONGEST_WAIT = 3600.0


class Event(NamedTuple):
    """What happened to an object that has a tensor: it has it now, with a lease of so many seconds; or, without
    those, it has it no more, and if it owns the tensor that is to be dropped. The default: the client closes."""

    # Of the object: several may have one tensor.
    key: int = 0
    id: str = ""
    ttl: float | None = None
    owned: bool = False


class _Lease(NamedTuple):
    when: float
    ttl: float
    id: str
    owned: bool


class Schedule:
    """Which leases are to be renewed, and when. No clock and no calls of its own; times in seconds."""

    def __init__(self) -> None:
        self._leases: dict[int, _Lease] = {}

    def handle(self, event: Event, now: float) -> str | None:
        """The id of a tensor that is to be dropped; None: there is none."""
        if event.ttl is not None:
            self._leases[event.key] = _Lease(now + _half(event.ttl), event.ttl, event.id, event.owned)
            return None
        self._leases.pop(event.key, None)
        return event.id if event.owned else None

    def wait(self, now: float) -> float:
        """How long there is nothing to be renewed."""
        soonest = min((lease.when for lease in self._leases.values()), default=now + _LONGEST_WAIT)
        return min(max(soonest - now, 0.0), _LONGEST_WAIT)

    def due(self, now: float) -> list[tuple[int, str]]:
        """Key and id of what to renew now; at most as many as there may be calls."""
        return [(key, lease.id) for key, lease in self._leases.items() if lease.when <= now][:BATCH]

    def renewed(self, key: int, response: bytes, now: float) -> None:
        """A lease that has begun anew: the server may have given it another length."""
        try:
            ttl = residents.decode_created(response).ttl
        except wire.WireError:
            return self.failed(key, None, now)
        if key in self._leases:
            self._leases[key] = self._leases[key]._replace(when=now + _half(ttl), ttl=ttl)

    def failed(self, key: int, code: grpc.StatusCode | None, now: float) -> None:
        """There is nothing to renew any more, or another attempt follows while the lease may still last."""
        if code in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNIMPLEMENTED):
            self._leases.pop(key, None)
        elif key in self._leases:
            lease = self._leases[key]
            self._leases[key] = lease._replace(when=now + _half(lease.ttl / 4))

    def end(self) -> list[str]:
        """What is owned, to be dropped. Nothing is left."""
        ids = [lease.id for lease in self._leases.values() if lease.owned]
        self._leases.clear()
        return ids


def _half(ttl: float) -> float:
    """When to renew what lasts so long. Not at once, whatever a server says."""
    return max(ttl / 2, 0.05)


class Leases:
    """Of the tensors of one blocking client. One thread renews them, from the first one on until `close`.

    After a fork, the child renews and drops what it has made itself, and nothing of its parent.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._renewers: dict[int, _Renewer] = {}
        # Zero is that of closing.
        self._keys = itertools.count(1)

    def keep(self, tensor: residents.Resident, ttl: float, owned: bool) -> Callable[[], object]:
        """Renews the lease, of so many seconds, until the tensor is garbage, which drops what is owned, or until
        what is returned is called: then neither is done any more."""
        renewer = self._renewer()
        key = next(self._keys)
        renewer.post(Event(key, tensor.id, ttl, owned))
        # Runs at any place in any thread: it posts, and nothing more. In a child it posts to no one.
        finalizer = weakref.finalize(tensor, renewer.post, Event(key, tensor.id, None, owned))
        finalizer.atexit = False

        def let_go() -> None:
            if finalizer.detach():
                renewer.post(Event(key))

        return let_go

    def close(self) -> None:
        """Drops what is kept, for a few seconds at the most."""
        renewer = self._renewers.get(os.getpid())
        if renewer is not None:
            renewer.close()

    def _renewer(self) -> "_Renewer":
        process = os.getpid()
        renewer = self._renewers.get(process)
        if renewer is None:
            candidate = _Renewer(self._connection)
            # Atomic, so that there is no lock that a fork might leave locked.
            renewer = self._renewers.setdefault(process, candidate)
            if renewer is candidate:
                renewer.start()
                # For clients that nobody closes: nothing that the thread has keeps them, or us.
                weakref.finalize(self, renewer.post, Event()).atexit = False
        return renewer


class _Renewer:
    """The thread, and what is posted to it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # Its put may interrupt another put of the same thread, as finalizers need it.
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="warpline-leases", daemon=True)
        self.post = self._events.put

    def start(self) -> None:
        # The memory of the server is worth a moment at the end of a script that closes nothing.
        atexit.register(self.close)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread; nothing in a child of the process that started it."""
        if os.getpid() == self._process:
            self.post(Event())
            self._thread.join(CLOSE_TIMEOUT + 1)

    def _run(self) -> None:
        schedule = Schedule()
        open = True
        while open:
            garbage = []
            try:
                event = self._events.get(timeout=schedule.wait(time.monotonic()))
                while True:
                    open = open and event.key != 0
                    if (id := schedule.handle(event, time.monotonic())) is not None:
                        garbage.append(id)
                    event = self._events.get_nowait()
            except Empty:
                pass
            if open:
                self._drop(garbage, CALL_TIMEOUT)
                self._renew(schedule)
            else:
                self._drop(garbage + schedule.end(), CLOSE_TIMEOUT)
        atexit.unregister(self.close)

    def _drop(self, ids: Sequence[str], timeout: float) -> None:
        """Best effort: what is not dropped ends with its lease."""
        end = time.monotonic() + timeout
        for i in range(0, len(ids), BATCH):
            bodies = [residents.encode_drop(id) for id in ids[i : i + BATCH]]
            _call_all(self._connection, residents.DROP_METHOD, bodies, max(end - time.monotonic(), 0.0))

    def _renew(self, schedule: Schedule) -> None:
        due = schedule.due(time.monotonic())
        bodies = [residents.encode_renew(id) for _, id in due]
        answers = _call_all(self._connection, residents.RENEW_METHOD, bodies, CALL_TIMEOUT)
        for (key, _), answer in zip(due, answers):
            if isinstance(answer, bytes):
                schedule.renewed(key, answer, time.monotonic())
            else:
                schedule.failed(key, answer, time.monotonic())


def _call_all(connection: Connection, method: str, bodies: Sequence[bytes],
              timeout: float) -> list[bytes | grpc.StatusCode | None]:
    """Of each call its response, or the code with which it failed."""
    answers: list[bytes | grpc.StatusCode | None] = []
    try:
        call = connection.channel().unary_unary(method)
        futures: list[Any] = [call.future(body, timeout=timeout) for body in bodies]
    except ValueError:
        return [None for _ in bodies]  # The channel is closed, which the client has done.
    for future in futures:
        try:
            answers.append(future.result())
        except grpc.RpcError:
            answers.append(future.code())
        except grpc.FutureCancelledError:
            answers.append(None)
    return answers
