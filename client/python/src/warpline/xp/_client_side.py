"""What the server lacks, computed by NumPy on the client where that was asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from warpline.implements import NotHere
from warpline.xp import _fallback, _sessions
from warpline.xp._arrays import Array


def computed(what: str, function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any] | None = None) -> Any:
    """The result of a function of NumPy, whose arrays become arrays of the server. Raises Refused unless
    `config(fallback="numpy")` is in force."""
    _fallback.check_wanted(NotHere(f"the server has no {what}"))
    arrays = list(arrays_in([*args, *(keywords or {}).values()]))
    session = _sessions.of(arrays)
    elements = dict(zip(map(id, arrays), session.fetch_all([x._x for x in arrays])))
    named = {name: _with_elements(x, elements) for name, x in (keywords or {}).items()}
    with np.errstate(all="ignore"):
        found = function(*[_with_elements(x, elements) for x in args], **named)
    return _sent(found, session)


def arrays_in(given: Sequence[Any]) -> Iterator[Array]:
    """The arrays among arguments, and in lists of them."""
    for x in given:
        if isinstance(x, Array):
            yield x
        elif isinstance(x, (list, tuple)):
            yield from arrays_in(x)


def _with_elements(x: Any, elements: Mapping[int, np.ndarray[Any, Any]]) -> Any:
    if isinstance(x, Array):
        return elements[id(x)]
    return type(x)(_with_elements(y, elements) for y in x) if type(x) in (list, tuple) else x


def _sent(found: Any, session: _sessions.Session) -> Any:
    if isinstance(found, (np.ndarray, np.generic)):
        return Array(session.input(np.asarray(found)), session)
    if isinstance(found, (list, tuple)):
        return tuple(_sent(x, session) for x in found)
    return found
