"""Opens regions for a pool, as large as the server allows. After a refusal, it waits before it asks again."""

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
# Pauses before the server is asked again after it refused a region, in seconds.
_PAUSE = 1.0
_LONG_PAUSE = 10.0
# Polling interval of a client that waits for its first region, in seconds: first and longest.
_FIRST_GLANCE = 0.01
_LONGEST_GLANCE = 0.1

_T = TypeVar("_T")


class Opener:
    """Opens regions. Only one thread at a time may call it; any thread may read the public attributes.

    limit: the server's limit for all regions, in bytes; None: the server must be asked. crowded: true if the server had
    no room for the requested size at the last request.
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
        # The last refusal. It holds for regions of at least _refused_bytes, until _not_before.
        self._refusal: errors.Error | None = None
        self._refused_bytes = 0
        self._not_before = 0.0

    def check(self, size: int, deadline: float) -> None:
        """Makes sure that `limit` is known. Raises errors.Error if a recent refusal covers regions of `size` bytes."""
        if self._refusal is not None and size >= self._refused_bytes and time.monotonic() < self._not_before:
            raise _again(self._refusal, f"a moment ago: {self._refusal.message}")
        if self.limit is None:
            self.limit = self._obey(lambda: self._ask_limit(deadline - time.monotonic()))

    def open(self, wanted: int, least: int, deadline: float) -> Region:
        """Opens a region of `wanted` bytes. If the server has less, opens a smaller region of at least `least` bytes.
        Both are multiples of PAGE_BYTES. Raises errors.Error if there is no region."""
        ticket, size = self._obey(lambda: self._ticket(wanted, least, deadline), refused_bytes=least)
        self._patient = False
        return self._obey(lambda: self._open(ticket, size, deadline), _PAUSE)

    def warn_of_no_room(self, error: errors.Error) -> None:
        """Warns once that the server shares memory, but has none left for this client."""
        self._warn(f"elements travel in messages: {error.message}")

    def _ticket(self, wanted: int, least: int, deadline: float) -> tuple[str, int]:
        """The ticket for `open`, and the size of the region. The server releases the memory of a client a little after
        the client has closed. A client without a region waits for this once, as long as the server says."""
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
        """Asks for a region of `wanted` bytes, then half, and so on down to `least`, until the server agrees."""
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
            # A server that shuts down removes its socket, and no longer answers: then _ask_limit raises, and the path
            # is not to blame.
            self._ask_limit(max(deadline - time.monotonic(), _PAUSE))
            self._warn_of_path(error)
            raise

    def _warn_of_path(self, error: errors.Error) -> None:
        """Warns about the region socket. If the caller did not give the path, warns only about missing permission."""
        if self._named or isinstance(error.__cause__, PermissionError):
            self._warn(f"regions={self._path!r} is of no use, and elements travel in messages: {error.message}")

    def _warn(self, text: str) -> None:
        if self._warns:
            self._warns = False
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def _obey(self, ask: Callable[[], _T], pause: float = 0.0, refused_bytes: int = 0) -> _T:
        """Runs `ask` and returns its result. After any failure, the server is not asked again for `pause` seconds, or
        longer if it shares no memory or has none now. In the last case, this holds for regions of at least
        `refused_bytes`."""
        try:
            answer = ask()
        except errors.Error as error:
            if isinstance(error, errors.ResourceExhausted):
                pause = _PAUSE
            elif isinstance(error, errors.Unimplemented):
                pause = _LONG_PAUSE
            # A copy: the traceback of `error` would keep the callers' arrays alive.
            self._refusal = _again(error, error.message)
            self._refused_bytes = refused_bytes if isinstance(error, errors.ResourceExhausted) else 0
            self._not_before, self.limit = time.monotonic() + pause, None
            raise
        self._refusal = None
        return answer


def _again(error: errors.Error, message: str) -> errors.Error:
    """Copies an error, without a request id."""
    return type(error)(error.code, message, "", error.violations, error.retry_after)
