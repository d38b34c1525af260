"""Work that would hold up the event loop, in threads."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from warpline.residents import Resident

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Of elements: less is copied in about the time that a thread costs, some tenths of a millisecond.
_SMALL_BYTES = 1 << 20


async def in_thread(work: Callable[[], _T], cancel: Callable[[], object] = lambda: None,
                    discard: Callable[[_T], object] = lambda _: None) -> _T:
    """What `work` returns, in a thread of the loop's pool. If the task is cancelled, `cancel` is called and the end
    of the work awaited: no thread reads or writes an array after that. discard: is given what it returns then."""
    future = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        cancel()
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                pass  # Once more: the first is raised in any case, and the work must have ended by then.
        if not future.cancelled() and future.exception() is None:
            discard(future.result())
        raise


async def copying(arrays: Iterable[Any], work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """What `work` returns, which copies the elements of `arrays`: in a thread if they are many."""
    return await unless_small(sum(map(_bytes_of, arrays)), lambda: work(*args, **kwargs))


async def unless_small(nbytes: int, work: Callable[[], _T]) -> _T:
    """What `work` returns, which copies so many bytes: in a thread if they are many."""
    return work() if nbytes <= _SMALL_BYTES else await in_thread(work)


def _bytes_of(x: Any) -> int:
    """To be copied; of what has to become an array first, and of expressions, more than a little."""
    if x is None or isinstance(x, Resident) or np.isscalar(x):
        return 0
    nbytes: int = getattr(x, "nbytes", _SMALL_BYTES + 1)
    return nbytes
