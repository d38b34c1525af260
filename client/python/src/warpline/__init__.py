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
    """A client of the server at `target`: "host:port", "host" (port 50051), "unix:/path", or anything else gRPC
    resolves; ValueError for a URL, or a path without "unix:".

    The connection is made by the first call. timeout: seconds, of calls that do not give their own.
    max_retries: how often a call is made again after Unavailable, which a server that starts again causes, after
    ResourceExhausted or ABORTED if the server gives a delay, and after an upload that its gRPC reset; 0: never. The server's delays are obeyed; where it gives
    none, the first is 0.1 s, and each of the others twice the one before it, so that 6 retries last 6.3 s. Never
    beyond the timeout. options: more channel arguments of gRPC. Its own retries are switched off, whatever a retryPolicy
    there says.

    tls_ca: path of a PEM file with the CAs that may have signed the server's certificate; None: $WARPLINE_TLS_CA; if
    that is empty too, there is no TLS. tls_cert, tls_key: paths of the client's certificate and its private key, if the
    server wants one; None: $WARPLINE_TLS_CERT, $WARPLINE_TLS_KEY. ValueError if a file is no good. unix:/path has no TLS,
    whatever these say. credentials: of gRPC, instead of all of these.

    token: who this client is, to a server that asks for it. token_file: path of a file that holds it; None, without a
    token: $WARPLINE_TOKEN_FILE. It goes with every call, and without TLS everybody in between can read it.

    shared_memory: "auto": elements travel in memory that is shared with the server if the target is unix:/path, or
    `regions` is given, and the server shares memory; what finds no room there, in messages. "always": it is an error
    if they cannot (ValueError here, Unimplemented and ResourceExhausted from calls). "never": they do not. regions:
    the path of the server's region socket; None: /path.regions. If it is given, and no memory can be shared by it, or
    if the server has none left, "auto" says so once, by a RuntimeWarning. pool_bytes: how much memory the client may
    share, beside what `Client.empty` gives.

    reproducible: every request asks for results that have the same bits in every run of the server on the same device:
    variants are chosen by rules alone, not by what tuning has measured, and InvalidArgument is raised for one that is
    named and is not such.
    """
    arguments = dict(locals())
    client = Client(target, timeout=timeout, max_retries=max_retries,
                    credentials=tls.credentials_for(target, credentials, tls_ca, tls_cert, tls_key),
                    token=sending.check_token(token, token_file), options=options,
                    shared_memory=shared_memory, regions=regions, pool_bytes=pool_bytes, reproducible=reproducible)
    if arguments.pop("credentials") is None:
        client._arguments = arguments
    return client
