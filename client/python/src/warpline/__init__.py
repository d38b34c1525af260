"""Client of warpline, a GPU kernel server: NumPy arrays in and out.

    import numpy as np, warpline

    x = np.random.rand(300, 400)
    with warpline.connect("127.0.0.1:50051") as c:  # or warpline.local(), which starts a private daemon
        y = c.transpose(x)                          # a NumPy array
        d = c.gemm(x, y)
        s = c.sum(x, axis=1)
        p = warpline.program()                      # several steps, one request
        z = c.run(p.gemm(x, y).transpose().sum(axis=1))
        t = c.put(x)                                # stays on the server
        w = c.run((t @ y).max(axis=0))
        a = c.empty((300, 400))                     # shared with a server on this host: never copied

warpline.aio.connect makes the asynchronous client. warpline.dtypes has the element types that NumPy lacks. The package
calls libwarpline.so.0, the C library, which it contains.
"""

import importlib.metadata
try:
    from warpline import _core  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"warpline._core cannot be loaded ({error}): the package needs Linux, and a build of it for this machine "
        "(client/python/README.md). Elsewhere, use plain gRPC: client/examples/python_grpcio/example.py") from error

from warpline import aio
from warpline.client import Client
from warpline.connecting import connect
from warpline.creation import arange, eye, full, linspace, ones, zeros
from warpline.downloads import WarplinePerformanceWarning
from warpline.dtypes import bfloat16, float8_e4m3fn, float8_e5m2
from warpline.elementwise import where
from warpline.errors import (Cancelled, DeadlineExceeded, Error, FailedPrecondition, FieldViolation, Internal,
                             InvalidArgument, NotFound, ResourceExhausted, StatusCode, Unauthenticated,
                             Unavailable, Unimplemented)
from warpline.expressions import Expression
from warpline.indexing import put_along_axis, set_slice
from warpline.local import local
from warpline.ordering import scan, sort_with_indices, topk
from warpline.programs import Program, placeholder, program
from warpline.reports import Device, Execution, Limits, Operation, ServerInfo, StageTimes, Variant
from warpline.residents import TensorInfo
from warpline.tensors import Tensor
from warpline.views import concatenate, stack

try:
    __version__ = importlib.metadata.version("warpline")
except importlib.metadata.PackageNotFoundError:  # runs from its source tree
    __version__ = "unknown"

def __dir__() -> list[str]:
    """Lists what users need, and leaves out the modules of which the package consists."""
    return sorted([*__all__, "__doc__", "__version__", "dtypes"])


__all__ = [
    "Cancelled", "Client", "DeadlineExceeded", "Device", "Error", "Execution", "Expression", "FailedPrecondition",
    "FieldViolation", "Internal", "InvalidArgument", "Limits", "NotFound", "Operation", "Program", "ResourceExhausted",
    "ServerInfo", "StageTimes", "StatusCode", "Tensor", "TensorInfo", "Unauthenticated", "Unavailable", "Unimplemented",
    "Variant", "WarplinePerformanceWarning", "aio", "arange", "bfloat16", "concatenate", "connect", "eye", "float8_e4m3fn",
    "float8_e5m2", "full", "linspace", "local", "ones", "placeholder", "program", "put_along_axis", "scan",
    "set_slice", "sort_with_indices", "stack", "topk", "where", "zeros",
]
