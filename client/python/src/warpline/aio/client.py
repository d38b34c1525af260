"""The asynchronous client."""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

import grpc
import numpy.typing as npt

from warpline import calls
from warpline.aio.connection import Connection
from warpline.arrays import Array
from warpline.calls import Axes, Call, Report
from warpline.programs import Tensor, compile_program
from warpline.v1 import warpline_pb2 as v1


class Client:
    """As warpline.Client, for one event loop; an asynchronous context manager.

    Requests are put together on the loop's thread, which for 256 MiB takes tenths of a second. Cancelling the
    task cancels the call.
    """

    def __init__(self, target: str, *, timeout: float = 60.0, max_retries: int = 0,
                 credentials: grpc.ChannelCredentials | None = None,
                 options: Sequence[tuple[str, Any]] = ()) -> None:
        """See warpline.connect."""
        self._connection = Connection(target, timeout, max_retries, credentials, options)

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        traceback: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection. Calls in flight and later ones raise Cancelled."""
        await self._connection.close()

    async def transpose(self, x: npt.ArrayLike, perm: Iterable[int] | None = None, *, variant: str = "",
                        out: Array | None = None, timeout: float | None = None, request_id: str | None = None,
                        report: Report | None = None) -> Array:
        """See warpline.Client.transpose."""
        return await self._array(calls.transpose(x, perm, variant), out, timeout, request_id, report)

    async def gemm(self, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike | None = None, *,
                   alpha: float | None = None, beta: float | None = None, bias: npt.ArrayLike | None = None,
                   activation: str | None = None, trans_a: bool = False, trans_b: bool = False,
                   precision: str | None = None, dtype: npt.DTypeLike | None = None, variant: str = "",
                   out: Array | None = None, timeout: float | None = None, request_id: str | None = None,
                   report: Report | None = None) -> Array:
        """See warpline.Client.gemm."""
        call = calls.gemm(a, b, c, alpha, beta, bias, activation, trans_a, trans_b, precision, dtype, variant)
        return await self._array(call, out, timeout, request_id, report)

    async def reduce(self, x: npt.ArrayLike, op: str, axis: Axes = None, *, keepdims: bool = False,
                     dtype: npt.DTypeLike | None = None, ddof: int = 0, variant: str = "",
                     out: Array | None = None, timeout: float | None = None, request_id: str | None = None,
                     report: Report | None = None) -> Array:
        """See warpline.Client.reduce."""
        call = calls.reduce(x, op, axis, keepdims, dtype, ddof, variant)
        return await self._array(call, out, timeout, request_id, report)

    async def run(self, *tensors: Tensor, out: Array | Sequence[Array | None] | None = None,
                  timeout: float | None = None, request_id: str | None = None,
                  report: Report | None = None) -> Any:
        """See warpline.Client.run."""
        call = compile_program(tensors)
        outs = calls.outs_of(out, len(tensors))
        arrays = await self._arrays(call, outs, timeout, request_id, report)
        return arrays[0] if len(tensors) == 1 else tuple(arrays)

    async def info(self, *, timeout: float | None = None) -> v1.GetInfoResponse:
        """See warpline.Client.info."""
        return calls.decode_info(*(await self._connection.invoke(calls.INFO_METHOD, b"", timeout, None)))

    async def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """See warpline.Client.is_serving."""
        body = calls.encode_health(service)
        return calls.decode_health(*(await self._connection.invoke(calls.HEALTH_METHOD, body, timeout, None)))

    async def _array(self, call: Call, out: Array | None, timeout: float | None, request_id: str | None,
                     report: Report | None) -> Array:
        return (await self._arrays(call, [out], timeout, request_id, report))[0]

    async def _arrays(self, call: Call, outs: Sequence[Array | None], timeout: float | None,
                      request_id: str | None, report: Report | None) -> list[Array]:
        response, used_id = await self._connection.invoke(call.method, call.body, timeout, request_id)
        return calls.deliver(calls.decode(call, response, used_id, report), outs)
