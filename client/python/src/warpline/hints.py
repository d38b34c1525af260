"""Advice for errors: the server and gRPC do not know the argument names of this package."""

import re

from warpline.errors import StatusCode

_TOO_LARGE = ("put large arrays on the server first (client.put), leave large results there (keep=True), or raise the "
              "server's --max-inline-bytes")
# The server's message if the operands together, or the results, are too large.
_ELEMENTS_TOO_LARGE = r" takes? \d+ bytes(, \d+ with those before it)?; the limit is \d+"
# gRPC's message if the server's gRPC has no memory left for a message.
_BUFFERS_FULL = "Received RST_STREAM with error code 11"
_NO_ROOM = "the request is far larger than the server's --max-inline-bytes, or it has no room for large ones now"
# gRPC's messages for answers of nginx to a body that is too large for it, and to a call that takes too long.
_REFUSED = ("Received http2 header with status: 413", "Received RST_STREAM with error code 0")
_REFUSED_BY = "a proxy refuses requests of this size; nginx takes them with client_max_body_size 0"
_ENDED, _ENDED_BY = "Received RST_STREAM with error code 2", "a proxy has ended the call; nginx waits for grpc_read_timeout"
_TOKEN = "connect's token_file= or token="


def hinted(code: StatusCode, message: str) -> str:
    """The message of an error, with advice if there is any."""
    if code is StatusCode.UNAUTHENTICATED and "token" in message:
        # The server's own hint is for the command line.
        replaced = message.replace("--token-file of our clients", _TOKEN)
        return replaced if replaced != message else _with(message, _TOKEN)
    if code is StatusCode.RESOURCE_EXHAUSTED and "message larger than max" in message:
        return _with(message, _TOO_LARGE)
    if code is StatusCode.RESOURCE_EXHAUSTED and message == _BUFFERS_FULL:
        return _with(message, f"{_NO_ROOM}: {_TOO_LARGE}")
    if message in _REFUSED:
        return _with(message, _REFUSED_BY)
    if message == _ENDED:
        return _with(message, _ENDED_BY)
    if code is StatusCode.INVALID_ARGUMENT and re.search(_ELEMENTS_TOO_LARGE, message):
        return _with(message, _TOO_LARGE)
    return message


def unreachable(message: str, target: str, attempts: int, seconds: float) -> str:
    """Puts a sentence of advice before gRPC's message about a server that it could not connect to. Returns any other
    message unchanged. target: target of the connection. attempts, seconds: number of failed attempts, and their total
    time."""
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
    """Inserts a hint before the request id, with which the server ends its messages."""
    text, id = re.fullmatch(r"(.*?)( \(request [^()]*\))?", message, re.DOTALL).groups("")  # type: ignore[union-attr]
    return f"{text}: {hint}{id}"
