"""Values that are asked for."""

import asyncio

from warpline.xp import _sessions
from warpline.xp._arrays import Array


def compute(*arrays: Array) -> None:
    """Computes arrays now, together: by one request, or one more for each mask on the way. They stay on the server."""
    _sessions.of(arrays).compute([x._x for x in arrays])


async def compute_async(*arrays: Array) -> None:
    """As compute, while other tasks of the event loop go on."""
    await asyncio.to_thread(compute, *arrays)
