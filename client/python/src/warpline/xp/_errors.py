"""What an array's owner can do about a failed request, beside the server's own text."""

import re
from collections.abc import Mapping
from typing import Any

from warpline import errors
from warpline.expressions import Expression


class ServerLost(errors.Unavailable):
    """The server does not answer, or has restarted. Arrays whose elements were on it are lost: they are made again by
    `warpline.xp.asarray` of what they came from. Those that are still pending on other servers are not."""


class LeaseLost(errors.NotFound):
    """The server no longer has an array: its lease has ended while this process could not renew it, as when the process
    was suspended; or it was lost with its device. That array and what is made of it are made again."""


class QuotaFull(errors.ResourceExhausted):
    """The server has no memory for further arrays of this owner. Drop arrays (`del x`), or ask for a larger quota."""


def of(error: errors.Error, steps: Mapping[str, Expression], address: str) -> errors.Error:
    """The error of a request, with the line that made the step which it names. steps: those of the request, in order."""
    text = error.message
    place = re.search(r"program\.steps\[(\d+)\]", text)
    if place and int(place[1]) < len(steps):
        text += f" (made at {_line_of(list(steps.values())[int(place[1])], steps)})"
    else:
        names = [name for name in re.findall(r'step "(\w+)"', text) if name in steps]  # as of the largest results
        text += f" (made at {_line_of(steps[names[0]], steps)})" if names else ""
    kind = _kind_of(error)
    if kind is None:
        return errors.reworded(error, text)
    advice = {ServerLost: f"arrays on {address} whose elements were not fetched are lost if it has restarted: make them again",
              LeaseLost: "the array is lost: make it again", QuotaFull: "drop arrays that are no longer used (del x)"}[kind]
    made = kind(error.code, f"{text}; {advice}", error.request_id, error.violations, error.retry_after)
    made.answered = error.answered
    return made


def _kind_of(error: errors.Error) -> "type[ServerLost | LeaseLost | QuotaFull] | None":
    if isinstance(error, errors.Unavailable) or "was made by server" in error.message:
        return ServerLost
    if isinstance(error, errors.NotFound):
        return LeaseLost
    if isinstance(error, errors.ResourceExhausted) and "resident tensor" in error.message:
        return QuotaFull
    return None


def _line_of(x: Expression, steps: Mapping[str, Expression]) -> Any:
    """The line that made a step, or else the next one that reads it."""
    found, seen = [x], {x}
    for y in sorted(steps.values(), key=lambda y: y._serial):
        if not seen.isdisjoint(y._inputs):
            found.append(y)
            seen.add(y)
    return next((y._line for y in found if y._line is not None), "an unknown line")
