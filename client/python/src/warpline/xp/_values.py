"""Values that are asked for."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from warpline.xp import _lines, _sessions
from warpline.xp._arrays import Array


def compute(*arrays: Array) -> None:
    """Computes arrays now, together: by one request, or one more for each mask on the way. They stay on the server."""
    _sessions.of(arrays).compute([x._x for x in arrays])


def compute_async(*arrays: Array) -> Coroutine[Any, Any, None]:
    """As compute, while other tasks of the event loop go on. It is awaited."""
    return asyncio.to_thread(_lines.on_behalf_of, _lines.current(), compute, *arrays)
