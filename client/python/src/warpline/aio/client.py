"""The asynchronous client."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from types import TracebackType
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from warpline import calls, core, direct, targets, transfers
from warpline._core import lib
from warpline.aio.calls import SHARED_BYTES, Calls
from warpline.aio.reductions import Reductions
from warpline.aio.tensors import Tensor
from warpline.aio.threads import calling, copying, unless_small
from warpline.arrays import Array, Operand
from warpline.arguments import Axes
from warpline.calls import Call, Input, Progress, Report
from warpline.expressions import Operators
from warpline.names import Activation, Precision, ReduceOp
from warpline.programs import Program, plan_run
from warpline.reports import ServerInfo
from warpline.residents import Resident, TensorInfo


class Client(Reductions):
    """The asynchronous client, for one event loop. It is an asynchronous context manager (`async with`).

    No call blocks the loop. The library's threads send requests and receive results, and a descriptor that the loop
    watches wakes it. Other calls, such as put, run in threads of the loop's default executor (`asyncio.to_thread`), and
    so do copies of more than 1 MiB. Cancelling the task cancels the call, and waits until nothing uses its arrays.
    """

    def __init__(self, connection: core.Connection, reproducible: bool) -> None:
        """Use warpline.aio.connect."""
        self._connection = connection
        self._reproducible = reproducible
        self._calls: Calls | None = None
        # Its end closes the client: asyncio.run closes generators that are left.
        self._end: AsyncGenerator[None, None] | None = None

    def __repr__(self) -> str:
        return f"<warpline.aio.Client {self._connection}>"

    async def __aenter__(self) -> "Client":
        self._connection.check_open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        traceback: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """See warpline.Client.close."""
        await calling(self._connection.close)
        if self._calls is not None:
            self._calls.close()

    @overload
    async def transpose(self, x: Input, axes: Iterable[int] | None = ..., *, variant: str = ...,
                        out: Array | None = ..., keep: Literal[False] = ..., ttl: None = ...,
                        timeout: float | None = ..., request_id: str | None = ...,
                        report: Report | None = ..., progress: Progress | None = ...) -> Array: ...

    @overload
    async def transpose(self, x: Input, axes: Iterable[int] | None = ..., *, variant: str = ..., keep: Literal[True],
                        ttl: float | None = ..., timeout: float | None = ..., request_id: str | None = ...,
                        report: Report | None = ..., progress: Progress | None = ...) -> Tensor: ...

    async def transpose(self, x: Input, axes: Iterable[int] | None = None, *, variant: str = "",
                        out: Array | None = None, keep: bool = False, ttl: float | None = None,
                        timeout: float | None = None, request_id: str | None = None,
                        report: Report | None = None, progress: Progress | None = None) -> Array | Tensor:
        """See warpline.Client.transpose."""
        call = await copying([x], direct.transpose, x, axes, variant, calls.keep_of(keep, ttl, out))
        return await self._result(call, out, timeout, request_id, report, progress)

    @overload
    async def gemm(self, a: Input, b: Input, c: Input | None = ..., *, alpha: float | None = ...,
                   beta: float | None = ..., bias: Input | None = ..., activation: Activation | None = ...,
                   trans_a: bool = ..., trans_b: bool = ..., precision: Precision | None = ...,
                   dtype: npt.DTypeLike | None = ..., variant: str = ..., out: Array | None = ...,
                   keep: Literal[False] = ..., ttl: None = ..., timeout: float | None = ...,
                   request_id: str | None = ..., report: Report | None = ...,
                   progress: Progress | None = ...) -> Array: ...

    @overload
    async def gemm(self, a: Input, b: Input, c: Input | None = ..., *, alpha: float | None = ...,
                   beta: float | None = ..., bias: Input | None = ..., activation: Activation | None = ...,
                   trans_a: bool = ..., trans_b: bool = ..., precision: Precision | None = ...,
                   dtype: npt.DTypeLike | None = ..., variant: str = ..., keep: Literal[True],
                   ttl: float | None = ..., timeout: float | None = ..., request_id: str | None = ...,
                   report: Report | None = ..., progress: Progress | None = ...) -> Tensor: ...

    async def gemm(self, a: Input, b: Input, c: Input | None = None, *, alpha: float | None = None,
                   beta: float | None = None, bias: Input | None = None, activation: Activation | None = None,
                   trans_a: bool = False, trans_b: bool = False, precision: Precision | None = None,
                   dtype: npt.DTypeLike | None = None, variant: str = "", out: Array | None = None,
                   keep: bool = False, ttl: float | None = None, timeout: float | None = None,
                   request_id: str | None = None, report: Report | None = None,
                   progress: Progress | None = None) -> Array | Tensor:
        """See warpline.Client.gemm."""
        call = await copying([a, b, c, bias], direct.gemm, a, b, c, alpha, beta, bias, activation, trans_a, trans_b,
                             precision, dtype, variant, calls.keep_of(keep, ttl, out))
        return await self._result(call, out, timeout, request_id, report, progress)

    @overload
    async def matmul(self, a: Input, b: Input, *, dtype: npt.DTypeLike | None = ..., out: Array | None = ...,
                     keep: Literal[False] = ..., ttl: None = ..., timeout: float | None = ...,
                     request_id: str | None = ..., report: Report | None = ...,
                     progress: Progress | None = ...) -> Array: ...

    @overload
    async def matmul(self, a: Input, b: Input, *, dtype: npt.DTypeLike | None = ..., keep: Literal[True],
                     ttl: float | None = ..., timeout: float | None = ..., request_id: str | None = ...,
                     report: Report | None = ..., progress: Progress | None = ...) -> Tensor: ...

    async def matmul(self, a: Input, b: Input, *, dtype: npt.DTypeLike | None = None, out: Array | None = None,
                     keep: bool = False, ttl: float | None = None, timeout: float | None = None,
                     request_id: str | None = None, report: Report | None = None,
                     progress: Progress | None = None) -> Array | Tensor:
        """See warpline.Client.matmul."""
        call = await copying([a, b], direct.gemm, a, b, None, None, None, None, None, False, False, None, dtype, "",
                             calls.keep_of(keep, ttl, out))
        return await self._result(call, out, timeout, request_id, report, progress)

    @overload
    async def reduce(self, x: Input, op: ReduceOp, axis: Axes = ..., *, keepdims: bool = ...,
                     dtype: npt.DTypeLike | None = ..., ddof: int = ..., variant: str = ..., out: Array | None = ...,
                     keep: Literal[False] = ..., ttl: None = ..., timeout: float | None = ...,
                     request_id: str | None = ..., report: Report | None = ...,
                     progress: Progress | None = ...) -> Array: ...

    @overload
    async def reduce(self, x: Input, op: ReduceOp, axis: Axes = ..., *, keepdims: bool = ...,
                     dtype: npt.DTypeLike | None = ..., ddof: int = ..., variant: str = ..., keep: Literal[True],
                     ttl: float | None = ..., timeout: float | None = ..., request_id: str | None = ...,
                     report: Report | None = ..., progress: Progress | None = ...) -> Tensor: ...

    async def reduce(self, x: Input, op: ReduceOp, axis: Axes = None, *, keepdims: bool = False,
                     dtype: npt.DTypeLike | None = None, ddof: int = 0, variant: str = "", out: Array | None = None,
                     keep: bool = False, ttl: float | None = None, timeout: float | None = None,
                     request_id: str | None = None, report: Report | None = None,
                     progress: Progress | None = None) -> Array | Tensor:
        """See warpline.Client.reduce."""
        call = await copying([x], direct.reduce, x, op, axis, keepdims, dtype, ddof, variant,
                             calls.keep_of(keep, ttl, out))
        return await self._result(call, out, timeout, request_id, report, progress)

    async def run(self, *expressions: Operators | Program, out: Array | Sequence[Array | None] | None = None,
                  keep: bool | Sequence[bool] = False, ttl: float | None = None, timeout: float | None = None,
                  request_id: str | None = None, report: Report | None = None, progress: Progress | None = None,
                  free_after: Sequence[Tensor] = (),
                  **inputs: Input) -> Any:
        """See warpline.Client.run."""
        plan = plan_run(expressions, inputs, keep, ttl, out, free_after)
        results = await self._results(plan.call, plan.outs, timeout, request_id, report, progress)
        return await unless_small(plan.copied_bytes, lambda: plan.results(results))

    async def put(self, x: npt.ArrayLike, *, ttl: float | None = None, device: int | None = None,
                  channels: int | None = None, timeout: float | None = None, request_id: str | None = None) -> Tensor:
        """See warpline.Client.put."""
        await self._begin()
        handle = await calling(lambda: transfers.put(self._connection, x, ttl, device, channels, timeout, request_id),
                               lib.warpline_tensor_free)
        return Tensor(self, handle, owned=True)

    async def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float64, *,
                    timeout: float | None = None) -> Array:
        """See warpline.Client.empty."""
        return await calling(lambda: transfers.empty(self._connection, shape, dtype, timeout))

    async def tensor(self, id: str, *, renew: bool = False, timeout: float | None = None) -> Tensor:
        """See warpline.Client.tensor."""
        handle = await calling(lambda: transfers.attach(self._connection, id, renew, timeout), lib.warpline_tensor_free)
        return Tensor(self, handle, owned=False)

    async def tensors(self, *, timeout: float | None = None) -> list[TensorInfo]:
        """See warpline.Client.tensors."""
        return await calling(lambda: transfers.tensors(self._connection, timeout))

    async def info(self, *, timeout: float | None = None) -> ServerInfo:
        """See warpline.Client.info."""
        return await calling(lambda: transfers.info(self._connection, timeout))

    async def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """See warpline.Client.is_serving."""
        return await calling(lambda: transfers.is_serving(self._connection, service, timeout))

    async def _begin(self) -> None:
        """Call this in the loop before other calls."""
        if self._end is None:
            self._end = _closing(self._connection)
            await anext(self._end)

    async def _result(self, call: Call, out: Array | None, timeout: float | None, request_id: str | None,
                      report: Report | None, progress: Progress | None) -> Any:
        return (await self._results(call, [out], timeout, request_id, report, progress))[0]

    async def _results(self, call: Call, outs: Sequence[Array | None], timeout: float | None, request_id: str | None,
                       report: Report | None, progress: Progress | None) -> list[Array | Tensor]:
        connection = self._connection
        seconds = connection.timeout if timeout is None else targets.check_timeout(timeout)
        id = targets.check_request_id(request_id)
        connection.check_open()
        await self._begin()
        if self._calls is None:
            self._calls = Calls(connection)
        nbytes = sum(operand.array.nbytes for _, operand in call.inputs if isinstance(operand, Operand))
        request = await unless_small(nbytes, lambda: calls.Request(call, outs, seconds, id, self._reproducible,
                                                                      report is not None, progress))
        if connection.shares and nbytes <= SHARED_BYTES:
            nbytes = max(nbytes, calls.result_bytes(call))
        result = await self._calls.run(request, id, nbytes)
        results = request.results(result, report)
        return [Tensor(self, result, owned=True) if kept else result
                for result, kept in zip(results, call.keep.results)]

    async def _get(self, tensor: Resident, out: Array | None, channels: int | None, timeout: float | None,
                   request_id: str | None) -> Array:
        return await calling(lambda: transfers.get(self._connection, tensor, out, channels, timeout, request_id))

    async def _drop(self, id: str, timeout: float | None) -> None:
        await calling(lambda: transfers.drop(self._connection, id, timeout))

    async def _renew(self, id: str, ttl: float | None, timeout: float | None) -> TensorInfo:
        return await calling(lambda: transfers.renew(self._connection, id, ttl, timeout))


async def _closing(connection: core.Connection) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await calling(connection.close)
