"""The blocking client."""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from warpline import calls, core, direct, residents, targets
from warpline.arrays import Array
from warpline.arguments import Axes
from warpline.calls import Call, Input, Progress, Report
from warpline.expressions import Operators
from warpline.names import Activation, Precision, ReduceOp
from warpline.programs import Program, plan_run
from warpline.reductions import Reductions
from warpline.reports import ServerInfo
from warpline.residents import TensorInfo
from warpline.tensors import Tensor
from warpline.transfers import attach, drop, empty, get, info, is_serving, put, renew, tensors


class Client(Reductions):
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

    @overload
    def transpose(self, x: Input, axes: Iterable[int] | None = ..., *, variant: str = ..., out: Array | None = ...,
                  keep: Literal[False] = ..., ttl: None = ..., timeout: float | None = ...,
                  request_id: str | None = ..., report: Report | None = ...,
                  progress: Progress | None = ...) -> Array: ...

    @overload
    def transpose(self, x: Input, axes: Iterable[int] | None = ..., *, variant: str = ..., keep: Literal[True],
                  ttl: float | None = ..., timeout: float | None = ..., request_id: str | None = ...,
                  report: Report | None = ..., progress: Progress | None = ...) -> Tensor: ...

    def transpose(self, x: Input, axes: Iterable[int] | None = None, *, variant: str = "", out: Array | None = None,
                  keep: bool = False, ttl: float | None = None, timeout: float | None = None,
                  request_id: str | None = None, report: Report | None = None,
                  progress: Progress | None = None) -> Array | Tensor:
        """Permutes the axes of an array.

        x: Array of any element type and rank 0 to 8.
        axes: The new order: axis i of the result is axis axes[i] of x. -1 is the last axis. None: reverses all axes,
            as NumPy does. None raises TypeError if x is an expression whose number of axes the client does not know.
        """
        call = direct.transpose(x, axes, variant, calls.keep_of(keep, ttl, out))
        return self._result(call, out, timeout, request_id, report, progress)

    @overload
    def gemm(self, a: Input, b: Input, c: Input | None = ..., *, alpha: float | None = ..., beta: float | None = ...,
             bias: Input | None = ..., activation: Activation | None = ..., trans_a: bool = ..., trans_b: bool = ...,
             precision: Precision | None = ..., dtype: npt.DTypeLike | None = ..., variant: str = ...,
             out: Array | None = ..., keep: Literal[False] = ..., ttl: None = ..., timeout: float | None = ...,
             request_id: str | None = ..., report: Report | None = ..., progress: Progress | None = ...) -> Array: ...

    @overload
    def gemm(self, a: Input, b: Input, c: Input | None = ..., *, alpha: float | None = ..., beta: float | None = ...,
             bias: Input | None = ..., activation: Activation | None = ..., trans_a: bool = ..., trans_b: bool = ...,
             precision: Precision | None = ..., dtype: npt.DTypeLike | None = ..., variant: str = ...,
             keep: Literal[True], ttl: float | None = ..., timeout: float | None = ...,
             request_id: str | None = ..., report: Report | None = ..., progress: Progress | None = ...) -> Tensor: ...

    def gemm(self, a: Input, b: Input, c: Input | None = None, *, alpha: float | None = None,
             beta: float | None = None, bias: Input | None = None, activation: Activation | None = None,
             trans_a: bool = False, trans_b: bool = False, precision: Precision | None = None,
             dtype: npt.DTypeLike | None = None, variant: str = "", out: Array | None = None, keep: bool = False,
             ttl: float | None = None, timeout: float | None = None, request_id: str | None = None,
             report: Report | None = None, progress: Progress | None = None) -> Array | Tensor:
        """Multiplies matrices: activation(alpha * op(a) @ op(b) + beta * c + bias), of shape [batch..., m, n]. op(x) is
        x, or x with its last two axes swapped. Views such as a.T are sent in memory order, and the server swaps their
        axes.

        a: Array of shape [batch..., m, k], or [batch..., k, m] with trans_a; of integers, float16, bfloat16,
            float32, float64, complex64 or complex128. Integers are multiplied modulo 2^bits of the result.
        b: Array of shape [batch..., k, n], or [batch..., n, k] with trans_b. The batch axes of a and b are broadcast
            as by np.matmul.
        c: Array of shape [batch..., m, n]. Its batch axes are broadcast.
        alpha: Factor of the product. None: 1.
        beta: Factor of c. None: 1 if there is a c, else 0.
        bias: Array of shape [n]. It is added to every row. Only of floats.
        activation: Function that is applied to each element at the end. None: no function. Only of floats. "gelu" is the tanh form.
        trans_a: If true, the last two axes of a are swapped.
        trans_b: If true, the last two axes of b are swapped.
        precision: Arithmetic of float32. None: "ieee".
        dtype: Data type of the result. None: int32 for int8, else that of a and b. float16 and bfloat16 may also give
            float32, and int8 may give int8.

        Operands of different dtypes are promoted as by NumPy 2: the server casts a and b to np.result_type of their
        dtypes, then c and bias to the result's dtype, or all of them to that of c or bias if it is wider. With dtype=,
        c and bias are cast only to a wider type.
        """
        call = direct.gemm(a, b, c, alpha, beta, bias, activation, trans_a, trans_b, precision, dtype, variant,
                          calls.keep_of(keep, ttl, out))
        return self._result(call, out, timeout, request_id, report, progress)

    @overload
    def matmul(self, a: Input, b: Input, *, dtype: npt.DTypeLike | None = ..., out: Array | None = ...,
               keep: Literal[False] = ..., ttl: None = ..., timeout: float | None = ...,
               request_id: str | None = ..., report: Report | None = ..., progress: Progress | None = ...) -> Array: ...

    @overload
    def matmul(self, a: Input, b: Input, *, dtype: npt.DTypeLike | None = ..., keep: Literal[True],
               ttl: float | None = ..., timeout: float | None = ..., request_id: str | None = ...,
               report: Report | None = ..., progress: Progress | None = ...) -> Tensor: ...

    def matmul(self, a: Input, b: Input, *, dtype: npt.DTypeLike | None = None, out: Array | None = None,
               keep: bool = False, ttl: float | None = None, timeout: float | None = None,
               request_id: str | None = None, report: Report | None = None,
               progress: Progress | None = None) -> Array | Tensor:
        """Multiplies matrices: a @ b, of shape [batch..., m, n]. `gemm` has the details and more options."""
        call = direct.gemm(a, b, None, None, None, None, None, False, False, None, dtype, "",
                           calls.keep_of(keep, ttl, out))
        return self._result(call, out, timeout, request_id, report, progress)

    @overload
    def reduce(self, x: Input, op: ReduceOp, axis: Axes = ..., *, keepdims: bool = ...,
               dtype: npt.DTypeLike | None = ..., ddof: int = ..., variant: str = ..., out: Array | None = ...,
               keep: Literal[False] = ..., ttl: None = ..., timeout: float | None = ...,
               request_id: str | None = ..., report: Report | None = ..., progress: Progress | None = ...) -> Array: ...

    @overload
    def reduce(self, x: Input, op: ReduceOp, axis: Axes = ..., *, keepdims: bool = ...,
               dtype: npt.DTypeLike | None = ..., ddof: int = ..., variant: str = ..., keep: Literal[True],
               ttl: float | None = ..., timeout: float | None = ..., request_id: str | None = ...,
               report: Report | None = ..., progress: Progress | None = ...) -> Tensor: ...

    def reduce(self, x: Input, op: ReduceOp, axis: Axes = None, *, keepdims: bool = False,
               dtype: npt.DTypeLike | None = None, ddof: int = 0, variant: str = "", out: Array | None = None,
               keep: bool = False, ttl: float | None = None, timeout: float | None = None,
               request_id: str | None = None, report: Report | None = None,
               progress: Progress | None = None) -> Array | Tensor:
        """Reduces an array over some of its axes. Results equal NumPy's, except for the differences listed in
        docs/operations.md#results-and-numpy.

        x: Array of any element type except 8-bit floats. Complex numbers have sum, prod and mean.
        op: The reduction. If the axes have no elements, min, max, argmin, argmax and norminf raise InvalidArgument.
        axis: One axis, several axes, or None for all axes. argmin and argmax take one axis or all.
        keepdims: If true, the reduced axes stay, with size 1.
        dtype: Data type of the result. None: the operation's default. argmin, argmax, any, all and count_nonzero
            support no other.
        ddof: NumPy's ddof, for var and std. It must be 0 for all other reductions.
        """
        call = direct.reduce(x, op, axis, keepdims, dtype, ddof, variant, calls.keep_of(keep, ttl, out))
        return self._result(call, out, timeout, request_id, report, progress)

    def run(self, *expressions: Operators | Program, out: Array | Sequence[Array | None] | None = None,
            keep: bool | Sequence[bool] = False, ttl: float | None = None, timeout: float | None = None,
            request_id: str | None = None, report: Report | None = None, progress: Progress | None = None,
            free_after: Sequence[Tensor] = (),
            **inputs: Input) -> Any:
        """Computes expressions, or the outputs of a program, in one request. Returns one result for one expression, and
        a tuple for several. Only the necessary steps are sent, at most 256, and each of their inputs once. Intermediate
        results stay on the server's device.

        expressions: Expressions of one program, or of resident tensors; or one Program that has outputs. An expression
            that is given several times is computed and sent once. Its results are one array, or one Tensor.
        out: For one result, an array. For several results, a sequence of arrays and None.
        keep: If true, results stay on the server. For several results, a sequence can set it for each result.
        free_after: Tensors, at most 256, that the server drops when the request has succeeded. They may be inputs of
            it. They cost no call of their own. The request is not repeated if its response is lost.
        inputs: For each placeholder, by its name, an array or a resident tensor. Raises TypeError if names are missing
            or unknown.
        """
        plan = plan_run(expressions, inputs, keep, ttl, out, free_after)
        return plan.results(self._results(plan.call, plan.outs, timeout, request_id, report, progress))

    def put(self, x: npt.ArrayLike, *, ttl: float | None = None, device: int | None = None,
            channels: int | None = None, timeout: float | None = None, request_id: str | None = None) -> Tensor:
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
        """
        return Tensor(self, put(self._connection, x, ttl, device, channels, timeout, request_id), owned=True)

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

    def _result(self, call: Call, out: Array | None, timeout: float | None, request_id: str | None,
                report: Report | None, progress: Progress | None) -> Any:
        return self._results(call, [out], timeout, request_id, report, progress)[0]

    def _results(self, call: Call, outs: Sequence[Array | None], timeout: float | None, request_id: str | None,
                 report: Report | None, progress: Progress | None) -> list[Array | Tensor]:
        connection = self._connection
        timeout = connection.timeout if timeout is None else targets.check_timeout(timeout)
        request_id = targets.check_request_id(request_id)
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
             request_id: str | None) -> Array:
        return get(self._connection, tensor, out, channels, timeout, request_id)

    def _drop(self, id: str, timeout: float | None) -> None:
        drop(self._connection, id, timeout)

    def _renew(self, id: str, ttl: float | None, timeout: float | None) -> TensorInfo:
        return renew(self._connection, id, ttl, timeout)
