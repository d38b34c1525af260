"""A warning for NumPy functions that fetch the elements of tensors."""

import contextvars
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

# Fetching fewer bytes takes no longer than a call: some tenths of a millisecond.
_MIN_BYTES = 1 << 20

# The sizes of what the current function of NumPy has fetched; None outside of such a function.
_fetched: contextvars.ContextVar[list[int] | None] = contextvars.ContextVar("_fetched", default=None)
_has_warned = False

# The caller of a function of NumPy, from call_of_numpy: before NumPy 1.25 there is one more frame between.
_STACK_LEVEL = 3 if np.lib.NumpyVersion(np.__version__) >= "1.25.0" else 4


class WarplinePerformanceWarning(UserWarning):
    """A function of NumPy, such as np.histogram(t), has fetched 1 MiB or more from the server to compute on the
    client. It is issued once per process. t.numpy(), np.asarray(t) and np.array(t) are requests for the elements, and do
    not warn. Functions of other packages do not warn either: they call np.asarray. Functions that tensors have as
    methods, such as np.sum, return expressions and fetch nothing."""


def call_of_numpy(function: Callable[..., Any], arguments: Any, keywords: Any) -> Any:
    """Calls a function that NumPy has given to `__array_function__`. Warns if it fetches elements."""
    global _has_warned
    implementation = getattr(function, "_implementation", None)
    if implementation is None:
        return NotImplemented
    if _fetched.get() is not None:  # The function that called this one warns.
        return implementation(*arguments, **keywords)
    sizes: list[int] = []
    token = _fetched.set(sizes)
    try:
        result = implementation(*arguments, **keywords)
    finally:
        _fetched.reset(token)
    if sum(sizes) >= _MIN_BYTES and not _has_warned:
        _has_warned = True
        warnings.warn(f"numpy.{function.__name__} has fetched {sum(sizes)} bytes from the server, and has computed on the "
                      "client: use the methods of tensors and a client's run, or np.asarray to fetch them on purpose",
                      WarplinePerformanceWarning, stacklevel=_STACK_LEVEL)
    return result


def note_download(nbytes: int) -> None:
    """Call this when `__array__` has fetched the elements of a tensor or an expression."""
    sizes = _fetched.get()
    if sizes is not None:
        sizes.append(nbytes)
