"""A warning for NumPy functions that fetch the elements of tensors."""

import contextvars
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

# True while a function of NumPy computes on the client; what it calls does not warn. A list of one, which tells whether
# elements have been fetched; None outside of such a function.
_fetched: contextvars.ContextVar[list[bool] | None] = contextvars.ContextVar("_fetched", default=None)

_INSIDE = tuple(os.path.dirname(os.path.abspath(file)) + os.sep for file in (__file__, np.__file__))


class WarplinePerformanceWarning(UserWarning):
    """A function of NumPy, such as np.cov(t), is not computed on the server: it has fetched elements and computed
    on the client. Python shows it once for each function and line of code; `warnings.filterwarnings("error",
    category=warpline.WarplinePerformanceWarning)` makes it an error. t.numpy(), np.asarray(t) and np.array(t) are requests
    for the elements, and do not warn. Functions of other packages do not warn either: they call np.asarray."""


def call_of_numpy(function: Callable[..., Any], arguments: Any, keywords: Any) -> Any:
    """Calls a function that NumPy has given to `__array_function__`, and that no module here implements. Warns if it
    fetches elements: functions that tensors have as methods, such as np.sum, do not."""
    implementation = getattr(function, "_implementation", None)
    if implementation is None:
        return NotImplemented

    def compute(*arguments: Any, **keywords: Any) -> Any:
        try:
            return implementation(*arguments, **keywords)  # type: ignore[misc]
        except IndexError:  # of code that tells arrays from other things by their type, as that of np.piecewise
            return function(*_here(arguments), **{key: _here(value) for key, value in keywords.items()})

    return _watched(function.__name__, compute, arguments, keywords)


def call_here(function: Callable[..., Any], name: str, arguments: Any, keywords: Any) -> Any:
    """Calls a function of NumPy with the elements in place of tensors and expressions, and warns."""
    def compute() -> Any:
        try:
            fetched = _here(arguments), {key: _here(value) for key, value in keywords.items()}
        except TypeError as error:
            raise TypeError(f"numpy.{name} is not computed on the server: {error}") from None
        return function(*fetched[0], **fetched[1])

    return _watched(name, compute, (), {})


def _watched(name: str, compute: Callable[..., Any], arguments: Any, keywords: Any) -> Any:
    if _fetched.get() is not None:  # The function that called this one warns.
        return compute(*arguments, **keywords)
    fetched = [False]
    token = _fetched.set(fetched)
    try:
        result = compute(*arguments, **keywords)
    finally:
        _fetched.reset(token)
    if fetched[0]:
        # One text for each function, by which Python tells whether it has shown the warning of this line.
        warnings.warn(f"numpy.{name} is not computed on the server: it has fetched the elements, and has computed on the "
                      "client; np.asarray fetches them on purpose", WarplinePerformanceWarning, stacklevel=_callers_level())
    return result


def _callers_level() -> int:
    """The stacklevel of the code that called NumPy, for a warning of the caller of this function."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((*_INSIDE, "<__array_function__")):
        level, frame = level + 1, frame.f_back
    return level


def _here(x: Any) -> Any:
    if hasattr(x, "_apply"):
        return np.asarray(x)
    return type(x)(map(_here, x)) if type(x) in (list, tuple) else x


def note_download() -> None:
    """Call this when `__array__` has fetched the elements of a tensor or an expression."""
    fetched = _fetched.get()
    if fetched is not None:
        fetched[0] = True
