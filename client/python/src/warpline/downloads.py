"""A warning for NumPy functions that fetch the elements of tensors."""

import contextvars
import warnings
from collections.abc import Callable
from typing import Any

# Fetching fewer bytes takes no longer than a call: some tenths of a millisecond.
_MIN_BYTES = 1 << 20

_is_in_function = contextvars.ContextVar("_is_in_function", default=False)
_has_warned = False


class WarplinePerformanceWarning(UserWarning):
    """A function of NumPy, such as np.concatenate([t, t]), has fetched 1 MiB or more from the server to compute on the
    client. It is issued once per process. t.numpy(), np.asarray(t) and np.array(t) are requests for the elements, and do
    not warn. Functions of other packages do not warn either: they call np.asarray. Functions that tensors have as
    methods, such as np.sum, return expressions and fetch nothing."""


def call_of_numpy(function: Callable[..., Any], arguments: Any, keywords: Any) -> Any:
    """Calls a function that NumPy has given to `__array_function__`. Warns if it fetches elements."""
    implementation = getattr(function, "_implementation", None)
    if implementation is None:
        return NotImplemented
    token = _is_in_function.set(True)
    try:
        return implementation(*arguments, **keywords)
    finally:
        _is_in_function.reset(token)


def note_download(nbytes: int) -> None:
    """Call this when NumPy asks for the elements of a tensor or an expression."""
    global _has_warned
    if not _is_in_function.get() or nbytes < _MIN_BYTES or _has_warned:
        return
    _has_warned = True
    warnings.warn(f"a function of NumPy fetches {nbytes} bytes from the server, and computes on the client: use the "
                  "methods of tensors and a client's run, or np.asarray to fetch them on purpose",
                  WarplinePerformanceWarning, stacklevel=5)
