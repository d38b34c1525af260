"""The asynchronous client, on grpc.aio. Its methods are those of warpline.Client, as coroutines."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

import grpc
import grpc.aio
import numpy.typing as npt

from warpline import calls, errors
from warpline.arrays import Array
from warpline.calls import Axes, Call, Report
from warpline.programs import Tensor, compile_program
from warpline.v1 import warpline_pb2 as v1


def connect(target: str, *, timeout: float = 60.0, max_retries: int = 0,
            credentials: grpc.ChannelCredentials | None = None,
            options: Sequence[tuple[str, Any]] = ()) -> "Client":
    """As warpline.connect. To be called, and used, in one event loop."""
    return Client(target, timeout=timeout, max_retries=max_retries, credentials=credentials, options=options)


class Client:
    """As warpline.Client, for one event loop; an asynchronous context manager.

    Requests are put together on the loop's thread, which for 256 MiB takes tenths of a second. Cancelling the
    task cancels the call.
    """

    def __init__(self, target: str, *, timeout: float = 60.0, max_retries: int = 0,
                 credentials: grpc.ChannelCredentials | None = None,
                 options: Sequence[tuple[str, Any]] = ()) -> None:
        """See connect."""
        self._timeout = calls.check_timeout(timeout)
        self._max_retries = max_retries
        self._closed = False
        target = calls.check_target(target)
        arguments = [*calls.channel_options(target), *options]
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(target, arguments)
        else:
            self._channel = grpc.aio.secure_channel(target, credentials, arguments)

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        traceback: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection. Calls in flight and later ones raise Cancelled."""
        self._closed = True
        await self._channel.close()

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
        return calls.decode_info(*(await self._invoke(calls.INFO_METHOD, b"", timeout, None)))

    async def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """See warpline.Client.is_serving."""
        body = calls.encode_health(service)
        return calls.decode_health(*(await self._invoke(calls.HEALTH_METHOD, body, timeout, None)))

    async def _array(self, call: Call, out: Array | None, timeout: float | None, request_id: str | None,
                     report: Report | None) -> Array:
        return (await self._arrays(call, [out], timeout, request_id, report))[0]

    async def _arrays(self, call: Call, outs: Sequence[Array | None], timeout: float | None,
                      request_id: str | None, report: Report | None) -> list[Array]:
        response, used_id = await self._invoke(call.method, call.body, timeout, request_id)
        return calls.deliver(calls.decode(call, response, used_id, report), outs)

    async def _invoke(self, method: str, body: bytes, timeout: float | None,
                      request_id: str | None) -> tuple[bytes, str]:
        """The response, and the request's id."""
        deadline = time.monotonic() + calls.check_timeout(self._timeout if timeout is None else timeout)
        request_id = calls.check_request_id(request_id)
        invoke = self._channel.unary_unary(method)
        attempt = 0
        while True:
            try:
                left = max(deadline - time.monotonic(), 0.0)
                return await invoke(body, timeout=left, metadata=(("x-request-id", request_id),)), request_id
            except grpc.RpcError as rpc_error:
                error = errors.from_rpc_error(rpc_error, request_id)
                delay = errors.retry_delay(error, attempt) if attempt < self._max_retries else None
                if delay is None or time.monotonic() + delay >= deadline:
                    raise error from None
            except grpc.aio.UsageError:
                # gRPC's, of a channel that is closed.
                raise errors.closed(request_id) from None
            except asyncio.CancelledError:
                # gRPC's too, where it was close that ended the call, and not someone the task.
                task = asyncio.current_task()
                if not self._closed or task is None or task.cancelling():
                    raise
                raise errors.closed(request_id) from None
            await asyncio.sleep(delay)
            attempt += 1
