"""Copies of many elements, by several threads."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# What one thread copies at a time. NumPy lets other threads run meanwhile.
_CHUNK_BYTES = 4 << 20
# One thread does not saturate the memory of a server, and more than these gain nothing.
_MAX_THREADS = 8

# By process, as a child has none of its parent's threads.
_executors: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def copy(to: Array, source: Array) -> None:
    """Copies the elements, whatever the layouts and byte orders. Both have one shape and, but for byte order, one
    dtype, and do not overlap."""
    if to.nbytes <= _CHUNK_BYTES:
        np.copyto(to, source)
    else:
        in_threads([partial(np.copyto, to[at], source[at]) for at in _chunks(to)])


def in_threads(work: Sequence[Callable[[], object]]) -> None:
    """Does all of it, in no order, in this thread and others. Raises what the first of them raised, after all have
    ended."""
    todo = deque(work)

    def do() -> None:
        while todo:
            try:
                one = todo.popleft()
            except IndexError:
                return  # Another thread had the last.
            one()

    futures = [future for _ in range(min(_threads(), len(work)) - 1) if (future := _submit(do)) is not None]
    try:
        do()
    finally:
        todo.clear()
        wait([future for future in futures if not future.cancel()])
    for future in futures:
        if not future.cancelled():
            future.result()


def _chunks(array: Array) -> Iterator[Any]:
    """Indices of parts that make up an array with elements: ranges along the first axis that has several."""
    axis = next((i for i, n in enumerate(array.shape) if n > 1), None)
    if axis is None:
        yield ...
        return
    head, count = (0,) * axis, array.shape[axis]
    rows = _CHUNK_BYTES * count // array.nbytes
    if rows or axis + 1 == array.ndim:
        for begin in range(0, count, rows or 1):
            yield (*head, slice(begin, begin + (rows or 1)))
        return
    # Few and large: each is divided in turn.
    for i in range(count):
        for rest in _chunks(array[(*head, i)]):
            yield (*head, i, *(rest if isinstance(rest, tuple) else (rest,)))


def _threads() -> int:
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(processors, _MAX_THREADS)


def _submit(work: Callable[[], None]) -> Future[None] | None:
    """None: the interpreter is ending, and there are no other threads any more."""
    with _lock:
        executor = _executors.get(os.getpid())
        if executor is None:
            _executors.clear()
            executor = _executors[os.getpid()] = ThreadPoolExecutor(max(_threads() - 1, 1), "warpline-copy")
    try:
        return executor.submit(work)
    except RuntimeError:
        return None
