"""Runs work in threads that would block the event loop."""

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from warpline import interrupts
from warpline.residents import Resident

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Copying fewer bytes takes no longer than starting a thread: some tenths of a millisecond.
SMALL_BYTES = 1 << 20


async def in_thread(work: Callable[[], _T], cancel: Callable[[], object] = lambda: None,
                    discard: Callable[[_T], object] = lambda _: None) -> _T:
    """Runs `work` in a thread of the loop's pool, and returns its result. If the task is cancelled, this calls `cancel`
    and waits for the end of the work. No thread reads or writes an array after that. discard: is called with the
    result of the work in that case."""
    future = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        cancel()
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                pass  # Cancelled again: the first cancellation is raised anyway, after the work has ended.
        if not future.cancelled() and future.exception() is None:
            discard(future.result())
        raise


async def calling(work: Callable[[], _T], discard: Callable[[_T], object] = lambda _: None) -> _T:
    """Runs `work`, which calls the library, in a thread. Cancelling the task cancels its calls."""
    stop = threading.Event()
    return await in_thread(lambda: cast(_T, interrupts.interruptible(work, stop)), stop.set, discard)


async def copying(arrays: Iterable[Any], work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Runs `work`, which copies the elements of `arrays`. Uses a thread for more than 1 MiB."""
    return await unless_small(sum(map(_bytes_of, arrays)), lambda: work(*args, **kwargs))


async def unless_small(nbytes: int, work: Callable[[], _T]) -> _T:
    """Runs `work`, which copies `nbytes` bytes. Uses a thread for more than 1 MiB."""
    return work() if nbytes <= SMALL_BYTES else await in_thread(work)


def _bytes_of(x: Any) -> int:
    """Bytes to copy. Expressions, and objects that must become arrays first, count as more than 1 MiB."""
    if x is None or isinstance(x, Resident) or np.isscalar(x):
        return 0
    nbytes: int = getattr(x, "nbytes", SMALL_BYTES + 1)
    return nbytes
