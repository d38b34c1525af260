"""The blocking client."""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Literal, overload

import grpc
import numpy as np
import numpy.typing as npt

from warpline import calls, direct, residents, shared, transfers
from warpline.arrays import Array
from warpline.arguments import Axes
from warpline.calls import Call, Input, Report
from warpline.connections import Connection
from warpline.expressions import Operators
from warpline.leases import Leases
from warpline.names import Activation, Precision, ReduceOp
from warpline.programs import Program, compile_program
from warpline.reductions import Reductions
from warpline.reports import ServerInfo
from warpline.residents import TensorInfo
from warpline.sending import HEALTH_METHOD, MAX_RETRIES
from warpline.tensors import Tensor


class Client(Reductions):
    """Calls a warpline server. Threads may share it. It is a context manager, which closes it at the end.

    Arrays may be anything that NumPy takes, and whatever has `__array_interface__`, or `__dlpack__` and lies in host
    memory. They are sent in the order of axes in which they lie in memory, so that x.T costs as much as x. What is not
    dense is gathered while it is copied into the request. Arrays must not change before the call returns. Resident
    tensors (`put`) may stand wherever arrays may, and so may expressions of them.

    Results are read-only views of gRPC's message or of shared memory; `.copy()` makes a writable array of one. Elements
    of a view need not be aligned (`y.flags.aligned`): NumPy can use them, but C extensions may not.

    Most methods take these arguments:

    out: Array of the result's shape and dtype, in any layout, into which the elements are copied and which is returned.
        After an error nothing writes to it any more. The call waits for that if it must, for a minute at most: a server
        that has not answered by then is stopped. This also holds if the client is closed meanwhile.
    keep: Whether the result stays on the server, and comes as a Tensor.
    ttl: With keep=True, seconds that the lease of this Tensor lasts. It is renewed while the object lives. None: the
        server's default.
    variant: Name of the implementation that is to run (`info` lists them). "": the server's choice.
    timeout: Seconds from the call to the result, above 0 and finite. None: the client's own.
    request_id: Marks the request in the server's log: 1 to 128 printable ASCII characters. None: a new id.
    report: Function that is called with the Execution of the request.

    They raise a subclass of Error for whatever the server or gRPC refuses, after they have tried again what another
    attempt may mend (`max_retries` of connect). They raise TypeError for arrays that have no element type of the API or
    are not in host memory, and ValueError for words and timeouts that cannot be sent. Nothing has been sent then.

    Elements that travel in messages are copied several times in this process. On the way out, once into the request and
    once by gRPC; on the way in twice by gRPC, and once more with `out=`. gRPC takes and gives nothing but bytes
    objects, so that fewer copies are not possible. At most this takes four times the memory of what is sent, if as much
    is returned. Where memory is shared with the server, there is one copy on the way out, none on the way in, and one
    more with `out=`. Arrays from `empty` are not copied at all: the server reads them, and writes them as `out=`,
    itself.

    A client that connect has made without `credentials` can be pickled. What is unpickled is a client that connects
    anew by the same arguments, which include the token. It reads certificates on the machine where it is unpickled.
    """

    # Of connect; None: it was made in another way.
    _arguments: dict[str, Any] | None = None

    def __init__(self, target: str, *, timeout: float = 60.0, max_retries: int = MAX_RETRIES,
                 credentials: grpc.ChannelCredentials | None = None, token: str = "",
                 options: Sequence[tuple[str, Any]] = (),
                 shared_memory: shared.Mode = "auto", regions: str | None = None,
                 pool_bytes: int = shared.POOL_BYTES, reproducible: bool = False) -> None:
        """See warpline.connect."""
        self._reproducible = reproducible
        path = shared.region_socket(target, shared_memory, regions)
        pool_bytes = shared.check_pool_bytes(pool_bytes)
        connection = self._connection = Connection(target, timeout, max_retries, credentials, options, token)
        self._leases = Leases(connection)
        self._shared = shared.Shared(lambda: connection, path, shared_memory, pool_bytes, regions is not None)

    def __enter__(self) -> "Client":
        self._connection.check_open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Drops the resident tensors that this client still owns, which takes a few seconds at most, and ends the
        connection. Calls in flight and later ones raise Cancelled. Memory stays shared with the server until the
        last call in flight has raised."""
        self._leases.close()
        self._connection.close()
        self._shared.close()

    @overload
    def transpose(self, x: Input, axes: Iterable[int] | None = ..., *, variant: str = ..., out: Array | None = ...,
                  keep: Literal[False] = ..., ttl: None = ..., timeout: float | None = ...,
                  request_id: str | None = ..., report: Report | None = ...) -> Array: ...

    @overload
    def transpose(self, x: Input, axes: Iterable[int] | None = ..., *, variant: str = ..., keep: Literal[True],
                  ttl: float | None = ..., timeout: float | None = ..., request_id: str | None = ...,
                  report: Report | None = ...) -> Tensor: ...

    def transpose(self, x: Input, axes: Iterable[int] | None = None, *, variant: str = "", out: Array | None = None,
                  keep: bool = False, ttl: float | None = None, timeout: float | None = None,
                  request_id: str | None = None, report: Report | None = None) -> Array | Tensor:
        """Permutes the axes of an array.

        x: Array of any element type and rank 0 to 8.
        axes: The new order: axis i of the result is axis axes[i] of x. -1 is the last axis. None: all axes are
            reversed, as by NumPy. TypeError for None if x is an expression of which the number of axes is not known
            here.
        """
        call = direct.transpose(x, axes, variant, calls.keep_of(keep, ttl, out))
        return self._result(call, out, timeout, request_id, report)

    @overload
    def gemm(self, a: Input, b: Input, c: Input | None = ..., *, alpha: float | None = ..., beta: float | None = ...,
             bias: Input | None = ..., activation: Activation | None = ..., trans_a: bool = ..., trans_b: bool = ...,
             precision: Precision | None = ..., dtype: npt.DTypeLike | None = ..., variant: str = ...,
             out: Array | None = ..., keep: Literal[False] = ..., ttl: None = ..., timeout: float | None = ...,
             request_id: str | None = ..., report: Report | None = ...) -> Array: ...

    @overload
    def gemm(self, a: Input, b: Input, c: Input | None = ..., *, alpha: float | None = ..., beta: float | None = ...,
             bias: Input | None = ..., activation: Activation | None = ..., trans_a: bool = ..., trans_b: bool = ...,
             precision: Precision | None = ..., dtype: npt.DTypeLike | None = ..., variant: str = ...,
             keep: Literal[True], ttl: float | None = ..., timeout: float | None = ...,
             request_id: str | None = ..., report: Report | None = ...) -> Tensor: ...

    def gemm(self, a: Input, b: Input, c: Input | None = None, *, alpha: float | None = None,
             beta: float | None = None, bias: Input | None = None, activation: Activation | None = None,
             trans_a: bool = False, trans_b: bool = False, precision: Precision | None = None,
             dtype: npt.DTypeLike | None = None, variant: str = "", out: Array | None = None, keep: bool = False,
             ttl: float | None = None, timeout: float | None = None, request_id: str | None = None,
             report: Report | None = None) -> Array | Tensor:
        """Multiplies matrices: activation(alpha * op(a) @ op(b) + beta * c + bias), of shape [batch..., m, n]. op(x) is
        x, or x with its last two axes swapped. Views such as a.T are sent as they lie in memory, and swapped by the
        server.

        a: Array of shape [batch..., m, k], or [batch..., k, m] with trans_a; int8, float16, bfloat16, float32 or
            float64.
        b: Array of shape [batch..., k, n], or [batch..., n, k] with trans_b, of the dtype of a. The batch axes of a and
            b are broadcast as by np.matmul.
        c: Array of shape [batch..., m, n], of the result's dtype. Its batch axes are broadcast.
        alpha: Factor of the product. None: 1.
        beta: Factor of c. None: 1 if there is a c, else 0.
        bias: Array of shape [n], of the result's dtype, which is added to every row.
        activation: Function that is applied to each element at the end. None: none. "gelu" is its form with tanh.
        trans_a: Whether the last two axes of a are swapped.
        trans_b: Whether the last two axes of b are swapped.
        precision: Arithmetic of float32. None: "ieee".
        dtype: Data type of the result. None: int32 for int8, else that of a. float16 and bfloat16 may also give
            float32.
        """
        call = direct.gemm(a, b, c, alpha, beta, bias, activation, trans_a, trans_b, precision, dtype, variant,
                          calls.keep_of(keep, ttl, out))
        return self._result(call, out, timeout, request_id, report)

    @overload
    def matmul(self, a: Input, b: Input, *, dtype: npt.DTypeLike | None = ..., out: Array | None = ...,
               keep: Literal[False] = ..., ttl: None = ..., timeout: float | None = ...,
               request_id: str | None = ..., report: Report | None = ...) -> Array: ...

    @overload
    def matmul(self, a: Input, b: Input, *, dtype: npt.DTypeLike | None = ..., keep: Literal[True],
               ttl: float | None = ..., timeout: float | None = ..., request_id: str | None = ...,
               report: Report | None = ...) -> Tensor: ...

    def matmul(self, a: Input, b: Input, *, dtype: npt.DTypeLike | None = None, out: Array | None = None,
               keep: bool = False, ttl: float | None = None, timeout: float | None = None,
               request_id: str | None = None, report: Report | None = None) -> Array | Tensor:
        """Multiplies matrices: a @ b, of shape [batch..., m, n]. `gemm` has the details, and can do more on the way."""
        call = direct.gemm(a, b, None, None, None, None, None, False, False, None, dtype, "",
                           calls.keep_of(keep, ttl, out))
        return self._result(call, out, timeout, request_id, report)

    @overload
    def reduce(self, x: Input, op: ReduceOp, axis: Axes = ..., *, keepdims: bool = ...,
               dtype: npt.DTypeLike | None = ..., ddof: int = ..., variant: str = ..., out: Array | None = ...,
               keep: Literal[False] = ..., ttl: None = ..., timeout: float | None = ...,
               request_id: str | None = ..., report: Report | None = ...) -> Array: ...

    @overload
    def reduce(self, x: Input, op: ReduceOp, axis: Axes = ..., *, keepdims: bool = ...,
               dtype: npt.DTypeLike | None = ..., ddof: int = ..., variant: str = ..., keep: Literal[True],
               ttl: float | None = ..., timeout: float | None = ..., request_id: str | None = ...,
               report: Report | None = ...) -> Tensor: ...

    def reduce(self, x: Input, op: ReduceOp, axis: Axes = None, *, keepdims: bool = False,
               dtype: npt.DTypeLike | None = None, ddof: int = 0, variant: str = "", out: Array | None = None,
               keep: bool = False, ttl: float | None = None, timeout: float | None = None,
               request_id: str | None = None, report: Report | None = None) -> Array | Tensor:
        """Reduces an array over some of its axes. Results are those of NumPy, but for the differences listed in
        docs/operations.md#results-and-numpy.

        x: Array of any element type but the complex ones and the 8-bit floats.
        op: What is computed. If the axes have no elements, min, max, argmin, argmax and norminf raise InvalidArgument.
        axis: One axis, several, or None for all. argmin and argmax take one or all.
        keepdims: Whether the reduced axes stay, with size 1.
        dtype: Data type of the result. None: the operation's own. argmin, argmax, any, all and count_nonzero have no
            other.
        ddof: For var and std, as NumPy's. It must be 0 for all others.
        """
        call = direct.reduce(x, op, axis, keepdims, dtype, ddof, variant, calls.keep_of(keep, ttl, out))
        return self._result(call, out, timeout, request_id, report)

    def run(self, *expressions: Operators | Program, out: Array | Sequence[Array | None] | None = None,
            keep: bool | Sequence[bool] = False, ttl: float | None = None, timeout: float | None = None,
            request_id: str | None = None, report: Report | None = None, **inputs: Input) -> Any:
        """Computes expressions, or the outputs of a program, in one request. Gives one result for one expression, and a
        tuple for several. Only the steps that are needed are sent, at most 64, and each of their inputs once. What lies
        between steps stays on the server's device.

        expressions: Expressions of one program, or of resident tensors; or one Program that has outputs.
        out: For one result an array, for several a sequence of arrays and None.
        keep: Whether results stay on the server. For several results, a sequence says it for each.
        inputs: For each placeholder, by its name, an array or a resident tensor. TypeError if names are missing or
            unknown.
        """
        call = compile_program(expressions, inputs, keep, ttl, out)
        results = self._results(call, calls.outs_of(out, len(call.keeps)), timeout, request_id, report)
        return results[0] if len(results) == 1 else tuple(results)

    def put(self, x: npt.ArrayLike, *, ttl: float | None = None, device: int | None = None,
            channels: int | None = None, timeout: float | None = None, request_id: str | None = None) -> Tensor:
        """Makes a resident tensor of an array. It travels in messages of 1 MiB, so that its size is limited by nothing
        but the memory of the device. Elements are copied once here and once by gRPC; those of an array that is not
        dense once more, message by message. Calls that fail and may be tried again are repeated for at most 64 MiB. If
        that does not help, the tensor is dropped. Raises ResourceExhausted, with the figures, if the memory for
        resident tensors is full.

        x: Array of any element type, rank 0 to 8 and size.
        ttl: Seconds of the lease, which is renewed while the Tensor lives. None: the server's default.
        device: Ordinal among the server's devices (`info().devices`). None: the server's choice.
        channels: Connections to use at once, 1 to 64. None: 4 from 64 MiB on, else 1.
        timeout: Seconds for the whole transfer.
        """
        info = transfers.Put(self._connection, x, ttl, device, channels, timeout, request_id).run()
        return self._tensor(info)

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float64, *,
              timeout: float | None = None) -> Array:
        """Makes an array, without values of its own, in memory that is shared with the server. As an operand and as
        `out=`, neither it nor its views are copied anywhere. It is an ordinary array if no memory is shared, or if none
        is left, unless connect was told shared_memory="always": then ResourceExhausted or Unimplemented is raised. The
        memory stays for as long as the array or a view of it lives, also when the client is closed. A forked child does
        not have the memory.

        shape: Sizes of the axes.
        dtype: Any element type of the API. TypeError for others, and for another byte order than this machine's.
        """
        self._connection.check_open()
        attempts = self._connection.attempts(timeout, None)
        return self._connection.retry(attempts, lambda: self._shared.empty(shape, dtype, attempts.left()))

    def tensor(self, id: str, *, renew: bool = False, timeout: float | None = None) -> Tensor:
        """Finds a resident tensor that somebody else owns. It is not dropped with the object. This call renews its
        lease once. Raises NotFound if there is no such tensor.

        id: Id of the tensor, which is a secret.
        renew: Whether its lease is renewed in the background while the object lives.
        """
        body = residents.encode_renew(residents.check_id(id))
        response, request_id = self._connection.invoke(residents.RENEW_METHOD, body, timeout, None)
        info = calls.valid(residents.decode_created, response, request_id)
        return Tensor(self, self._connection, info, self._leases if renew else None, owned=False)

    def tensors(self, *, timeout: float | None = None) -> list[TensorInfo]:
        """Lists the caller's resident tensors, whoever made them, in the order of their ids. Renews no lease.

        timeout: Seconds for each page of 1000 tensors.
        """
        found: list[TensorInfo] = []
        token = ""
        while True:
            body = residents.encode_list(token)
            response, request_id = self._connection.invoke(residents.LIST_METHOD, body, timeout, None)
            page, token = calls.valid(residents.decode_list, response, request_id)
            found += page
            if not token:
                return found

    def info(self, *, timeout: float | None = None) -> ServerInfo:
        """Asks what the server is and can do."""
        return calls.decode_info(*self._connection.invoke(calls.INFO_METHOD, b"", timeout, None))

    def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """Asks grpc.health.v1 whether the server takes requests. False is the answer of a server, for example while it
        drains. Where there is no server, Unavailable is raised after the retries.

        service: Name of one service, such as "warpline.v1.KernelService". "": the whole server.
        """
        body = calls.encode_health(service)
        return calls.decode_health(*self._connection.invoke(HEALTH_METHOD, body, timeout, None))

    def __reduce__(self) -> tuple[Any, ...]:
        if self._arguments is None:
            raise TypeError("this client cannot be pickled: warpline.connect makes such that can, without credentials=")
        return _connect, (self._arguments,)

    def _result(self, call: Call, out: Array | None, timeout: float | None, request_id: str | None,
                report: Report | None) -> Any:
        return self._results(call, [out], timeout, request_id, report)[0]

    def _results(self, call: Call, outs: Sequence[Array | None], timeout: float | None, request_id: str | None,
                 report: Report | None) -> list[Array | Tensor]:
        attempts = self._connection.attempts(timeout, request_id)
        if self._reproducible:
            call.request.options.reproducible = True
        shipment = self._shared.ship(call, outs)
        try:
            response = self._connection.send(shipment, attempts)
            results = shipment.deliver(response, attempts.request_id, report)
        except BaseException:
            shipment.abandon()
            raise
        return [self._tensor(result) if isinstance(result, TensorInfo) else result for result in results]

    def _tensor(self, info: TensorInfo) -> Tensor:
        """Of one that is new, and ours."""
        return Tensor(self, self._connection, info, self._leases, owned=True)


def _connect(arguments: dict[str, Any]) -> Client:
    """What a pickled client becomes."""
    from warpline import connect
    return connect(**arguments)
