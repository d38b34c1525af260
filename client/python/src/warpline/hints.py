"""What to do about an error of which neither the server nor gRPC can say it in the words of this package."""

import re

import grpc

_TOO_LARGE = ("put large arrays on the server first (client.put), leave large results there (keep=True), or raise the "
              "server's --max-inline-bytes")
# Of operands together, and of results.
_ELEMENTS_TOO_LARGE = r" takes? \d+ bytes(, \d+ with those before it)?; the limit is \d+"
# Of a message that has no room in the memory that the server's gRPC has for all of them.
_BUFFERS_FULL = "Received RST_STREAM with error code 11"
_NO_ROOM = "the request is far larger than the server's --max-inline-bytes, or it has no room for large ones now"
_TOKEN = "connect's token_file= or token="


def hinted(code: grpc.StatusCode, message: str) -> str:
    """The message of an error, with what to do about it where that is known."""
    if code is grpc.StatusCode.UNAUTHENTICATED and "token" in message:
        # The server's own hint is for the command line.
        replaced = message.replace("--token-file of our clients", _TOKEN)
        return replaced if replaced != message else _with(message, _TOKEN)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "message larger than max" in message:
        return _with(message, _TOO_LARGE)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and message == _BUFFERS_FULL:
        return _with(message, f"{_NO_ROOM}: {_TOO_LARGE}")
    if code is grpc.StatusCode.INVALID_ARGUMENT and re.search(_ELEMENTS_TOO_LARGE, message):
        return _with(message, _TOO_LARGE)
    return message


def unreachable(message: str, target: str, attempts: int, seconds: float) -> str:
    """What gRPC says of a server that it could not connect to, behind a sentence that says what to do. Any other
    message is returned as it is. target: of the connection. attempts, seconds: how many have failed, in which time."""
    if "failed to connect" not in message and "resolution failed" not in message:
        return message
    tried = f" (tried {attempts} times in {seconds:.1f} s; max_retries=0 fails at once)" if attempts > 1 else ""
    if "http1.x server" in message:
        text = f"what answers at {target} speaks HTTP/1, and no gRPC{tried}: is this the metrics port?"
    elif target.startswith("unix:") and "Permission denied" in message:
        text = f"this user may not connect to {target}{tried}: a server makes its sockets for its own user only."
    elif target.startswith("unix:") or "remote host" in message:
        text = f"no server answers at {target}{tried}: start warplined there, or name another."
    else:
        text = f"cannot connect to {target}{tried}."
    return f"{text} gRPC: {message}"


def _with(message: str, hint: str) -> str:
    """Before the id of the request, with which the server ends its messages."""
    text, id = re.fullmatch(r"(.*?)( \(request [^()]*\))?", message, re.DOTALL).groups("")  # type: ignore[union-attr]
    return f"{text}: {hint}{id}"
