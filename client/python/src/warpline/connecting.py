"""How clients are made."""

from typing import Any

from warpline import targets
from warpline.client import Client
from warpline.targets import MAX_RETRIES, POOL_BYTES, Mode


def connect(target: str | None = None, *, timeout: float = 60.0, max_retries: int = MAX_RETRIES,
            tls_ca: str | None = None, tls_cert: str | None = None, tls_key: str | None = None,
            token: str | None = None, token_file: str | None = None,
            shared_memory: Mode = "auto", regions: str | None = None,
            pool_bytes: int = POOL_BYTES, own_connection: bool = False, reproducible: bool = False,
            channels: int | None = None) -> Client:
    """Makes a client of the server at `target`. The first call opens the connection.

    target: "host:port", "host" (port 50051), "unix:/path", or anything else that gRPC resolves. None: $WARPLINE_SERVER.
        Raises ValueError if that is unset or empty, and for a URL, an invalid port, and a path without "unix:".
    timeout: Seconds that a call may take if it does not give its own timeout.
    max_retries: Maximum number of retries of a call; 0: none. A call is retried after Unavailable, for example while a
        server restarts. It is retried after ResourceExhausted and ABORTED if the server gives a delay, after an upload
        that the server's gRPC reset, and after a Cancelled that no server sent. The first wait is the delay that the
        server gives, or else about 0.1 s. Each further wait is twice as long, up to 4 s if the server gives delays: 6
        retries take about 6.3 s. The client never waits beyond the timeout.
    tls_ca: Path of a PEM file with the CAs that may have signed the server's certificate. None: $WARPLINE_TLS_CA. If
        the variable is empty too, the client does not use TLS. Raises ValueError if a file cannot be used. A target
        unix:/path never uses TLS.
    tls_cert: Path of a PEM file with the client's certificate, for servers that require one. None: $WARPLINE_TLS_CERT.
    tls_key: Path of a PEM file with the private key of that certificate. None: $WARPLINE_TLS_KEY.
    token: A token that identifies this client, for servers that require one. The client sends it with every call.
        Without TLS, anyone between client and server can read the token.
    token_file: Path of a file with the token. None, if there is no `token` either: $WARPLINE_TOKEN_FILE.
    shared_memory: Selects whether elements travel in memory that is shared with the server. "auto": they do if the
        target is unix:/path or `regions` is given, and if the server shares memory. Elements that do not fit there
        travel in messages. "always": an error if memory cannot be shared (ValueError here; Unimplemented and
        ResourceExhausted from calls). "never": all elements travel in messages.
    regions: Path of the server's region socket. None: /path.regions for a target unix:/path. "auto" issues one
        RuntimeWarning if you give a path and memory cannot be shared through it, or the server has none left.
    pool_bytes: Maximum shared memory of the client, in bytes. Memory from `Client.empty` does not count.
    own_connection: If true, no other client of this process uses the client's connection. Otherwise clients with the
        same target and credentials share one.
    reproducible: If true, each request asks for results with the same bits in every run of the server on the same
        device. A named variant that is not reproducible raises InvalidArgument.
    channels: Connections over which large arrays travel, also with put and numpy(), 1 to 64. None: $WARPLINE_CHANNELS,
        or one for each 2 MiB, at most 8. Operands, or results, of 16 MiB and more together are sent in ranges. While
        the call lasts they count under the server's --upload-bytes. They may be larger than a message. Where elements
        travel in shared memory they are not sent at all.
    """
    target = targets.given_or_usual(target)
    arguments = dict(locals())
    connection = targets.connection(target, timeout, max_retries, tls_ca, tls_cert, tls_key, token, token_file,
                                    shared_memory, regions, pool_bytes, own_connection, channels)
    client = Client(connection, reproducible)
    client._pickled = _connect, (arguments,)
    return client


def _connect(arguments: dict[str, Any]) -> Client:
    """Makes the client that a pickled client becomes."""
    return connect(**arguments)
