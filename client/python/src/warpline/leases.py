"""Leases of resident tensors, renewed in the background while this process refers to the tensor."""

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

# Timeout of one background call, in seconds.
CALL_TIMEOUT = 5.0
# Maximum time to drop the remaining tensors when a client closes, in seconds.
CLOSE_TIMEOUT = 5.0
# Maximum number of calls in flight.
BATCH = 64
# Maximum time between two looks at the schedule, in seconds.
_LONGEST_WAIT = 3600.0


class Event(NamedTuple):
    """An event of an object that refers to a tensor. With a ttl: the object has taken the tensor, with a lease of `ttl`
    seconds. Without: the object has let go of the tensor, and an owned tensor must be dropped. The default event means
    that the client closes."""

    # Identifies the object: several objects may refer to one tensor.
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
    """Decides when to renew each lease. It has no clock and makes no calls; times are in seconds."""

    def __init__(self) -> None:
        self._leases: dict[int, _Lease] = {}

    def handle(self, event: Event, now: float) -> str | None:
        """Applies an event. Returns the id of a tensor to drop; None if there is none."""
        if event.ttl is not None:
            self._leases[event.key] = _Lease(now + _half(event.ttl), event.ttl, event.id, event.owned)
            return None
        self._leases.pop(event.key, None)
        return event.id if event.owned else None

    def wait(self, now: float) -> float:
        """Seconds until the next lease must be renewed."""
        soonest = min((lease.when for lease in self._leases.values()), default=now + _LONGEST_WAIT)
        return min(max(soonest - now, 0.0), _LONGEST_WAIT)

    def due(self, now: float) -> list[tuple[int, str]]:
        """Key and id of each lease to renew now; at most BATCH."""
        return [(key, lease.id) for key, lease in self._leases.items() if lease.when <= now][:BATCH]

    def renewed(self, key: int, response: bytes, now: float) -> None:
        """Records a renewed lease. The server may have changed its ttl."""
        try:
            ttl = residents.decode_created(response).ttl
        except wire.WireError:
            return self.failed(key, None, now)
        if key in self._leases:
            self._leases[key] = self._leases[key]._replace(when=now + _half(ttl), ttl=ttl)

    def failed(self, key: int, code: grpc.StatusCode | None, now: float) -> None:
        """Records a failed renewal. Forgets the lease if it is gone, else plans another attempt before it ends."""
        if code in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNIMPLEMENTED):
            self._leases.pop(key, None)
        elif key in self._leases:
            lease = self._leases[key]
            self._leases[key] = lease._replace(when=now + _half(lease.ttl / 4))

    def end(self) -> list[str]:
        """Removes all leases. Returns the ids of the owned tensors, which must be dropped."""
        ids = [lease.id for lease in self._leases.values() if lease.owned]
        self._leases.clear()
        return ids


def _half(ttl: float) -> float:
    """Delay until a lease of `ttl` seconds is renewed: at least 0.05 s, even if a server gives a tiny ttl."""
    return max(ttl / 2, 0.05)


class Leases:
    """The leases of one blocking client's tensors. One thread renews them, from the first tensor until `close`.

    After a fork, the child renews and drops only its own tensors, not its parent's.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._renewers: dict[int, _Renewer] = {}
        # Key 0 means that the client closes.
        self._keys = itertools.count(1)

    def keep(self, tensor: residents.Resident, ttl: float, owned: bool) -> Callable[[], object]:
        """Renews the lease of `ttl` seconds until the tensor object is garbage. An owned tensor is then dropped.
        Returns a function that ends both the renewing and the dropping."""
        renewer = self._renewer()
        key = next(self._keys)
        renewer.post(Event(key, tensor.id, ttl, owned))
        # A finalizer may run at any point in any thread, so it only posts. In a child nobody receives the event.
        finalizer = weakref.finalize(tensor, renewer.post, Event(key, tensor.id, None, owned))
        finalizer.atexit = False

        def let_go() -> None:
            if finalizer.detach():
                renewer.post(Event(key))

        return let_go

    def close(self) -> None:
        """Drops the tensors that are still kept. Takes a few seconds at most."""
        renewer = self._renewers.get(os.getpid())
        if renewer is not None:
            renewer.close()

    def _renewer(self) -> "_Renewer":
        process = os.getpid()
        renewer = self._renewers.get(process)
        if renewer is None:
            candidate = _Renewer(self._connection)
            # setdefault is atomic: a lock could stay locked after a fork.
            renewer = self._renewers.setdefault(process, candidate)
            if renewer is candidate:
                renewer.start()
                # Ends the thread of a client that nobody closes. The thread keeps neither the client nor self alive.
                weakref.finalize(self, renewer.post, Event()).atexit = False
        return renewer


class _Renewer:
    """The thread that renews leases, and the queue of its events."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # SimpleQueue.put is reentrant: a finalizer may interrupt another put of the same thread.
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="warpline-leases", daemon=True)
        self.post = self._events.put

    def start(self) -> None:
        # Frees the server's memory at the end of a script that does not close its client.
        atexit.register(self.close)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread. Does nothing in a child of the process that started it."""
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
        """Drops tensors, best effort: the lease of any other tensor ends by itself."""
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
    """Makes calls in parallel. Returns the response of each call, or its status code if it failed."""
    answers: list[bytes | grpc.StatusCode | None] = []
    try:
        call = connection.channel().unary_unary(method)
        futures: list[Any] = [call.future(body, timeout=timeout) for body in bodies]
    except ValueError:
        return [None for _ in bodies]  # The client has closed the channel.
    for future in futures:
        try:
            answers.append(future.result())
        except grpc.RpcError:
            answers.append(future.code())
        except grpc.FutureCancelledError:
            answers.append(None)
    return answers
