"""What a failed call raises."""

from typing import Any, NamedTuple

import grpc

from warpline import hints, wire


class FieldViolation(NamedTuple):
    """What is wrong with one field of a request, by its name in warpline.proto."""

    field: str
    description: str


class Error(Exception):
    """The call failed. Codes without a class of their own (UNKNOWN, ABORTED, ...) raise this one.

    code: grpc.StatusCode. message: the server's text, or gRPC's. request_id: finds the request in the server's
    log. violations: list of FieldViolation. retry_after: seconds after which the same request may succeed, as
    the server says; None if it says nothing. answered: False if no answer of the server's has come, and gRPC tells
    why; the server may have carried out the request all the same.

    Where Python has an exception of its own for it, the class is that too: `except ValueError` catches InvalidArgument,
    TimeoutError a DeadlineExceeded, ConnectionError an Unavailable.
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
    """A field of the request is wrong: `violations` names it. The same request cannot succeed."""


class ResourceExhausted(Error):
    """With `retry_after`: the server is full. Without: the request is larger than its limit and never fits."""


class DeadlineExceeded(Error, TimeoutError):
    """The timeout passed before the result was here."""


class Unavailable(Error, ConnectionError):
    """There is no server, it is draining, or its GPU was lost."""


class Unimplemented(Error):
    """The API has it, this server does not."""


class Cancelled(Error):
    """The call was cancelled, the client closed, or the response not read within the server's send timeout."""


class NotFound(Error):
    """There is no such resident tensor: never made, dropped, its lease over, lost with its device, or another
    owner's."""


class FailedPrecondition(Error):
    """The resident tensor was made by another server, or by this one before it was started again: put it again. Or
    operands lie on devices between which nothing is copied."""


class Unauthenticated(Error):
    """The server wants to know who its clients are: connect's token_file= or token=, or tls_cert= and tls_key=."""


class Internal(Error):
    """A defect of the server, or of this package."""


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


def from_rpc_error(error: Any, request_id: str, target: str = "") -> Error:
    """Of a grpc.RpcError. target: of the connection. The details in its trailers are read by hand: generated classes of
    google.rpc would clash with those of googleapis-common-protos in protobuf's one registry of a process."""
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
    message = hints.hinted(error.code(), error.details() or "", target)
    made = of_code(error.code(), message, request_id, violations, retry_after)
    made.answered = bool(status)
    return made


def of_code(code: grpc.StatusCode, message: str, request_id: str = "", violations: list[FieldViolation] | None = None,
            retry_after: float | None = None) -> Error:
    """An error of the class that is for its code."""
    return _CLASSES.get(code, Error)(code, message, request_id, violations, retry_after)


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
    return _FIRST_RETRY_DELAY * 2 ** min(attempt, 8) if error.retry_after is None else error.retry_after


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
