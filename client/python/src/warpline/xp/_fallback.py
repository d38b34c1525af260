"""Refuses what the server lacks, or computes it by NumPy if that was asked for."""

import contextvars
from typing import Any

from warpline.implements import NotHere
from warpline.xp import _lines, _profile


_fallback: contextvars.ContextVar[str | None] = contextvars.ContextVar("fallback", default=None)


class Refused(NotImplementedError):
    """The server does not compute this. `warpline.xp.config(fallback="numpy")` computes it with NumPy, on the client."""


class config:  # noqa: N801
    """Settings of this thread, or of this task of an event loop, for a while if used by `with`. fallback: "numpy" computes with NumPy, on the client, what the
    server lacks; None refuses it."""

    def __init__(self, *, fallback: str | None = None) -> None:
        if fallback not in (None, "numpy"):
            raise ValueError(f"fallback is {fallback!r}: it is None or 'numpy'")
        self._before = _fallback.get()
        _fallback.set(fallback)

    def __enter__(self) -> "config":
        return self

    def __exit__(self, *error: Any) -> None:
        _fallback.set(self._before)


def check_wanted(refusal: NotHere) -> None:
    """Raises Refused unless NumPy is to compute what the server lacks."""
    if _fallback.get() is None:
        raise Refused(f"{refusal}: xp.config(fallback='numpy') computes it on the client") from None
    _profile.note(_lines.current(), fallbacks=1)
