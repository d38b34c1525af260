"""Client of warpline, a GPU kernel server: NumPy arrays in and out.

    import warpline
    with warpline.connect("127.0.0.1:50051") as c:
        y = c.transpose(x)
        d = c.gemm(a, b)
        s = c.sum(x, axis=1)
        p = warpline.program()
        z = c.run(p.gemm(a, b).transpose().sum(axis=1))
        a = c.empty((300, 400))                     # with a server on this host: is copied nowhere
        t = c.put(a)                                # stays on the server
        w = c.run((t @ b).max(axis=0))

The same, asynchronously: warpline.aio.connect. Element types that NumPy lacks: warpline.dtypes.
"""

import importlib.metadata
from collections.abc import Sequence
from typing import Any

import grpc

from warpline import aio, sending, tls
from warpline.client import Client
from warpline.dtypes import bfloat16, float8_e4m3fn, float8_e5m2
from warpline.errors import (Cancelled, DeadlineExceeded, Error, FailedPrecondition, FieldViolation, Internal,
                             InvalidArgument, NotFound, ResourceExhausted, Unauthenticated, Unavailable,
                             Unimplemented)
from warpline.expressions import Expression
from warpline.programs import Program, placeholder, program
from warpline.reports import Device, Execution, Limits, Operation, ServerInfo, StageTimes, Variant
from warpline.residents import TensorInfo
from warpline.sending import MAX_RETRIES
from warpline.shared import POOL_BYTES, Mode
from warpline.tensors import Tensor

try:
    __version__ = importlib.metadata.version("warpline")
except importlib.metadata.PackageNotFoundError:  # run from its sources
    __version__ = "unknown"

__all__ = [
    "Cancelled", "Client", "DeadlineExceeded", "Device", "Error", "Execution", "Expression", "FailedPrecondition",
    "FieldViolation", "Internal", "InvalidArgument", "Limits", "NotFound", "Operation", "Program", "ResourceExhausted",
    "ServerInfo", "StageTimes", "Tensor", "TensorInfo", "Unauthenticated", "Unavailable", "Unimplemented", "Variant",
    "aio", "bfloat16", "connect", "float8_e4m3fn", "float8_e5m2", "placeholder", "program",
]


def connect(target: str, *, timeout: float = 60.0, max_retries: int = MAX_RETRIES,
            tls_ca: str | None = None, tls_cert: str | None = None, tls_key: str | None = None,
            token: str | None = None, token_file: str | None = None,
            credentials: grpc.ChannelCredentials | None = None,
            options: Sequence[tuple[str, Any]] = (), shared_memory: Mode = "auto", regions: str | None = None,
            pool_bytes: int = POOL_BYTES, reproducible: bool = False) -> Client:
    """Makes a client of the server at `target`. The connection itself is made by the first call.

    target: "host:port", "host" (port 50051), "unix:/path", or anything else that gRPC resolves. ValueError for a URL,
        a port that is none, and a path without "unix:".
    timeout: Seconds that a call may take if it does not give its own timeout.
    max_retries: How often a call is made again; 0: never. Calls are made again after Unavailable, which a server that
        starts again causes; after ResourceExhausted and ABORTED if the server gives a delay; and after an upload that
        the server's gRPC reset. The client waits as long as the server says. Where it says nothing, the client waits
        0.1 s first, and each time twice as long as before, so that 6 retries last 6.3 s. It never waits beyond the
        timeout.
    tls_ca: Path of a PEM file with the CAs that may have signed the server's certificate. None: $WARPLINE_TLS_CA. If
        that is empty too, there is no TLS. ValueError if a file cannot be used. A target unix:/path never has TLS.
    tls_cert: Path of a PEM file with the client's certificate, for servers that want one. None: $WARPLINE_TLS_CERT.
    tls_key: Path of a PEM file with the private key of that certificate. None: $WARPLINE_TLS_KEY.
    token: A token that says who this client is, for servers that ask. It goes with every call. Without TLS everybody
        between client and server can read it.
    token_file: Path of a file with the token. None, if there is no `token` either: $WARPLINE_TOKEN_FILE.
    credentials: Credentials of gRPC, instead of the arguments about TLS.
    options: Further channel arguments of gRPC. Its own retries are switched off, whatever a retryPolicy there says.
    shared_memory: Whether elements travel in memory that is shared with the server. "auto": they do if the target is
        unix:/path or `regions` is given, and if the server shares memory. What finds no room there travels in messages.
        "always": it is an error if they cannot (ValueError here; Unimplemented and ResourceExhausted from calls).
        "never": they do not.
    regions: Path of the server's region socket. None: /path.regions for a target unix:/path. If it is given and no
        memory can be shared by it, or if the server has none left, "auto" says so once, by a RuntimeWarning.
    pool_bytes: How much memory the client may share, in bytes, beside what `Client.empty` gives.
    reproducible: Whether each request asks for results that have the same bits in every run of the server on the
        same device. Variants are then chosen by fixed rules, not by what tuning has measured. InvalidArgument is
        raised for a named variant that cannot do this.
    """
    arguments = dict(locals())
    client = Client(target, timeout=timeout, max_retries=max_retries,
                    credentials=tls.credentials_for(target, credentials, tls_ca, tls_cert, tls_key),
                    token=sending.check_token(token, token_file), options=options,
                    shared_memory=shared_memory, regions=regions, pool_bytes=pool_bytes, reproducible=reproducible)
    if arguments.pop("credentials") is None:
        client._arguments = arguments
    return client
