"""What to do about an error that the server cannot put into the words of this package."""

import re

import grpc

_TOO_LARGE = ("put large arrays on the server first (client.put), leave large results there (keep=True), or raise the "
              "server's --max-inline-bytes")
# Of operands together, and of results.
_ELEMENTS_TOO_LARGE = r" takes? \d+ bytes(, \d+ with those before it)?; the limit is \d+"
_TOKEN = "connect's token_file= or token="


def hinted(code: grpc.StatusCode, message: str, target: str) -> str:
    """The message of an error, with what to do about it where that is known. target: of the connection."""
    if code is grpc.StatusCode.UNAUTHENTICATED and "token" in message:
        # The server's own hint is for the command line.
        replaced = message.replace("--token-file of our clients", _TOKEN)
        return replaced if replaced != message else _with(message, _TOKEN)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "message larger than max" in message:
        return _with(message, _TOO_LARGE)
    if code is grpc.StatusCode.INVALID_ARGUMENT and re.search(_ELEMENTS_TOO_LARGE, message):
        return _with(message, _TOO_LARGE)
    if code is grpc.StatusCode.FAILED_PRECONDITION and re.search(r"\btensor \S+ was made by server", message):
        return _with(message, "the server was started again, or this is another one: put the tensor again")
    # What may be wrong with TLS is in the way of TCP only.
    if code is grpc.StatusCode.UNAVAILABLE and target.startswith("unix:") and "failed to connect" in message:
        return f"no server answers at {target} (gRPC: {message})"
    return message


def _with(message: str, hint: str) -> str:
    """Before the id of the request, with which the server ends its messages."""
    text, id = re.fullmatch(r"(.*?)( \(request [^()]*\))?", message, re.DOTALL).groups("")  # type: ignore[union-attr]
    return f"{text}: {hint}{id}"
