"""The blocking client."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from warpline import calls, core, residents
from warpline.arrays import Array
from warpline.calls import Call, Input, Progress
from warpline.operations import CallOptions, Operations, check_names, settings_of
from warpline.operators import Operators
from warpline.plans import plan_stages
from warpline.programs import Program
from warpline.reports import ServerInfo
from warpline.residents import TensorInfo
from warpline.tensors import Tensor
from warpline.transfers import attach, drop, empty, get, info, is_serving, put, renew, tensors


class Client(Operations[Array, Tensor]):
    """Calls a warpline server. Threads may share a client. It is a context manager that closes the client at the end.

    Arrays may be anything that NumPy accepts. Objects with `__array_interface__` are accepted too, and so are objects
    with `__dlpack__` in host memory. The client sends the axes in memory order, so x.T costs as much as x. Arrays that
    are not contiguous in that order are gathered into a copy, unless only their rows are padded. Do not change an array
    before the call returns. Methods also accept resident tensors (`put`) and expressions of them in place of arrays.

    Results are writable, aligned arrays. They belong to the caller, and stay valid after the client is closed.

    Most methods take these arguments:

    out: Array of the result's shape and dtype, in any layout. The elements are copied into this array, and the call
        returns it. After an error nothing writes to the array any more. The call may wait up to a minute to ensure
        this. A server that has not confirmed it by then loses the shared memory. The same holds if the client is
        closed meanwhile.
    keep: If true, the result stays on the server, and the call returns a Tensor.
    ttl: With keep=True, duration of this Tensor's lease in seconds. The lease is renewed while the object lives. None:
        the server's default.
    variant: Name of the implementation to run (`info` lists them). "": the server's choice.
    timeout: Seconds from the call to the result, above 0 and finite. None: the client's own.
    request_id: Marks the request in the server's log: 1 to 128 printable ASCII characters. None: a new id.
    report: Function that is called with the Execution of the request.
    progress: Function that is called while large arrays of the call travel in ranges: with the bytes of them that have
        travelled, and with all that will. It is called by other threads, one at a time, and the call waits for it. The
        first number can fall when some bytes are sent again. What it raises is raised when the call has succeeded.

    Methods raise a subclass of Error if a call fails. Before that, they retry errors that another
    attempt may fix (`max_retries` of connect). They raise TypeError for arrays whose element type the API lacks, or
    that are not in host memory. They raise ValueError for names and timeouts that cannot be sent. Nothing has been
    sent after a TypeError or ValueError. In the main thread, a signal handler that raises ends the call: Ctrl-C raises
    KeyboardInterrupt.

    Elements that travel in messages are sent from the array's own memory. A response is copied once, from gRPC's
    buffers to the new array or to `out`, so both take memory until the call returns. An `out` that is not contiguous
    takes one more copy. With shared memory, a request takes one copy. A response takes none, or one with `out=`. Arrays
    from `empty` are never copied: the server reads them in place, and writes to them in place as `out=`.

    A client of connect can be pickled. The unpickled client makes a new connection with the same arguments, including
    the token. It reads certificates on the machine where it is unpickled. A process that was forked from one with a
    client can neither use it nor make another one: calls and `connect` raise FailedPrecondition.
    """

    # What pickle calls to make it once more, and the arguments. None if connect did not make this client.
    _pickled: tuple[Any, ...] | None = None

    def __init__(self, connection: core.Connection, reproducible: bool) -> None:
        """Use warpline.connect."""
        self._connection = connection
        self._reproducible = reproducible

    def __repr__(self) -> str:
        return f"<warpline.Client {self._connection}>"

    def __enter__(self) -> "Client":
        self._connection.check_open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Drops the resident tensors that this client still owns, and closes the connection. Dropping takes a few
        seconds at most. Calls in flight and later calls raise Cancelled. Memory stays shared with the server until
        the last call in flight has raised."""
        self._connection.close()

    def put(self, x: npt.ArrayLike, *, ttl: float | None = None, device: int | None = None,
            channels: int | None = None, timeout: float | None = None, request_id: str | None = None,
            progress: Progress | None = None) -> Tensor:
        """Makes a resident tensor of an array. The array travels in messages of 1 MiB, so only the memory of the device
        limits its size. The elements are sent from the array's own memory. An array that is not contiguous is copied as
        a whole first, unless only its rows are padded. Calls that fail and may be retried are repeated for at most 64
        MiB. If they still fail, the tensor is dropped. Raises ResourceExhausted, with the figures, if the memory for
        resident tensors is full.

        x: Array of any element type, rank 0 to 8 and size.
        ttl: Duration of the lease in seconds. The lease is renewed while the Tensor lives. None: the server's default.
        device: Ordinal among the server's devices (`info().devices`). None: the server's choice.
        channels: Connections to use at once, 1 to 64. None: one for each 2 MiB, at most 8.
        timeout: Seconds for the whole transfer.
        progress: Called with the bytes transferred so far and the total, and at the end.
        """
        return Tensor(self, put(self._connection, x, ttl, device, channels, timeout, request_id, progress), owned=True)

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float64, *,
              timeout: float | None = None) -> Array:
        """Makes an uninitialized array in memory that is shared with the server. The array and its views are never
        copied as an operand or as `out=`. The array is an ordinary one if no memory is shared, or if none is left. With
        shared_memory="always" in connect, that raises ResourceExhausted or Unimplemented instead. The memory lasts as
        long as the array or a view of it lives, even after the client is closed. A forked child does not have the
        memory.

        shape: Sizes of the axes.
        dtype: Any element type of the API. Raises TypeError for other types, and for a non-native byte order.
        """
        return empty(self._connection, shape, dtype, timeout)

    def tensor(self, id: str, *, renew: bool = False, timeout: float | None = None) -> Tensor:
        """Finds a resident tensor that somebody else owns. The tensor is not dropped with the returned object. This
        call renews the lease once. Raises NotFound if there is no such tensor.

        id: Id of the tensor. Keep it secret.
        renew: If true, the lease is renewed in the background while the object lives.
        """
        return Tensor(self, attach(self._connection, id, renew, timeout), owned=False)

    def tensors(self, *, timeout: float | None = None) -> list[TensorInfo]:
        """Lists the caller's resident tensors, including those that other clients of the same owner made. Tensors are
        in the order of their ids. Renews no lease.

        timeout: Seconds for each page of 1000 tensors.
        """
        return tensors(self._connection, timeout)

    def info(self, *, timeout: float | None = None) -> ServerInfo:
        """Asks the server for its version, devices, operations and limits."""
        return info(self._connection, timeout)

    def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """Asks grpc.health.v1 whether the server takes requests. A server answers False, for example, while it drains.
        If no server answers, this raises Unavailable after the retries.

        service: Name of one service, such as "warpline.v1.KernelService". "": the whole server.
        """
        return is_serving(self._connection, service, timeout)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._pickled is None:
            raise TypeError("this client cannot be pickled: warpline.connect makes such that can")
        return self._pickled

    def _call(self, make: Callable[..., Call], arguments: Sequence[Any], operands: int, keep: bool,
              options: CallOptions) -> Any:
        check_names(make.__name__, options)
        call = make(*arguments, calls.keep_of(keep, options.get("ttl"), options.get("out")))
        return self._send(call, [options.get("out")], options)[0]

    def _run(self, expressions: Sequence[Operators | Program | Array], inputs: dict[str, Input], keep: bool | Sequence[bool],
             free_after: Sequence[residents.Resident], out: Array | Sequence[Array | None] | None,
             options: CallOptions) -> Any:
        plans = plan_stages(expressions, inputs, keep, options["ttl"], out, free_after)
        plan = next(plans)
        while True:
            try:
                plan = plans.send(self._send(plan.call, plan.outs, options))
            except StopIteration as end:
                return end.value

    def _send(self, call: Call, outs: Sequence[Array | None], options: CallOptions) -> list[Array | Tensor]:
        connection = self._connection
        timeout, request_id, report, progress = settings_of(options, connection.timeout)
        request = calls.Request(call, outs, timeout, request_id, self._reproducible, report is not None, progress)
        brief = report is None and progress is None and call.keep is calls.INLINE and outs[0] is None
        result = connection.run(request.arguments, brief, request_id)
        if isinstance(result, np.ndarray):
            return [request.ordered(result)]
        results = request.results(result, report)
        if any(call.keep.results):
            return [Tensor(self, result, owned=True) if kept else result
                    for result, kept in zip(results, call.keep.results)]
        return results

    def _get(self, tensor: residents.Resident, out: Array | None, channels: int | None, timeout: float | None,
             request_id: str | None, progress: Progress | None) -> Array:
        return get(self._connection, tensor, out, channels, timeout, request_id, progress)

    def _drop(self, id: str, timeout: float | None) -> None:
        drop(self._connection, id, timeout)

    def _renew(self, id: str, ttl: float | None, timeout: float | None) -> TensorInfo:
        return renew(self._connection, id, ttl, timeout)
