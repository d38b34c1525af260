"""The exceptions that a failed call raises."""

import enum
from typing import NamedTuple


class StatusCode(enum.Enum):
    """The codes of gRPC, with its names and numbers, such as `StatusCode.NOT_FOUND`, which is 5."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class FieldViolation(NamedTuple):
    """An error in one field of a request."""

    field: str  # name of the field in warpline.proto, such as "program.steps[1].inputs[0]"
    description: str  # the value, and the limit


class Error(Exception):
    """A call has failed. Codes without a class of their own, such as UNKNOWN and ABORTED, raise this one.

    Some classes are also subclasses of Python's own exceptions: `except ValueError` catches InvalidArgument,
    TimeoutError catches DeadlineExceeded, and ConnectionError catches Unavailable.

    code: The StatusCode.
    message: The text of the server, of gRPC or of this client.
    request_id: Finds the request in the server's log. Empty if the client refused the call.
    violations: List of FieldViolation: the fields of the request that are wrong.
    retry_after: Seconds after which the same request may succeed. None if the server gives no delay.
    answered: False if the server sent no answer, and the text is not the server's. The server may still have carried
        out the request.
    """

    def __init__(self, code: StatusCode, message: str, request_id: str = "",
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
    error also means that the operands are on devices between which the server cannot copy, or that a forked child uses
    a client of its parent or makes a client."""


class Unauthenticated(Error):
    """The server requires clients to identify themselves: give connect token_file= or token=, or tls_cert= and
    tls_key=."""


class Internal(Error):
    """The server or this package has a bug."""


_CLASSES = {
    StatusCode.INVALID_ARGUMENT: InvalidArgument,
    StatusCode.RESOURCE_EXHAUSTED: ResourceExhausted,
    StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    StatusCode.UNAVAILABLE: Unavailable,
    StatusCode.UNIMPLEMENTED: Unimplemented,
    StatusCode.CANCELLED: Cancelled,
    StatusCode.NOT_FOUND: NotFound,
    StatusCode.FAILED_PRECONDITION: FailedPrecondition,
    StatusCode.UNAUTHENTICATED: Unauthenticated,
    StatusCode.INTERNAL: Internal,
}

def of_code(code: StatusCode, message: str, request_id: str = "", violations: list[FieldViolation] | None = None,
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
    return Cancelled(StatusCode.CANCELLED, "the client is closed", request_id)
