"""Client of warpline, a GPU kernel server: NumPy arrays in and out.

    import warpline
    with warpline.connect("127.0.0.1:50051") as c:
        y = c.transpose(x)
        d = c.gemm(a, b)
        s = c.reduce(x, "sum", axis=1)
        p = warpline.program()
        z = c.run(p.gemm(a, b).transpose().sum(axis=1))
        t = c.put(a)                                # stays on the server
        w = c.run((t @ b).max(axis=0))

The same, asynchronously: warpline.aio.connect. Element types that NumPy lacks: warpline.dtypes.
"""

from collections.abc import Sequence
from typing import Any

import grpc

from warpline import aio
from warpline.client import Client
from warpline.dtypes import bfloat16, float8_e4m3fn, float8_e5m2
from warpline.errors import (Cancelled, DeadlineExceeded, Error, FailedPrecondition, FieldViolation, Internal,
                             InvalidArgument, NotFound, ResourceExhausted, Unavailable, Unimplemented)
from warpline.expressions import Expression
from warpline.programs import Program, placeholder, program
from warpline.residents import TensorInfo
from warpline.tensors import Tensor

__version__ = "0.1.0"

__all__ = [
    "Cancelled", "Client", "DeadlineExceeded", "Error", "Expression", "FailedPrecondition", "FieldViolation",
    "Internal", "InvalidArgument", "NotFound", "Program", "ResourceExhausted", "Tensor", "TensorInfo",
    "Unavailable", "Unimplemented", "aio", "bfloat16", "connect", "float8_e4m3fn", "float8_e5m2", "placeholder",
    "program",
]


def connect(target: str, *, timeout: float = 60.0, max_retries: int = 0,
            credentials: grpc.ChannelCredentials | None = None,
            options: Sequence[tuple[str, Any]] = ()) -> Client:
    """A client of the server at `target`: "host:port", "host" (port 50051), "unix:/path", or anything else gRPC
    resolves; no URL.

    The connection is made by the first call. timeout: seconds, of calls that do not give their own.
    max_retries: how often a call is sent again after Unavailable, or after ResourceExhausted with a delay from
    the server, which is obeyed; never beyond the timeout. credentials: of gRPC; None: plain text. options: more
    channel arguments of gRPC.
    """
    return Client(target, timeout=timeout, max_retries=max_retries, credentials=credentials, options=options)
