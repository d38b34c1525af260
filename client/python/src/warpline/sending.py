"""The parts that calls of both clients share: a target, a deadline, an id, and attempts."""

import ipaddress
import math
import numbers
import operator
import os
import re
import time
import uuid
from collections.abc import Sequence
from typing import Any

import grpc

from warpline import errors, hints

_DEFAULT_PORT = 50051
HEALTH_METHOD = "/grpc.health.v1.Health/Check"

# Default number of retries of a call. With the delays of errors.retry_delay they take about 6.3 seconds, enough for a
# server to restart.
MAX_RETRIES = 6
# First and longest delay before gRPC reconnects, in milliseconds. gRPC's defaults, 1 s to 2 min, exceed the retries of
# a call: the call would fail although the server is back.
_FIRST_RECONNECT_MS = 100
_LONGEST_RECONNECT_MS = 1000


def check_timeout(timeout: float) -> float:
    """Checks a timeout in seconds. Raises TypeError unless it is a number, and ValueError unless it is above zero and
    finite: every call has a deadline."""
    if not isinstance(timeout, numbers.Real):
        raise TypeError(f"timeout is {timeout!r}: a number of seconds")
    if not 0 < timeout < math.inf:
        raise ValueError(f"timeout is {timeout}: seconds above zero, and finite")
    return timeout


def check_max_retries(max_retries: int) -> int:
    """Checks max_retries. Raises TypeError unless it is an integer, and ValueError if it is below zero."""
    try:
        count = operator.index(max_retries)
    except TypeError:
        raise TypeError(f"max_retries is {max_retries!r}: an integer, 0 or more") from None
    if count < 0:
        raise ValueError(f"max_retries is {count}: 0 or more")
    return count


def check_request_id(request_id: str | None) -> str:
    """Checks a request id; makes a new id for None. Raises ValueError for an id that cannot be sent."""
    if request_id is None:
        return uuid.uuid4().hex
    if not 1 <= len(request_id) <= 128 or not all(" " < character <= "~" for character in request_id):
        raise ValueError(f"request_id is {request_id!r}: 1 to 128 printable ASCII characters without spaces")
    return request_id


def check_target(target: str) -> str:
    """Checks a target. Adds the default port to a host without one. Returns names with a gRPC scheme (unix:, dns:)
    unchanged. Raises ValueError for "", a URL, an invalid port, and a socket path without its scheme."""
    if not target:
        raise ValueError("the target is '': host:port")
    if re.match(r"[a-z]*(http|grpc)s?://", target, re.IGNORECASE):
        raise ValueError(f"the target is {target!r}: host:port, without a scheme of the web's")
    if "/" in target.partition(":")[0]:
        raise ValueError(f"the target is {target!r}: expected unix:{target} for a unix socket, or host:port")
    if re.fullmatch(r"[\w.-]+|\[[^\]]*\]", target):
        return f"{target}:{_DEFAULT_PORT}"
    try:
        return f"[{ipaddress.IPv6Address(target)}]:{_DEFAULT_PORT}"
    except ValueError:
        pass
    # gRPC would truncate a port that is too large, and use 0 for a missing port.
    port = re.fullmatch(r".*:(\d*)", target)
    if port and not target.startswith("unix") and not 1 <= int(port[1] or 0) <= 65535:
        raise ValueError(f"the target is {target!r}: host:port, with a port from 1 to 65535")
    # For a port that is not a number, gRPC would use 0 or the leading digits. It knows the service names http and
    # https, and schemes as in dns:host.
    host = r"(?!(unix|unix-abstract|dns|ipv4|ipv6|vsock|xds):)([\w.-]+|\[[^\]]*\])"
    if not port and re.fullmatch(host + r":(?!https?$)[^/,]*", target):
        raise ValueError(f"the target is {target!r}: host:port, with a port from 1 to 65535")
    return target


def channel_options(target: str, options: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Merges the default options of a channel with the caller's. The caller may override all of them except
    grpc.enable_retries."""
    ours = {"grpc.max_send_message_length": -1, "grpc.max_receive_message_length": -1,
            "grpc.initial_reconnect_backoff_ms": _FIRST_RECONNECT_MS,
            "grpc.max_reconnect_backoff_ms": _LONGEST_RECONNECT_MS}
    # gRPC uses $http_proxy for every TCP target, but no proxy can reach this host's loopback.
    if target.startswith(("127.", "localhost:", "[::1]:", "unix:")):
        ours["grpc.enable_http_proxy"] = 0
    # gRPC's own retries would send the same bytes again, with the same call number in shared memory. The ends of the
    # two attempts could not be distinguished, and the first attempt may end last.
    # Each option appears once: with duplicates, gRPC takes the first or the last.
    return list({**ours, **dict(options), "grpc.enable_retries": 0}.items())


def check_token(token: str | None, token_file: str | None) -> str:
    """The token from these two arguments of `connect`; "" if there is none. Raises ValueError for an invalid token."""
    if token is not None and token_file is not None:
        raise ValueError("token and token_file are given: one of the two")
    if token is None:
        path = os.environ.get("WARPLINE_TOKEN_FILE", "") if token_file is None else os.fspath(token_file)
        if not path:
            return ""
        try:
            with open(path, encoding="ascii") as file:
                token = file.read().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"token_file is {path!r}: {error}") from None
    # Errors are logged, so the message must not contain the token.
    if not re.fullmatch(r"[!-~]+", token):
        raise ValueError(f"token has {len(token)} characters: one or more, printable ASCII without spaces")
    return token


class Attempts:
    """The attempts of one call. Knows their deadline, and decides if another attempt follows a failure.

    request_id: id of the request in all attempts. metadata: for gRPC. failed: number of failed attempts.
    """

    def __init__(self, deadline: float, max_retries: int, request_id: str, token: str, target: str) -> None:
        """deadline: on the clock time.monotonic. token: "" for none. target: target of the call, for errors."""
        self.request_id = request_id
        authorization = (("authorization", f"Bearer {token}"),) if token else ()
        self.metadata = (("x-request-id", request_id), *authorization)
        self.failed = 0
        self._begun = time.monotonic()
        self._deadline = deadline
        self._max_retries = max_retries
        self._target = target

    def left(self) -> float:
        """Seconds left for the attempt that begins now."""
        return max(self._deadline - time.monotonic(), 0.0)

    @property
    def may_retry(self) -> bool:
        """True if another attempt may follow, depending on the error."""
        return self.failed < self._max_retries

    def error_of(self, rpc_error: Any) -> errors.Error:
        """Converts the grpc.RpcError of an attempt."""
        return errors.from_rpc_error(rpc_error, self.request_id)

    def delay_for(self, error: errors.Error) -> float | None:
        """Seconds to wait before the next attempt, if this one failed with `error`; None: no further attempt."""
        delay = errors.retry_delay(error, self.failed) if self.may_retry else None
        return delay if delay is not None and time.monotonic() + delay < self._deadline else None

    def delay_after(self, error: errors.Error) -> float:
        """Counts a failure. Returns the seconds to wait before the next attempt. If there is none, raises the error. If
        gRPC could not connect, the message describes all attempts."""
        delay = self.delay_for(error)
        if delay is None:
            raise self._last(error) from None
        self.failed += 1
        return delay

    def _last(self, error: errors.Error) -> errors.Error:
        if error.answered or error.code is not grpc.StatusCode.UNAVAILABLE:
            return error
        seconds = time.monotonic() - self._begun
        message = hints.unreachable(error.message, self._target, self.failed + 1, seconds)
        return error if message == error.message else errors.reworded(error, message)
