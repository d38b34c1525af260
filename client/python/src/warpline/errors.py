"""What a failed call raises."""

import random
from typing import Any, NamedTuple

import grpc

from warpline import hints, wire


class FieldViolation(NamedTuple):
    """What is wrong with one field of a request."""

    field: str  # its name in warpline.proto, such as "program.steps[1].inputs[0]"
    description: str  # the value, and the limit


class Error(Exception):
    """A call has failed. Codes without a class of their own, such as UNKNOWN and ABORTED, raise this one.

    Where Python has an exception of its own for it, the class is that too: `except ValueError` catches InvalidArgument,
    TimeoutError a DeadlineExceeded, ConnectionError an Unavailable.

    code: The grpc.StatusCode.
    message: The server's text, or gRPC's.
    request_id: Finds the request in the server's log.
    violations: List of FieldViolation: which fields of the request are wrong.
    retry_after: Seconds after which the same request may succeed. None if the server says nothing of that.
    answered: False if no answer of the server's has come, and the text is gRPC's. The server may have carried out
        the request all the same.
    """

    def __init__(self, code: grpc.StatusCode, message: str, request_id: str = "",
                 violations: list[FieldViolation] | None = None, retry_after: float | None = None) -> None:
        super().__init__()
        # Of more than one argument an OSError, which some of the classes are too, would make an errno and a file name.
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
    """With `retry_after`, the server is full. Without, the request is larger than the server's limit and never fits."""


class DeadlineExceeded(Error, TimeoutError):
    """The timeout passed before the result had come."""


class Unavailable(Error, ConnectionError):
    """There is no server, it is draining, or it has lost its GPU."""


class Unimplemented(Error):
    """The API has this method or field, but this server does not support it."""


class Cancelled(Error):
    """The call was cancelled, the client was closed, or the response was not read within the server's send timeout."""


class NotFound(Error):
    """There is no such resident tensor: it was never made or was dropped, its lease has ended, it was lost with its
    device, or it is another owner's."""


class FailedPrecondition(Error):
    """The resident tensor was made by another server, or by this one before it was started again, and must be put
    again. Or the operands are on devices between which the server cannot copy."""


class Unauthenticated(Error):
    """The server asks who its clients are: give connect token_file= or token=, or tls_cert= and tls_key=."""


class Internal(Error):
    """The server, or this package, has a defect."""


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

# Where the server gives no delay: UNAVAILABLE, as it restarts. Doubled from one attempt to the next. Seconds.
_FIRST_RETRY_DELAY = 0.1
# A server's gRPC 1.51 lowers the windows of its connections as messages that it receives fill its memory. Then it resets
# a stream of which more than the new window is still unread, when that ends by a frame of its own, as uploads do.
_WINDOW_WAS_LOWERED = "Received RST_STREAM with error code 1"


def from_rpc_error(error: Any, request_id: str) -> Error:
    """Of a grpc.RpcError. The details in its trailers are read by hand: generated classes of google.rpc would clash with
    those of googleapis-common-protos in protobuf's one registry of a process."""
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
        pass  # Details that cannot be read are left out.
    message = hints.hinted(error.code(), error.details() or "")
    made = of_code(error.code(), message, request_id, violations, retry_after)
    made.answered = bool(status)
    return made


def of_code(code: grpc.StatusCode, message: str, request_id: str = "", violations: list[FieldViolation] | None = None,
            retry_after: float | None = None) -> Error:
    """An error of the class that is for its code."""
    return _CLASSES.get(code, Error)(code, message, request_id, violations, retry_after)


def reworded(error: Error, message: str) -> Error:
    """The same error with another message."""
    made = of_code(error.code, message, error.request_id, error.violations, error.retry_after)
    made.answered = error.answered
    return made


def closed(request_id: str) -> Error:
    """Of a call that the client's own close ended, or that was made after it."""
    return Cancelled(grpc.StatusCode.CANCELLED, "the client is closed", request_id)


def retry_delay(error: Error, attempt: int) -> float | None:
    """Seconds to wait before the next attempt, `attempt` having failed before; None: there is to be none. Every call
    may be made again: what was begun does no harm."""
    if isinstance(error, ResourceExhausted) or error.code is grpc.StatusCode.ABORTED:
        return error.retry_after
    if not isinstance(error, Unavailable) and not _is_of_grpc_alone(error):
        return None
    if error.retry_after is not None:
        return error.retry_after  # The server has spread it.
    # Clients that a restart has cut off at one time should not all come back at one time.
    return _FIRST_RETRY_DELAY * 2 ** min(attempt, 8) * random.uniform(0.5, 1.5)


def _is_of_grpc_alone(error: Error) -> bool:
    """An error that may not come again, and that gRPC made. It says CANCELLED of a call that arrives while a server
    closes its connections; our own server, which says why it has cancelled one, is to be believed."""
    return not error.answered and (isinstance(error, Cancelled) or error.message == _WINDOW_WAS_LOWERED)


def _details(status: memoryview) -> list[tuple[str, memoryview]]:
    """google.rpc.Status.details: the name of each message, and the message."""
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
