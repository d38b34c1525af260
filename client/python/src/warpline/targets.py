"""Checks the arguments of connect and of calls that say where to and how long."""

import ipaddress
import math
import numbers
import operator
import os
import random
import re
from typing import Literal

from warpline import core
from warpline._core import lib

_DEFAULT_PORT = 50051
_MAX_CHANNELS = 64

# Default number of retries of a call. With the delays of the library they take about 6.3 seconds, enough for a server
# to restart.
MAX_RETRIES = 6

# Selects whether elements travel in memory that is shared with the server.
Mode = Literal["auto", "always", "never"]

# Default size of a client's pool, in bytes.
POOL_BYTES = 2 << 30
# Ordinary arrays of fewer bytes travel in messages.
_SMALL_BYTES = 128 << 10


# Ids need not be secret. A forked child must not repeat its parent's.
_random = random.Random()
os.register_at_fork(after_in_child=_random.seed)


def check_timeout(timeout: float) -> float:
    """Checks a timeout in seconds. Raises TypeError unless it is a number, and ValueError unless it is above zero and
    finite: every call has a deadline."""
    if not isinstance(timeout, numbers.Real):
        raise TypeError(f"timeout is {timeout!r}: a number of seconds")
    if not 0 < timeout < math.inf:
        raise ValueError(f"timeout is {timeout}: seconds above zero, and finite")
    if not 1e-9 <= timeout <= 1e9:
        raise ValueError(f"timeout is {timeout}: 1e-9 to 1e9 seconds")
    return timeout


def check_max_retries(max_retries: int) -> int:
    """Checks max_retries. Raises TypeError unless it is an integer, and ValueError if it is below zero."""
    try:
        count = operator.index(max_retries)
    except TypeError:
        raise TypeError(f"max_retries is {max_retries!r}: an integer, 0 or more") from None
    if not 0 <= count < 1 << 31:
        raise ValueError(f"max_retries is {count}: 0 or more, below 2^31")
    return count


def check_request_id(request_id: str | None) -> str:
    """Checks a request id; makes a new id for None. Raises ValueError for an id that cannot be sent."""
    if request_id is None:
        return f"{_random.getrandbits(128):032x}"
    if not 1 <= len(request_id) <= 128 or not all(" " < character <= "~" for character in request_id):
        raise ValueError(f"request_id is {request_id!r}: 1 to 128 printable ASCII characters without spaces")
    return request_id


def given_or_usual(target: str | None) -> str:
    """The target that is given, or else $WARPLINE_SERVER. Raises ValueError if there is neither."""
    if target is None:
        target = os.environ.get("WARPLINE_SERVER", "")
        if not target:
            raise ValueError("no server is given, and $WARPLINE_SERVER is not set: connect(\"host:port\"), or set the "
                             "variable")
    return target


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


def check_channels(channels: int | None) -> int:
    """Checks a number of channels, and makes 0 of None: as many as suit the size. Raises ValueError if it is out of
    range."""
    if channels is None:
        return 0
    if not 1 <= channels <= _MAX_CHANNELS:
        raise ValueError(f"channels is {channels}: 1 to {_MAX_CHANNELS}")
    return channels


def tls_files(target: str, tls_ca: str | None, tls_cert: str | None, tls_key: str | None) -> dict[str, str]:
    """The paths of PEM files from these arguments of `connect`, or else from the environment; "" for none."""
    # A unix socket cannot be intercepted, and the server does not use TLS there.
    if target.startswith(("unix:", "unix-abstract:")):
        return {}
    given = {"tls_ca": tls_ca, "tls_cert": tls_cert, "tls_key": tls_key}
    return {name: os.environ.get(f"WARPLINE_{name.upper()}", "") if path is None else os.fspath(path)
            for name, path in given.items()}


def region_socket(target: str, mode: str, regions: str | None) -> str | None:
    """The path of the server's region socket; None: no memory is shared. Raises ValueError for arguments that
    contradict each other."""
    if mode not in ("auto", "always", "never"):
        raise ValueError(f"shared_memory is {mode!r}; there are auto, always, never")
    if mode == "never":
        return None
    unix = re.fullmatch(r"unix:(?://(?=/))?(.+)", target)
    path = regions if regions is not None else f"{unix[1]}.regions" if unix else None
    if mode == "always" and path is None:
        raise ValueError(f"shared_memory is 'always', but {target!r} is no unix socket: give the server's, regions=")
    return path


def check_pool_bytes(pool_bytes: int) -> int:
    """Checks pool_bytes. Raises TypeError unless it is an integer, and ValueError unless it is above zero."""
    try:
        count = operator.index(pool_bytes)
    except TypeError:
        raise TypeError(f"pool_bytes is {pool_bytes!r}: a number of bytes, such as 1 << 30") from None
    if not 0 < count < 1 << 63:
        raise ValueError(f"pool_bytes is {count}: bytes, above zero and below 2^63")
    return count


def usual_channels(channels: int | None) -> int:
    """The argument of `connect`, or what $WARPLINE_CHANNELS says. Raises ValueError for anything but 1 to 64."""
    named = os.environ.get("WARPLINE_CHANNELS", "")
    if channels is None and named:
        if not named.isdecimal() or not 1 <= int(named) <= _MAX_CHANNELS:
            raise ValueError(f"$WARPLINE_CHANNELS is {named!r}: 1 to {_MAX_CHANNELS}")
        return int(named)
    return check_channels(channels)


def connection(target: str, timeout: float, max_retries: int, tls_ca: str | None, tls_cert: str | None,
               tls_key: str | None, token: str | None, token_file: str | None, shared_memory: Mode,
               regions: str | None, pool_bytes: int, own_connection: bool, channels: int | None) -> core.Connection:
    """The connection of a client with these arguments of `connect`."""
    path = region_socket(target, shared_memory, regions)
    pool_bytes = check_pool_bytes(pool_bytes)
    sharing = lib.WARPLINE_SHARED_EXPLICIT
    if path is not None:
        sharing = lib.WARPLINE_SHARED_ALWAYS if shared_memory == "always" else lib.WARPLINE_SHARED_AUTO
    return core.Connection(
        check_target(target), check_timeout(timeout), max_retries=check_max_retries(max_retries),
        token=check_token(token, token_file), region_socket=regions, shared_memory=sharing, pool_bytes=pool_bytes,
        share_from_bytes=_SMALL_BYTES, own_connection=own_connection, channels=usual_channels(channels),
        **tls_files(target, tls_ca, tls_cert, tls_key))
