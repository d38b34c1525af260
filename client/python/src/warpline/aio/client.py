"""The asynchronous client."""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Literal, overload

import grpc
import numpy as np
import numpy.typing as npt

from warpline import calls, connections, direct, residents, shared, transfers
from warpline.aio import tensors
from warpline.aio.connection import Connection
from warpline.aio.leases import Leases
from warpline.aio.reductions import Reductions
from warpline.aio.tensors import Tensor, Transport
from warpline.aio.threads import copying, in_thread, unless_small
from warpline.arrays import Array
from warpline.arguments import Axes
from warpline.calls import Call, Input, Report
from warpline.expressions import Operators
from warpline.names import Activation, Precision, ReduceOp
from warpline.programs import Program, plan_program
from warpline.reports import ServerInfo
from warpline.residents import TensorInfo
from warpline.sending import HEALTH_METHOD, MAX_RETRIES


class Client(Reductions):
    """The asynchronous client, for one event loop. It is an asynchronous context manager (`async with`).

    Threads copy elements of more than 1 MiB, and elements that go into shared memory. gRPC makes its own copies of
    requests and responses on the loop's thread, except for `put` and `numpy`. Cancelling the task cancels the call.
    """

    def __init__(self, target: str, *, timeout: float = 60.0, max_retries: int = MAX_RETRIES,
                 credentials: grpc.ChannelCredentials | None = None, token: str = "",
                 options: Sequence[tuple[str, Any]] = (),
                 shared_memory: shared.Mode = "auto", regions: str | None = None,
                 pool_bytes: int = shared.POOL_BYTES, reproducible: bool = False) -> None:
        """See warpline.connect."""
        self._reproducible = reproducible
        path = shared.region_socket(target, shared_memory, regions)
        pool_bytes = shared.check_pool_bytes(pool_bytes)
        self._connection = Connection(target, timeout, max_retries, credentials, options, token)
        self._transport = Transport(self._connection, lambda: connections.Connection(
            target, timeout, max_retries, credentials, options, token))
        self._leases = Leases(self._connection)
        self._shared = shared.Shared(self._transport.bulk, path, shared_memory, pool_bytes, regions is not None)

    async def __aenter__(self) -> "Client":
        self._connection.check_open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        traceback: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """See warpline.Client.close."""
        await self._leases.close()
        await self._transport.close()
        await self._connection.close()
        self._shared.close()

    @overload
    async def transpose(self, x: Input, axes: Iterable[int] | None = ..., *, variant: str = ...,
                        out: Array | None = ..., keep: Literal[False] = ..., ttl: None = ...,
                        timeout: float | None = ..., request_id: str | None = ...,
                        report: Report | None = ...) -> Array: ...

    @overload
    async def transpose(self, x: Input, axes: Iterable[int] | None = ..., *, variant: str = ..., keep: Literal[True],
                        ttl: float | None = ..., timeout: float | None = ..., request_id: str | None = ...,
                        report: Report | None = ...) -> Tensor: ...

    async def transpose(self, x: Input, axes: Iterable[int] | None = None, *, variant: str = "",
                        out: Array | None = None, keep: bool = False, ttl: float | None = None,
                        timeout: float | None = None, request_id: str | None = None,
                        report: Report | None = None) -> Array | Tensor:
        """See warpline.Client.transpose."""
        call = await copying([x], direct.transpose, x, axes, variant, calls.keep_of(keep, ttl, out))
        return await self._result(call, out, timeout, request_id, report)

    @overload
    async def gemm(self, a: Input, b: Input, c: Input | None = ..., *, alpha: float | None = ...,
                   beta: float | None = ..., bias: Input | None = ..., activation: Activation | None = ...,
                   trans_a: bool = ..., trans_b: bool = ..., precision: Precision | None = ...,
                   dtype: npt.DTypeLike | None = ..., variant: str = ..., out: Array | None = ...,
                   keep: Literal[False] = ..., ttl: None = ..., timeout: float | None = ...,
                   request_id: str | None = ..., report: Report | None = ...) -> Array: ...

    @overload
    async def gemm(self, a: Input, b: Input, c: Input | None = ..., *, alpha: float | None = ...,
                   beta: float | None = ..., bias: Input | None = ..., activation: Activation | None = ...,
                   trans_a: bool = ..., trans_b: bool = ..., precision: Precision | None = ...,
                   dtype: npt.DTypeLike | None = ..., variant: str = ..., keep: Literal[True],
                   ttl: float | None = ..., timeout: float | None = ..., request_id: str | None = ...,
                   report: Report | None = ...) -> Tensor: ...

    async def gemm(self, a: Input, b: Input, c: Input | None = None, *, alpha: float | None = None,
                   beta: float | None = None, bias: Input | None = None, activation: Activation | None = None,
                   trans_a: bool = False, trans_b: bool = False, precision: Precision | None = None,
                   dtype: npt.DTypeLike | None = None, variant: str = "", out: Array | None = None,
                   keep: bool = False, ttl: float | None = None, timeout: float | None = None,
                   request_id: str | None = None, report: Report | None = None) -> Array | Tensor:
        """See warpline.Client.gemm."""
        call = await copying([a, b, c, bias], direct.gemm, a, b, c, alpha, beta, bias, activation, trans_a, trans_b,
                             precision, dtype, variant, calls.keep_of(keep, ttl, out))
        return await self._result(call, out, timeout, request_id, report)

    @overload
    async def matmul(self, a: Input, b: Input, *, dtype: npt.DTypeLike | None = ..., out: Array | None = ...,
                     keep: Literal[False] = ..., ttl: None = ..., timeout: float | None = ...,
                     request_id: str | None = ..., report: Report | None = ...) -> Array: ...

    @overload
    async def matmul(self, a: Input, b: Input, *, dtype: npt.DTypeLike | None = ..., keep: Literal[True],
                     ttl: float | None = ..., timeout: float | None = ..., request_id: str | None = ...,
                     report: Report | None = ...) -> Tensor: ...

    async def matmul(self, a: Input, b: Input, *, dtype: npt.DTypeLike | None = None, out: Array | None = None,
                     keep: bool = False, ttl: float | None = None, timeout: float | None = None,
                     request_id: str | None = None, report: Report | None = None) -> Array | Tensor:
        """See warpline.Client.matmul."""
        call = await copying([a, b], direct.gemm, a, b, None, None, None, None, None, False, False, None, dtype, "",
                             calls.keep_of(keep, ttl, out))
        return await self._result(call, out, timeout, request_id, report)

    @overload
    async def reduce(self, x: Input, op: ReduceOp, axis: Axes = ..., *, keepdims: bool = ...,
                     dtype: npt.DTypeLike | None = ..., ddof: int = ..., variant: str = ..., out: Array | None = ...,
                     keep: Literal[False] = ..., ttl: None = ..., timeout: float | None = ...,
                     request_id: str | None = ..., report: Report | None = ...) -> Array: ...

    @overload
    async def reduce(self, x: Input, op: ReduceOp, axis: Axes = ..., *, keepdims: bool = ...,
                     dtype: npt.DTypeLike | None = ..., ddof: int = ..., variant: str = ..., keep: Literal[True],
                     ttl: float | None = ..., timeout: float | None = ..., request_id: str | None = ...,
                     report: Report | None = ...) -> Tensor: ...

    async def reduce(self, x: Input, op: ReduceOp, axis: Axes = None, *, keepdims: bool = False,
                     dtype: npt.DTypeLike | None = None, ddof: int = 0, variant: str = "", out: Array | None = None,
                     keep: bool = False, ttl: float | None = None, timeout: float | None = None,
                     request_id: str | None = None, report: Report | None = None) -> Array | Tensor:
        """See warpline.Client.reduce."""
        call = await copying([x], direct.reduce, x, op, axis, keepdims, dtype, ddof, variant,
                             calls.keep_of(keep, ttl, out))
        return await self._result(call, out, timeout, request_id, report)

    async def run(self, *expressions: Operators | Program, out: Array | Sequence[Array | None] | None = None,
                  keep: bool | Sequence[bool] = False, ttl: float | None = None, timeout: float | None = None,
                  request_id: str | None = None, report: Report | None = None, **inputs: Input) -> Any:
        """See warpline.Client.run."""
        plan = plan_program(expressions, inputs, keep, ttl, out)
        call = calls.run(*plan)
        results = await self._results(call, calls.outs_of(out, len(call.keeps)), timeout, request_id, report)
        return results[0] if len(results) == 1 else tuple(results)

    async def put(self, x: npt.ArrayLike, *, ttl: float | None = None, device: int | None = None,
                  channels: int | None = None, timeout: float | None = None, request_id: str | None = None) -> Tensor:
        """See warpline.Client.put."""
        bulk = self._transport.bulk()
        # After a cancellation nobody receives the Tensor: it becomes garbage, which drops the tensor.
        info = await tensors.run(lambda: transfers.Put(bulk, x, ttl, device, channels, timeout, request_id),
                                 discard=self._tensor)
        return self._tensor(info)

    async def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float64, *,
                    timeout: float | None = None) -> Array:
        """See warpline.Client.empty."""
        self._connection.check_open()
        attempts = self._connection.attempts(timeout, None)
        return await self._connection.retry(
            attempts, lambda: in_thread(lambda: self._shared.empty(shape, dtype, attempts.left())))

    async def tensor(self, id: str, *, renew: bool = False, timeout: float | None = None) -> Tensor:
        """See warpline.Client.tensor."""
        body = residents.encode_renew(residents.check_id(id))
        response, request_id = await self._connection.invoke(residents.RENEW_METHOD, body, timeout, None)
        info = calls.valid(residents.decode_created, response, request_id)
        return Tensor(self._transport, info, self._leases if renew else None, owned=False)

    async def tensors(self, *, timeout: float | None = None) -> list[TensorInfo]:
        """See warpline.Client.tensors."""
        found: list[TensorInfo] = []
        token = ""
        while True:
            body = residents.encode_list(token)
            response, request_id = await self._connection.invoke(residents.LIST_METHOD, body, timeout, None)
            page, token = calls.valid(residents.decode_list, response, request_id)
            found += page
            if not token:
                return found

    async def info(self, *, timeout: float | None = None) -> ServerInfo:
        """See warpline.Client.info."""
        return calls.decode_info(*await self._connection.invoke(calls.INFO_METHOD, b"", timeout, None))

    async def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """See warpline.Client.is_serving."""
        body = calls.encode_health(service)
        return calls.decode_health(*await self._connection.invoke(HEALTH_METHOD, body, timeout, None))

    async def _result(self, call: Call, out: Array | None, timeout: float | None, request_id: str | None,
                      report: Report | None) -> Any:
        return (await self._results(call, [out], timeout, request_id, report))[0]

    async def _results(self, call: Call, outs: Sequence[Array | None], timeout: float | None, request_id: str | None,
                       report: Report | None) -> list[Array | Tensor]:
        attempts = self._connection.attempts(timeout, request_id)
        if self._reproducible:
            call.request.options.reproducible = True
        shipment = self._shared.ship(call, outs)
        try:
            response = await self._connection.send(shipment, attempts)
            copied = shipment.shared_bytes + sum(out.nbytes for out in outs if out is not None)
            results = await unless_small(copied, lambda: shipment.deliver(response, attempts.request_id, report))
        except GeneratorExit:
            # Nobody awaits this coroutine any more.
            shipment.abandon(wait=False)
            raise
        except BaseException:
            if shipment.waits:
                await in_thread(shipment.abandon)
            else:
                shipment.abandon()
            raise
        return [self._tensor(result) if isinstance(result, TensorInfo) else result for result in results]

    def _tensor(self, info: TensorInfo) -> Tensor:
        """Makes the handle of a new tensor that this client owns."""
        return Tensor(self._transport, info, self._leases, owned=True)
