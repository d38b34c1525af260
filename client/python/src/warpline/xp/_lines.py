"""Lines of the user's code: those that make arrays, and those that look at their values."""

import contextvars
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from warpline.expressions import Expression

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Line(NamedTuple):
    file: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"


# The line for which this thread works, if that is another one's.
_given: contextvars.ContextVar[Line | None] = contextvars.ContextVar("line", default=None)


def current() -> Line:
    """The line outside of this package that has called it."""
    given = _given.get()
    if given is not None:
        return given
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno)


def on_behalf_of(line: Line, function: Callable[..., None], *arguments: Any) -> None:
    """Calls the function as if that line had called it. For a context of its own, as asyncio.to_thread has."""
    _given.set(line)
    function(*arguments)


def mark(x: "Expression") -> None:
    """Notes this line for an expression and for those that were made with it."""
    if x._line is not None:
        return
    line, todo = current(), [x]
    while todo:
        y = todo.pop()
        if y._line is None:
            y._line = line
            todo += y._inputs
