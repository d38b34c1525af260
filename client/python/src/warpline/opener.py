"""New regions for a pool: asked for, in the size that the server gives, and not asked for again too soon."""

import time
import warnings
from collections.abc import Callable
from typing import TypeVar

import grpc

from warpline import calls, errors
from warpline.connections import Connection
from warpline.links import NoRegionSocket
from warpline.regions import Region, open_region, reserve
from warpline.slices import rounded

PAGE_BYTES = 4096
# For how long the server is not asked again after it gave no region. Seconds.
_PAUSE = 1.0
_LONG_PAUSE = 10.0
# Between two questions of a client that waits for its first region.
_FIRST_GLANCE = 0.01
_LONGEST_GLANCE = 0.1

_T = TypeVar("_T")


class Opener:
    """For one thread at a time, but for what is public.

    limit: bytes of all regions, by the server; None: it is to be asked. crowded: when it was last asked for a region,
    it had no room for one of the size that was wanted.
    """

    def __init__(self, connection: Connection, path: str, warns: bool, named: bool) -> None:
        """See Pool."""
        self.limit: int | None = None
        self.crowded = False
        self._connection = connection
        self._path = path
        self._warns = warns
        self._named = named
        self._patient = True
        # The last refusal, of regions of so many bytes or more, which is believed until then.
        self._refusal: errors.Error | None = None
        self._refused_bytes = 0
        self._not_before = 0.0

    def check(self, size: int, deadline: float) -> None:
        """Sees to `limit`. errors.Error if it is known already that there is no region with so much room."""
        if self._refusal is not None and size >= self._refused_bytes and time.monotonic() < self._not_before:
            raise _again(self._refusal, f"a moment ago: {self._refusal.message}")
        if self.limit is None:
            self.limit = self._obey(lambda: self._ask_limit(deadline - time.monotonic()))

    def open(self, wanted: int, least: int, deadline: float) -> Region:
        """A region of `wanted` bytes, or, where the server has not so much, of fewer, but not fewer than `least`: both
        are multiples of PAGE_BYTES. errors.Error if there is none."""
        ticket, size = self._obey(lambda: self._ticket(wanted, least, deadline), refused_bytes=least)
        self._patient = False
        return self._obey(lambda: self._open(ticket, size, deadline), _PAUSE)

    def warn_of_no_room(self, error: errors.Error) -> None:
        """Once, as `_warn`: the server shares memory, and has none for us."""
        self._warn(f"elements travel in messages: {error.message}")

    def _ticket(self, wanted: int, least: int, deadline: float) -> tuple[str, int]:
        """Of `open`, with the size of the region. A client that has just closed has ended its connection; the server
        lets go of its memory a little later. Who has no region yet waits for that, once, for as long as the server
        says."""
        glance, patience = _FIRST_GLANCE, 0.0
        while True:
            try:
                return self._largest(wanted, least, deadline)
            except errors.ResourceExhausted as error:
                if self._patient and error.retry_after is not None:
                    self._patient = False
                    patience = min(time.monotonic() + error.retry_after, deadline)
                if time.monotonic() + glance > patience:
                    self.warn_of_no_room(error)
                    raise
            self._connection.pause(glance)
            glance = min(2 * glance, _LONGEST_GLANCE)

    def _largest(self, wanted: int, least: int, deadline: float) -> tuple[str, int]:
        """Of `wanted` bytes, half of them, and so on, as many as the server gives now."""
        size = wanted
        while True:
            try:
                ticket = reserve(self._connection, size, deadline - time.monotonic())
            except errors.ResourceExhausted:
                self.crowded = True
                if size <= least:
                    raise
            else:
                self.crowded = size < wanted
                return ticket, size
            size = max(rounded(size // 2, PAGE_BYTES), least)

    def _ask_limit(self, seconds: float) -> int:
        response, request_id = self._connection.ask(calls.INFO_METHOD, b"", seconds)
        limit = calls.decode_info(response, request_id).limits.max_region_bytes
        if limit <= 0:
            error = errors.Unimplemented(grpc.StatusCode.UNIMPLEMENTED, "the server shares no memory")
            self._warn_of_path(error)
            raise error
        return limit

    def _open(self, ticket: str, size: int, deadline: float) -> Region:
        try:
            return open_region(self._path, ticket, size, deadline)
        except (errors.Unimplemented, NoRegionSocket) as error:
            # A server that ends takes its socket away, and answers no more: then there is nothing wrong with the path.
            self._ask_limit(max(deadline - time.monotonic(), _PAUSE))
            self._warn_of_path(error)
            raise

    def _warn_of_path(self, error: errors.Error) -> None:
        """Of a socket that the caller has not named, nothing but that it may not be used."""
        if self._named or isinstance(error.__cause__, PermissionError):
            self._warn(f"regions={self._path!r} is of no use, and elements travel in messages: {error.message}")

    def _warn(self, text: str) -> None:
        if self._warns:
            self._warns = False
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def _obey(self, ask: Callable[[], _T], pause: float = 0.0, refused_bytes: int = 0) -> _T:
        """What `ask` returns. If it fails, with whatever, nobody is asked for so many seconds; more if the server
        shares no memory, or none now: then for no region of `refused_bytes` or more."""
        try:
            answer = ask()
        except errors.Error as error:
            if isinstance(error, errors.ResourceExhausted):
                pause = _PAUSE
            elif isinstance(error, errors.Unimplemented):
                pause = _LONG_PAUSE
            # Another one: this one's traceback holds the callers' arrays.
            self._refusal = _again(error, error.message)
            self._refused_bytes = refused_bytes if isinstance(error, errors.ResourceExhausted) else 0
            self._not_before, self.limit = time.monotonic() + pause, None
            raise
        self._refusal = None
        return answer


def _again(error: errors.Error, message: str) -> errors.Error:
    """An error of the same kind, of no request in particular."""
    return type(error)(error.code, message, "", error.violations, error.retry_after)
