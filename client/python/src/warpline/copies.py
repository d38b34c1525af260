"""Copies large arrays with several threads."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# Bytes that one thread copies at a time. NumPy releases the interpreter's lock meanwhile.
_CHUNK_BYTES = 4 << 20
# One thread does not saturate the memory bandwidth of a server, and more than 8 threads gain nothing.
_MAX_THREADS = 8

# One executor per process: a forked child has none of its parent's threads.
_executors: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def copy(to: Array, source: Array) -> None:
    """Copies elements between any layouts and byte orders. Both arrays must have the same shape, and the same dtype
    except for byte order, and must not overlap."""
    if to.nbytes <= _CHUNK_BYTES:
        np.copyto(to, source)
    else:
        in_threads([partial(np.copyto, to[at], source[at]) for at in _chunks(to)])


def in_threads(work: Sequence[Callable[[], object]]) -> None:
    """Runs all work in any order, in this thread and others. After all threads have ended, raises the first
    exception."""
    todo = deque(work)

    def do() -> None:
        while todo:
            try:
                one = todo.popleft()
            except IndexError:
                return  # Another thread took the last item.
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
    """Divides a non-empty array into chunks: yields indices of ranges along the first axis longer than 1."""
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
    # One row exceeds a chunk: divide each row further.
    for i in range(count):
        for rest in _chunks(array[(*head, i)]):
            yield (*head, i, *(rest if isinstance(rest, tuple) else (rest,)))


def _threads() -> int:
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(processors, _MAX_THREADS)


def _submit(work: Callable[[], None]) -> Future[None] | None:
    """Submits work to the executor. Returns None if the interpreter is ending and no threads can run."""
    with _lock:
        executor = _executors.get(os.getpid())
        if executor is None:
            _executors.clear()
            executor = _executors[os.getpid()] = ThreadPoolExecutor(max(_threads() - 1, 1), "warpline-copy")
    try:
        return executor.submit(work)
    except RuntimeError:
        return None
