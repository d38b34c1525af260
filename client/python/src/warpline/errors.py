"""The exceptions that a failed call raises."""

import random
from typing import Any, NamedTuple

import grpc

from warpline import hints, wire


class FieldViolation(NamedTuple):
    """An error in one field of a request."""

    field: str  # name of the field in warpline.proto, such as "program.steps[1].inputs[0]"
    description: str  # the value, and the limit


class Error(Exception):
    """A call has failed. Codes without a class of their own, such as UNKNOWN and ABORTED, raise this one.

    Some classes are also subclasses of Python's own exceptions: `except ValueError` catches InvalidArgument,
    TimeoutError catches DeadlineExceeded, and ConnectionError catches Unavailable.

    code: The grpc.StatusCode.
    message: The server's text, or gRPC's.
    request_id: Finds the request in the server's log.
    violations: List of FieldViolation: the fields of the request that are wrong.
    retry_after: Seconds after which the same request may succeed. None if the server gives no delay.
    answered: False if the server sent no answer, and the text is gRPC's. The server may still have carried out the
        request.
    """

    def __init__(self, code: grpc.StatusCode, message: str, request_id: str = "",
                 violations: list[FieldViolation] | None = None, retry_after: float | None = None) -> None:
        super().__init__()
        # Some of the classes are OSErrors, whose constructor takes several arguments as errno and file name.
        self.args = (code, message, request_id, violations, retry_after)
        self.code = code
        self.message = message
        self.request_id = request_id
        self.violations = violations or []
        self.retry_after = retry_after
        self.answered = True

    def __str__(self) -> str:
        text = f"{self.code.name}: {self.message}"
        return text if not self.request_id or self.request_id in text else f"{text} (request {self.request_id})"


class InvalidArgument(Error, ValueError):
    """A field of the request is wrong, and `violations` names it. Sending the same request again cannot succeed."""


class ResourceExhausted(Error):
    """With `retry_after`, the server is full. Without it, the request exceeds the server's limit and never fits."""


class DeadlineExceeded(Error, TimeoutError):
    """The timeout expired before the result arrived."""


class Unavailable(Error, ConnectionError):
    """No server answers, or the server is draining or has lost its GPU."""


class Unimplemented(Error):
    """The API has this method or field, but this server does not support it."""


class Cancelled(Error):
    """The call was cancelled, the client was closed, or the response was not read within the server's send timeout."""


class NotFound(Error):
    """There is no such resident tensor. It never existed, was dropped, its lease has ended, it was lost with its
    device, or it belongs to another owner."""


class FailedPrecondition(Error):
    """The resident tensor was made by another server, or by this server before a restart. Put the tensor again. This
    error also means that the operands are on devices between which the server cannot copy."""


class Unauthenticated(Error):
    """The server requires clients to identify themselves: give connect token_file= or token=, or tls_cert= and
    tls_key=."""


class Internal(Error):
    """The server or this package has a bug."""


_CLASSES = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgument,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhausted,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.UNIMPLEMENTED: Unimplemented,
    grpc.StatusCode.CANCELLED: Cancelled,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPrecondition,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.INTERNAL: Internal,
}

# First delay in seconds after UNAVAILABLE if the server gives none, for example while it restarts. Each further
# delay is twice as long.
_FIRST_RETRY_DELAY = 0.1
# gRPC 1.51 in a server lowers the windows of its connections as received messages fill its memory. It then resets a
# stream that has more unread bytes than the new window and ends with a separate frame. Uploads end that way.
_WINDOW_WAS_LOWERED = "Received RST_STREAM with error code 1"


def from_rpc_error(error: Any, request_id: str) -> Error:
    """Converts a grpc.RpcError. The details in its trailers are parsed by hand: generated classes of google.rpc would
    clash with those of googleapis-common-protos, because protobuf has one registry per process."""
    violations: list[FieldViolation] = []
    retry_after = None
    trailers = {key: value for key, value in error.trailing_metadata() or ()}
    status = trailers.get("grpc-status-details-bin", b"")
    try:
        for name, detail in _details(memoryview(status)):
            if name == "google.rpc.BadRequest":
                violations += _violations(detail)
            elif name == "google.rpc.RetryInfo":
                retry_after = _retry_delay(detail)
            elif name == "google.rpc.RequestInfo":
                request_id = _texts(detail).get(1) or request_id
    except ValueError:
        pass  # Details that cannot be parsed are left out.
    message = hints.hinted(error.code(), error.details() or "")
    made = of_code(error.code(), message, request_id, violations, retry_after)
    made.answered = bool(status)
    return made


def of_code(code: grpc.StatusCode, message: str, request_id: str = "", violations: list[FieldViolation] | None = None,
            retry_after: float | None = None) -> Error:
    """Makes an error of the class for `code`."""
    return _CLASSES.get(code, Error)(code, message, request_id, violations, retry_after)


def reworded(error: Error, message: str) -> Error:
    """Copies an error with another message."""
    made = of_code(error.code, message, error.request_id, error.violations, error.retry_after)
    made.answered = error.answered
    return made


def closed(request_id: str) -> Error:
    """The error of a call that the client's close ended, or that was made after close."""
    return Cancelled(grpc.StatusCode.CANCELLED, "the client is closed", request_id)


def retry_delay(error: Error, attempt: int) -> float | None:
    """Seconds to wait before the next attempt, after `attempt` earlier failures. None: do not retry. Every call is safe
    to retry: a partly executed call does no harm."""
    if isinstance(error, ResourceExhausted) or error.code is grpc.StatusCode.ABORTED:
        return error.retry_after
    if not isinstance(error, Unavailable) and not _is_of_grpc_alone(error):
        return None
    if error.retry_after is not None:
        return error.retry_after  # The server has already added jitter.
    # Jitter: clients that a restart disconnected together should not all return at the same time.
    return _FIRST_RETRY_DELAY * 2 ** min(attempt, 8) * random.uniform(0.5, 1.5)


def _is_of_grpc_alone(error: Error) -> bool:
    """True for an error that gRPC made, not the server, and that a retry may avoid. gRPC reports CANCELLED for a call
    that arrives while a server closes its connections. A CANCELLED from the server itself is final."""
    return not error.answered and (isinstance(error, Cancelled) or error.message == _WINDOW_WAS_LOWERED)


def _details(status: memoryview) -> list[tuple[str, memoryview]]:
    """Parses google.rpc.Status.details: the name of each message, and the message."""
    details = []
    for number, value in wire.fields(status):
        if number != 3:
            continue
        any_fields = {n: wire.submessage(v) for n, v in wire.fields(wire.submessage(value))}
        url = str(any_fields.get(1, b""), "utf-8")
        details.append((url.rpartition("/")[2], any_fields.get(2, status[:0])))
    return details


def _texts(message: memoryview) -> dict[int, str]:
    return {n: str(v, "utf-8") for n, v in wire.fields(message) if not isinstance(v, int)}


def _violations(bad_request: memoryview) -> list[FieldViolation]:
    texts = [_texts(wire.submessage(v)) for n, v in wire.fields(bad_request) if n == 1]
    return [FieldViolation(t.get(1, ""), t.get(2, "")) for t in texts]


def _retry_delay(retry_info: memoryview) -> float:
    delay = 0.0
    for number, value in wire.fields(retry_info):
        if number == 1:
            duration = {n: wire.integer(v) for n, v in wire.fields(wire.submessage(value)) if n in (1, 2)}
            delay = duration.get(1, 0) + duration.get(2, 0) / 1e9
    return max(delay, 0.0)
