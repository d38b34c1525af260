"""Sessions: the server on which arrays live, and when what is pending there is computed."""

import contextlib
import math
import os
import threading
import time
import weakref
from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpline import connecting, errors, graphs
from warpline.arrays import AnyOperand, Operand
from warpline.client import Client
from warpline.expressions import Expression
from warpline.plans import Plan, plan_stages
from warpline.programs import FREE
from warpline.reports import Execution
from warpline.residents import ResidentOperand
from warpline.xp import _errors, _lines, _profile, _views

if TYPE_CHECKING:
    from warpline.xp._arrays import Array

# Steps that are computed again rather than kept: they cost less than what reads them.
_MADE = {"constant", "full", "index"}
_CHEAP = {"map", "cast", "scale", "add", "transpose", "reshape", "slice", "broadcast_to", "diagonal", *_MADE}
# A graph of more steps is computed before more is added. A request has 256 steps and 128 inputs.
MAX_PENDING = 160
# Results of fewer bytes are kept here beside the server, since fetching them costs more than sending them again.
_SMALL = 16384
# Pending steps are computed before they alone keep more bytes on the server.
_MOST_ORPHANED = 256 << 20
# Expressions of one request, whose steps and inputs must fit into it.
_MAX_ASKED = 64
# Arrays of fewer bytes travel with requests, rather than by one of their own.
_TINY = 256


class _Flush(NamedTuple):
    """The requests that compute expressions. fetched: those whose elements come here; kept: those that stay."""

    fetched: Sequence[Expression]
    kept: Sequence[Expression]
    plans: Generator[Plan, list[Any], Any]
    first: Plan


class Session:
    """Computes arrays of one server. All methods may be called by several threads."""

    def __init__(self, client: Client, address: str) -> None:
        self.client = client
        self.address = address
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._live: weakref.WeakValueDictionary[int, Array] = weakref.WeakValueDictionary()
        # An upper bound of the bytes that no array has any more, and only pending steps need.
        self._orphaned = 0

    def is_usable(self) -> bool:
        """False after its client was closed, and in a forked child."""
        return self._process == os.getpid() and not self.client._connection.closed

    def close(self) -> None:
        """Drops the arrays from the server, and ends the connection. Later uses of them raise Cancelled."""
        self.client.close()

    def add(self, array: "Array") -> None:
        with self._lock:
            self._live[id(array)] = array
        if self._orphaned > _MOST_ORPHANED:
            self._compute_orphans()

    def _compute_orphans(self) -> None:
        """Computes pending arrays that need less memory than what is kept for them alone, as the sum of an array that the
        caller has dropped."""
        with self._lock:
            own = {array._x for array in list(self._live.values())}
            needed = {x: graphs.needed([x]) for x in own if x._operation is not None}
            orphans = {y for ys in needed.values() for y in ys if isinstance(y._operand, ResidentOperand)} - own
            readers = [x for x, ys in needed.items() if not orphans.isdisjoint(ys)]
            excess = sum(map(_bytes, orphans)) - sum(map(_bytes, readers))
            self._orphaned = max(excess, 0) if excess <= _MOST_ORPHANED else 0
        if excess > _MOST_ORPHANED:
            try:
                self.compute(readers)
            except errors.Error:
                for x in readers:  # the error is that of some; a look at these arrays will tell
                    with contextlib.suppress(errors.Error):
                        self.compute([x])

    def input(self, array: np.ndarray[Any, Any]) -> Expression:
        """An array of NumPy as an operand: on the server, unless it is so small that it may travel with each request."""
        if array.nbytes <= _TINY:
            return self._here(FREE.input(array.copy()))
        start = time.perf_counter()
        try:
            tensor = self.client.put(array)
        except errors.Error as error:
            raise _errors.of(error, {}, self.address) from error
        if _profile.is_active():
            _profile.note(_lines.current(), requests=1, sent_bytes=array.nbytes, seconds=time.perf_counter() - start)
        with self._lock:
            self._orphaned += array.nbytes  # as soon as the caller drops it
        return FREE.input(tensor)

    def compute(self, wanted: Sequence[Expression]) -> None:
        """Computes expressions, which stay on the server, by one request for each mask on the way. For more than 64
        expressions there are several."""
        for x in wanted:
            _lines.mark(x)
        for i in range(0, len(wanted), _MAX_ASKED):
            with self._lock:
                flush = self._flush_of(wanted[i:i + _MAX_ASKED], [])
            if flush is not None:
                self._results(flush)

    def fetch(self, x: Expression) -> np.ndarray[Any, Any]:
        """The elements of an expression, computed if need be. Those of a small array cannot be changed, as it stays here."""
        return self.fetch_all([x])[0]

    def fetch_all(self, xs: Sequence[Expression]) -> list[np.ndarray[Any, Any]]:
        """The elements of several expressions, of which those that are pending are computed together. Of a small array all
        elements come, so that a loop over its places takes one request."""
        with self._lock:
            views = [_views.of(x) for x in xs]
            wanted = [view.base if view.base.shape is not None and _bytes(view.base) <= _SMALL else x
                      for x, view in zip(xs, views)]
            operands = [x._operand for x in wanted]
            pending = list(dict.fromkeys(x for x in wanted if x._operand is None))
            flush = self._flush_of([], pending) if pending else None
        computed = {} if flush is None else dict(zip(pending, self._results(flush)))
        elements = [computed[x] if operand is None else self._elements_of(x, operand) for x, operand in zip(wanted, operands)]
        for whole in elements:
            if whole.nbytes <= _SMALL:
                whole.setflags(write=False)  # it may be an operand of later requests
        return [whole if found is x else view.read(whole) for x, found, view, whole in zip(xs, wanted, views, elements)]

    def _elements_of(self, x: Expression, operand: AnyOperand) -> np.ndarray[Any, Any]:
        if not isinstance(operand, ResidentOperand):
            return operand.array
        array = self._elements(operand.tensor)
        if array.nbytes <= _SMALL:
            x._operand = Operand(array, any_order=False)
            self._here(x)
        return array

    def _here(self, x: Expression) -> Expression:
        """An input whose elements are here: what is made of it finds this session, as of tensors it finds their client."""
        x._near = self
        return x

    def _compute(self, x: Expression) -> np.ndarray[Any, Any]:
        """Elements that a function looks at before it makes its result."""
        return self.fetch(x)

    def _elements(self, tensor: Any) -> np.ndarray[Any, Any]:
        start = time.perf_counter()
        try:
            array: np.ndarray[Any, Any] = np.asarray(tensor)
        except errors.Error as error:
            raise _errors.of(error, {}, self.address) from error
        if _profile.is_active():
            _profile.note(_lines.current(), requests=1, received_bytes=array.nbytes, seconds=time.perf_counter() - start)
        return array

    def _flush_of(self, wanted: Sequence[Expression], fetched: Sequence[Expression]) -> "_Flush | None":
        """Plans what computes these expressions; None if there is nothing to compute. Called with the lock, so that no
        other thread changes the graph."""
        # Results that cost much to compute stay on the server beside coming here.
        costly = [x for x in fetched if x._operation is not None and x._operation.kind not in _CHEAP and _bytes(x) > _SMALL]
        asked = [x for x in dict.fromkeys([*wanted, *costly]) if x._operation is not None]
        kept = [*asked, *self._worth_keeping([*asked, *fetched])]
        if not kept and not fetched:
            return None
        plans = plan_stages([*fetched, *kept], {}, [False] * len(fetched) + [True] * len(kept), None, None, ())
        return _Flush(fetched, kept, plans, next(plans))

    def _results(self, flush: "_Flush") -> list[np.ndarray[Any, Any]]:
        """Sends a flush, without the lock. Returns what it fetches."""
        plan = flush.first
        while True:
            computed = self._send(plan)
            with self._lock:
                try:
                    plan = flush.plans.send(computed)
                    continue
                except StopIteration as end:
                    results = list(end.value) if isinstance(end.value, tuple) else [end.value]
                values = results[:len(flush.fetched)]
                for x, tensor in zip(flush.kept, results[len(values):]):
                    _settle(x, ResidentOperand(tensor), tensor.shape)
                    self._orphaned += tensor.nbytes
                for x, value in zip(flush.fetched, values):
                    if value.nbytes <= _SMALL:
                        _settle(x, Operand(value, any_order=False), value.shape)
                        self._here(x)
                return values

    def _send(self, plan: Plan) -> list[Any]:
        taken: list[Execution] = []
        report = taken.append if _profile.is_active() else None
        start = time.perf_counter()
        try:
            results = self.client._send(plan.call, plan.outs, {"report": report})
        except errors.Error as error:
            raise _errors.of(error, plan.graph.steps, self.address) from error
        if taken:
            sent = sum(operand.array.nbytes for _, operand in plan.call.inputs if isinstance(operand, Operand))
            received = sum(x.nbytes for x in results if isinstance(x, np.ndarray))
            _profile.note(_lines.current(), requests=1, sent_bytes=sent, received_bytes=received,
                          kernels=len(taken[0].variants), device_seconds=taken[0].stage_times.device,
                          seconds=time.perf_counter() - start)
        return results

    def _worth_keeping(self, asked: Sequence[Expression]) -> list[Expression]:
        """Finds what a request for these expressions computes on its way, and others will read: all but cheap steps, and
        cheap ones that two others read."""
        inside = {x for x in graphs.needed(asked) if x._operation is not None and x._operation.kind not in _MADE}
        known = set(asked)
        found: set[Expression] = set()
        seen = set(asked)
        readers: dict[Expression, int] = {}
        todo = [array._x for array in list(self._live.values())]
        while todo:
            x = todo.pop()
            if x in seen:
                continue
            seen.add(x)
            if x in inside and x._operation is not None and x._operation.kind not in _CHEAP:
                found.add(x)
                continue
            for y in x._inputs:
                readers[y] = readers.get(y, 0) + 1
                if y in inside and readers[y] > 1 and y not in known:
                    found.add(y)
            todo += x._inputs
        return [x for x in sorted(found, key=lambda x: x._serial)
                if x._operation is not None and x._operation.kind not in ("further", "compress")][:64]


def _bytes(x: Expression) -> int:
    return math.prod(x.shape or ()) * (0 if x.dtype is None else x.dtype.itemsize)


def _settle(x: Expression, operand: Any, shape: tuple[int, ...]) -> None:
    """Makes an expression that has been computed an input: what has made it may go."""
    if x._operation is None:
        return  # another thread has computed it, too
    x._operand, x._operation, x._inputs, x._near, x._stored = operand, None, (), None, None
    x._shape, x._has_inferred_shape = shape, True


def pending(x: Expression) -> int:
    """Counts the steps that compute the expression, with those of its inputs."""
    return sum(y._operation is not None for y in graphs.needed([x]))


_default: list[Session] = []
_by_address: weakref.WeakValueDictionary[str, Session] = weakref.WeakValueDictionary()
_lock = threading.RLock()


def connect(server: str | None = None, **settings: Any) -> Session:
    """Connects to a server, which becomes the one of later arrays without a device. server: as of warpline.connect; None:
    that of $WARPLINE_SERVER, else 127.0.0.1:50051. Without settings it is the
    session of that server that was made last, if one is still used."""
    address = server or os.environ.get("WARPLINE_SERVER") or "127.0.0.1:50051"
    with _lock:
        session = None if settings else _by_address.get(address)
        if session is None or not session.is_usable():
            session = _by_address[address] = Session(connecting.connect(address, **settings), address)
        _default[:] = [session]
    return session


def default() -> Session:
    with _lock:
        return _default[0] if _default else connect()


def at(address: str) -> Session | None:
    """The session of a server that somebody still uses."""
    with _lock:
        return _by_address.get(address)


def of(arrays: Iterable["Array"]) -> Session:
    """The session that all arrays belong to. Raises ValueError for those of several servers."""
    found = {array._session for array in arrays}
    if len(found) > 1:
        raise ValueError(f"arrays of {' and '.join(sorted(session.address for session in found))}, which are several sessions: "
                         "to_device brings them to one")
    return found.pop() if found else default()
