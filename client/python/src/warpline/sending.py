"""What every call has, of whichever client: a target, a deadline, an id, and attempts."""

import ipaddress
import math
import re
import time
import uuid
from collections.abc import Sequence
from typing import Any

from warpline import errors

_DEFAULT_PORT = 50051


def check_timeout(timeout: float) -> float:
    """Seconds. ValueError unless it is above zero and finite: every call has a deadline."""
    if not 0 < timeout < math.inf:
        raise ValueError(f"timeout is {timeout}: seconds above zero, and finite")
    return timeout


def check_request_id(request_id: str | None) -> str:
    """A new one for None. ValueError for what cannot be sent."""
    if request_id is None:
        return uuid.uuid4().hex
    if not 1 <= len(request_id) <= 128 or not all(" " < character <= "~" for character in request_id):
        raise ValueError(f"request_id is {request_id!r}: 1 to 128 printable ASCII characters without spaces")
    return request_id


def check_target(target: str) -> str:
    """A host with the default port if it has none; names with a scheme of gRPC's (unix:, dns:) as they are.
    ValueError for a URL."""
    if re.match(r"[a-z]*(http|grpc)s?://", target, re.IGNORECASE):
        raise ValueError(f"the target is {target!r}: host:port, without a scheme of the web's")
    if re.fullmatch(r"[\w.-]+|\[[^\]]*\]", target):
        return f"{target}:{_DEFAULT_PORT}"
    try:
        return f"[{ipaddress.IPv6Address(target)}]:{_DEFAULT_PORT}"
    except ValueError:
        return target


def channel_options(target: str, options: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Ours for a channel to a checked target, then the caller's."""
    ours = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    # gRPC obeys $http_proxy for every TCP target; no proxy can reach our own loopback.
    if target.startswith(("127.", "localhost:", "[::1]:", "unix:")):
        ours.append(("grpc.enable_http_proxy", 0))
    return [*ours, *options]


class Attempts:
    """The attempts of one call: until when they may last, and whether there is another after a failure.

    request_id: what all of them bear. metadata: for gRPC. failed: how many there have been.
    """

    def __init__(self, deadline: float, max_retries: int, request_id: str) -> None:
        """deadline: of time.monotonic."""
        self.request_id = request_id
        self.metadata = (("x-request-id", request_id),)
        self.failed = 0
        self._deadline = deadline
        self._max_retries = max_retries

    def left(self) -> float:
        """Seconds for the attempt that begins now."""
        return max(self._deadline - time.monotonic(), 0.0)

    @property
    def may_retry(self) -> bool:
        """There would be another attempt, for some reasons to fail."""
        return self.failed < self._max_retries

    def delay_after(self, rpc_error: Any) -> float:
        """Seconds to wait before the next attempt. Raises the error if there is to be none."""
        error = errors.from_rpc_error(rpc_error, self.request_id)
        delay = errors.retry_delay(error, self.failed) if self.may_retry else None
        if delay is None or time.monotonic() + delay >= self._deadline:
            raise error from None
        self.failed += 1
        return delay
