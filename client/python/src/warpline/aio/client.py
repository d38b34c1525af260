"""The asynchronous client."""

import asyncio
import functools
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from warpline import calls, core, transfers
from warpline._core import lib
from warpline.aio.calls import SHARED_BYTES, Calls
from warpline.aio.tensors import Tensor
from warpline.aio.threads import calling, copying, unless_small
from warpline.arrays import Array, Operand
from warpline.calls import Call, Input, Progress
from warpline.operations import CallOptions, Operations, check_names, settings_of
from warpline.operators import Operators
from warpline.plans import Plan, plan_stages
from warpline.programs import Program
from warpline.reports import ServerInfo
from warpline.residents import Resident, TensorInfo

_T = TypeVar("_T")


class Client(Operations[Coroutine[Any, Any, Array], Coroutine[Any, Any, Tensor]]):
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
        self._loop: asyncio.AbstractEventLoop | None = None
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

    async def put(self, x: npt.ArrayLike, *, ttl: float | None = None, device: int | None = None,
                  channels: int | None = None, timeout: float | None = None, request_id: str | None = None,
                  progress: Progress | None = None) -> Tensor:
        """See warpline.Client.put. `progress` is called in another thread."""
        handle = await self._calling(lambda: transfers.put(self._connection, x, ttl, device, channels, timeout, request_id,
                                                           progress), lib.warpline_tensor_free)
        return Tensor(self, handle, owned=True)

    async def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float64, *,
                    timeout: float | None = None) -> Array:
        """See warpline.Client.empty."""
        return await self._calling(lambda: transfers.empty(self._connection, shape, dtype, timeout))

    async def tensor(self, id: str, *, renew: bool = False, timeout: float | None = None) -> Tensor:
        """See warpline.Client.tensor."""
        handle = await self._calling(lambda: transfers.attach(self._connection, id, renew, timeout), lib.warpline_tensor_free)
        return Tensor(self, handle, owned=False)

    async def tensors(self, *, timeout: float | None = None) -> list[TensorInfo]:
        """See warpline.Client.tensors."""
        return await self._calling(lambda: transfers.tensors(self._connection, timeout))

    async def info(self, *, timeout: float | None = None) -> ServerInfo:
        """See warpline.Client.info."""
        return await self._calling(lambda: transfers.info(self._connection, timeout))

    async def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """See warpline.Client.is_serving."""
        return await self._calling(lambda: transfers.is_serving(self._connection, service, timeout))

    async def _begin(self) -> None:
        """Call this in the loop before other calls. Raises RuntimeError in another loop than the first call's."""
        loop = asyncio.get_running_loop()
        if self._end is None:
            self._loop = loop
            self._end = _closing(self._connection)
            await anext(self._end)
        elif self._loop is not loop:
            raise RuntimeError("this client belongs to another event loop, with which it has ended or will end: call "
                               "warpline.aio.connect in each loop, such as in each asyncio.run")

    async def _calling(self, work: Callable[[], _T], discard: Callable[[_T], object] = lambda _: None) -> _T:
        await self._begin()
        return await calling(work, discard)

    async def _call(self, make: Callable[..., Call], arguments: Sequence[Any], operands: int, keep: bool,
                    options: CallOptions) -> Any:
        check_names(make.__name__, options)
        keeping = calls.keep_of(keep, options.get("ttl"), options.get("out"))
        call = await copying(arguments[:operands], make, *arguments, keeping)
        return (await self._send(call, [options.get("out")], options))[0]

    async def _run(self, expressions: Sequence[Operators | Program | Array], inputs: dict[str, Input],
                   keep: bool | Sequence[bool], free_after: Sequence[Resident],
                   out: Array | Sequence[Array | None] | None, options: CallOptions) -> Any:
        plans = plan_stages(expressions, inputs, keep, options["ttl"], out, free_after)
        plan = next(plans)
        while True:
            results = await self._send(plan.call, plan.outs, options)
            plan_or_end = await unless_small(plan.copied_bytes, functools.partial(_sent, plans, results))
            if isinstance(plan_or_end, _End):
                return plan_or_end.value
            plan = plan_or_end

    async def _send(self, call: Call, outs: Sequence[Array | None], options: CallOptions) -> list[Array | Tensor]:
        connection = self._connection
        timeout, id, report, progress = settings_of(options, connection.timeout)
        await self._begin()
        connection.check_open()
        if self._calls is None:
            self._calls = Calls(connection)
        nbytes = sum(operand.array.nbytes for _, operand in call.inputs if isinstance(operand, Operand))
        request = await unless_small(nbytes, lambda: calls.Request(call, outs, timeout, id, self._reproducible,
                                                                      report is not None, progress))
        if connection.shares and nbytes <= SHARED_BYTES:
            nbytes = max(nbytes, calls.result_bytes(call))
        result = await self._calls.run(request, id, nbytes)
        results = request.results(result, report)
        return [Tensor(self, result, owned=True) if kept else result
                for result, kept in zip(results, call.keep.results)]

    async def _get(self, tensor: Resident, out: Array | None, channels: int | None, timeout: float | None,
                   request_id: str | None, progress: Progress | None) -> Array:
        return await self._calling(lambda: transfers.get(self._connection, tensor, out, channels, timeout, request_id, progress))

    async def _drop(self, id: str, timeout: float | None) -> None:
        await self._calling(lambda: transfers.drop(self._connection, id, timeout))

    async def _renew(self, id: str, ttl: float | None, timeout: float | None) -> TensorInfo:
        return await self._calling(lambda: transfers.renew(self._connection, id, ttl, timeout))


class _End(NamedTuple):
    value: Any


def _sent(plans: Generator[Plan, list[Any], Any], results: list[Any]) -> Plan | _End:
    """The next plan, or the end: a StopIteration cannot pass through a coroutine."""
    try:
        return plans.send(results)
    except StopIteration as end:
        return _End(end.value)


async def _closing(connection: core.Connection) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await calling(connection.close)
