"""The blocking client."""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Literal, overload

import grpc
import numpy as np
import numpy.typing as npt

from warpline import calls, direct, residents, shared, transfers
from warpline.arrays import Array
from warpline.calls import Axes, Call, Input, Report
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
    """Calls a warpline server. Thread-safe; a context manager, which closes the connection.

    Arrays may be anything that NumPy takes, and whatever has `__array_interface__` or `__dlpack__` and lies in
    host memory. They are sent in the order of axes in which they lie in memory, so that x.T costs what x does;
    what is not dense is gathered while it is copied into the request. They must not change before the call
    returns. Resident tensors (`put`) stand wherever arrays may, and so do expressions of them.

    Results are read-only views of gRPC's message, or of shared memory: `.copy()` makes them writable, or give `out=`,
    an array of the result's shape and dtype, in any layout, into which the elements are copied and which is returned.
    Elements of a view need not be aligned (`y.flags.aligned`): NumPy copes, C extensions may not.

    Copies of the elements in this process, where they travel in messages: on the way out one of ours, into the
    request, and one of gRPC's; on the way in two of gRPC's and none of ours; one more with `out=`. gRPC takes and gives
    nothing but bytes objects, so that fewer are not to be had. Memory, at the most, for as much in as out: four times
    that. Where memory is shared with the server (connect's shared_memory): one on the way out, none on the way in, and
    one more with `out=`; none at all of arrays from `empty`, which the server reads, and as `out=` writes, itself.
    After any error nothing writes to an `out` any more, for which the call waits if it must, for a minute at the
    most: a server that has not answered by then is stopped. That holds too if the client is closed meanwhile.

    With keep=True the result stays on the server and comes as a Tensor, with a lease of `ttl` seconds, which is
    renewed while the object lives; None: the server's default.

    Every method takes
      timeout: seconds from the call to the result, above zero and finite; None: that of the client.
      request_id: 1 to 128 printable ASCII characters that mark the request in the server's log; None: a new one.
      report: called with the warpline.Execution of the request: backend, device, variants, stage times.
    and raises a subclass of warpline.Error for whatever the server or gRPC refuses: InvalidArgument with the
    field violations, Unimplemented, ResourceExhausted, DeadlineExceeded, Unavailable, Cancelled, Internal;
    for resident tensors NotFound and FailedPrecondition; Unauthenticated by servers that ask who calls. What another
    attempt may mend is tried again before that (connect's max_retries).
    TypeError is raised for arrays that have no element type of the API or are not in host memory, ValueError
    for words and timeouts that cannot be sent; nothing has been sent then.

    A client that connect has made without `credentials` can be pickled: what comes out is a client that connects anew
    by the same arguments, a token among them. Certificates are read where it comes out.
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
        """Drops the resident tensors that are still owned, which takes a few seconds at the most, and ends the
        connection. Calls in flight and later ones raise Cancelled. The memory that is shared with the server stays so
        until the last call in flight has raised."""
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
        """Permutes the axes of `x`, of any element type and rank 0 to 8.

        axes: axis i of the result is axis axes[i] of x, -1 the last one. None: the last two are swapped. That is
        not NumPy's default, which reverses all.
        variant: the name of one implementation (see info); "": the server's choice.
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
        """activation(alpha * op(a) @ op(b) + beta * c + bias): [batch..., m, n].

        a: [batch..., m, k], or [batch..., k, m] with trans_a; int8, float16, bfloat16, float32 or float64.
        b: [batch..., k, n], or [batch..., n, k] with trans_b; dtype of a. Batches are broadcast as by matmul.
        c: [batch..., m, n], of the result's dtype; its batch axes are broadcast. alpha: 1 if None. beta: if
        None 1 with a c, 0 without.
        bias: [n], of the result's dtype, added to every row. activation: "relu", or "gelu" (tanh form).
        precision: of float32: "ieee" (the default) or "tf32".
        dtype: of the result. None: int32 for int8, else that of a. float16 and bfloat16 may give float32.
        Transposed views (a.T) are sent as they lie in memory, with the flag turned.
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
        """a @ b: [batch..., m, n]. As gemm, which can do more on the way."""
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
        """Reduces `x`, of any element type but complex and 8-bit floats, over some of its axes.

        op: sum, prod, min, max, mean, argmin, argmax, any, all, count_nonzero, norm1, norm2, norminf, sumsq,
        var, std, logsumexp. Results as NumPy's, but floats keep the dtype of x, whatever the op, and sums are
        accumulated in float32 for float16, bfloat16 and float32.
        axis: one, several, or None for all; argmin and argmax: one or all. keepdims: keep them, with size 1.
        dtype: of the result, where it is not to be the op's own. ddof: of var and std, as NumPy's.
        Empty axes: min, max, argmin, argmax and norminf raise InvalidArgument.
        """
        call = direct.reduce(x, op, axis, keepdims, dtype, ddof, variant, calls.keep_of(keep, ttl, out))
        return self._result(call, out, timeout, request_id, report)

    def run(self, *expressions: Operators | Program, out: Array | Sequence[Array | None] | None = None,
            keep: bool | Sequence[bool] = False, ttl: float | None = None, timeout: float | None = None,
            request_id: str | None = None, report: Report | None = None, **inputs: Input) -> Any:
        """Computes expressions of one program (warpline.program, operators of resident tensors), or the outputs
        of a program that has some: one result for one, a tuple for several.

        Only the steps that they need are sent, at most 64, with their inputs, each once. What lies between
        stays on the server's device. out: an array for one result, a sequence of arrays or None for several.
        keep: True, or for several results a sequence of True and False, one for each. inputs: of each placeholder
        (warpline.placeholder) an array or a resident tensor, by its name; TypeError if they are others.
        """
        call = compile_program(expressions, inputs, keep, ttl, out)
        results = self._results(call, calls.outs_of(out, len(call.keeps)), timeout, request_id, report)
        return results[0] if len(results) == 1 else tuple(results)

    def put(self, x: npt.ArrayLike, *, ttl: float | None = None, device: int | None = None,
            channels: int | None = None, timeout: float | None = None, request_id: str | None = None) -> Tensor:
        """Makes a resident tensor of an array of any element type, rank 0 to 8 and size: it travels in messages
        of 1 MiB, and no other limit counts than the memory of the device.

        ttl: seconds of the lease, which is renewed while the Tensor lives; None: the server's default. device:
        ordinal among those of the server (info().devices); None: the server's choice. channels: connections to
        use at once, 1 to 64; None: 4 from 64 MiB on, else 1. timeout: of the whole.
        Elements are copied here once, and by gRPC once; what is not dense, once more, message by message.
        Calls that fail and may be tried again (connect's max_retries) are so for at most 64 MiB. If that does not
        help, the tensor is dropped. Errors: ResourceExhausted, with the figures, if the memory for resident
        tensors is full.
        """
        info = transfers.Put(self._connection, x, ttl, device, channels, timeout, request_id).run()
        return self._tensor(info)

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float64, *,
              timeout: float | None = None) -> Array:
        """An array, without values of its own, in memory that the server shares: as an operand, and as `out=`, neither
        it nor its views are copied anywhere. An ordinary array where no memory is shared, or no more of it, unless
        connect was told shared_memory="always": then ResourceExhausted or Unimplemented is raised.

        dtype: of any element type of the API; TypeError for others, and for another byte order than this machine's. The
        memory is the array's for as long as it or a view of it lives, also when the client is closed. A child that is
        forked does not have it.
        """
        self._connection.check_open()
        attempts = self._connection.attempts(timeout, None)
        return self._connection.retry(attempts, lambda: self._shared.empty(shape, dtype, attempts.left()))

    def tensor(self, id: str, *, renew: bool = False, timeout: float | None = None) -> Tensor:
        """The resident tensor of that id, which somebody else owns: it is not dropped with the object, nor, unless
        `renew`, renewed in the background. This call renews its lease once. NotFound if there is none."""
        body = residents.encode_renew(residents.check_id(id))
        response, request_id = self._connection.invoke(residents.RENEW_METHOD, body, timeout, None)
        info = calls.valid(residents.decode_created, response, request_id)
        return Tensor(self, self._connection, info, self._leases if renew else None, owned=False)

    def tensors(self, *, timeout: float | None = None) -> list[TensorInfo]:
        """The caller's resident tensors, whoever made them, in the order of their ids. Renews no lease. timeout:
        of each page of 1000."""
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
        """What the server is and can do: version, backend, devices, operations with their variants, limits."""
        return calls.decode_info(*self._connection.invoke(calls.INFO_METHOD, b"", timeout, None))

    def is_serving(self, service: str = "", *, timeout: float | None = None) -> bool:
        """grpc.health.v1: whether the server takes requests, or one of its services does.

        service: "" or a name like "warpline.v1.KernelService". False is the answer of a
        server, as while it drains; where there is none, Unavailable is raised after the retries (connect's
        max_retries).
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
