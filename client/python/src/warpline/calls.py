"""The calls of the API: converts arguments to the bytes of a request, and the bytes of a response to arrays.

The blocking and the asynchronous client share this code; neither reads the elements of arrays.
"""

import dataclasses
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import grpc
import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from warpline import copies, shapes, wire
from warpline.arguments import (Axes, activation_of, axes_of, beta_of, ddof_of, factor_of, flag_of, from_front, perm_of,
                                precision_of, reduce_op, reversed_axes)
from warpline.arrays import AnyOperand, Array, InRegion, SentOperand, decode_tensor, operand_of
from warpline.dtypes import result_data_type
from warpline.errors import Error, Internal, ResourceExhausted
from warpline.reports import Execution, ServerInfo, execution_of, server_info_of
from warpline.residents import Resident, TensorInfo, check_ttl
from warpline.shapes import Kind
from warpline.v1 import warpline_pb2 as v1

# protobuf supports messages up to 2 GiB. gRPC's length field silently overflows at 4 GiB.
_MAX_MESSAGE_BYTES = (2 << 30) - (64 << 10)

_KERNELS = "/warpline.v1.KernelService/"
INFO_METHOD = "/warpline.v1.InfoService/GetInfo"

# Called with the Execution of a request that succeeded.
Report = Callable[[Execution], None]
# Accepted in place of an array: anything that NumPy accepts, or a resident tensor.
Input = npt.ArrayLike | Resident


_T = TypeVar("_T")


class Field(NamedTuple):
    """An operand, and the number of its field in the request. Operands of a RunRequest also have a name."""

    number: int
    operand: AnyOperand
    name: str = ""


@dataclasses.dataclass(frozen=True)
class Call:
    """A request, and the function `finish` that is applied to each array of its response. No element has been read."""

    method: str
    # The request message without its operands.
    request: Any
    operands: Sequence[Field]
    finish: Callable[[Array], Array] | None = None
    # For each result: true if it stays on the server.
    keeps: Sequence[bool] = (False,)
    # Name of the operation. "": the request has a program, and the response has NamedTensors.
    operation: str = ""

    @property
    def outputs(self) -> Sequence[str]:
        """The name of each result, as sinks use it."""
        return ("",) if self.operation else list(self.request.program.outputs)

    @property
    def body(self) -> bytes:
        """The request with its elements. Makes one copy of the elements."""
        return encode(self, [field.operand for field in self.operands])

    def results(self) -> list[Kind] | None:
        """Element types and shapes of the server's results, before `finish`. None if the call is invalid."""
        try:
            if self.operation:
                kinds = [field.operand.kind for field in self.operands]
                return [shapes.result_of(self.operation, self.request, kinds)]
            return shapes.outputs_of(self.request.program, {x.name: x.operand.kind for x in self.operands})
        except shapes.Unknown:
            return None


class Keep(NamedTuple):
    """For each result, true if it stays on the server; and their lease in seconds, 0 for the default."""

    results: Sequence[bool] = (False,)
    ttl: float = 0.0

    def options(self, names: Sequence[str] = ("",)) -> v1.RequestOptions | None:
        """The request options for results of these names; None if all results are returned inline."""
        resident = v1.ResidentSink(ttl_seconds=self.ttl)
        sinks = [v1.Sink(output=name, resident=resident) for kept, name in zip(self.results, names) if kept]
        return v1.RequestOptions(sinks=sinks) if sinks else None


INLINE = Keep()


def keep_of(keep: bool | Sequence[bool], ttl: float | None, out: Any, count: int = 1) -> Keep:
    """Makes the Keep of `count` results from a bool for all, or one bool for each. Raises ValueError if the arguments
    contradict each other."""
    results = [keep] * count if isinstance(keep, (bool, np.bool_)) else list(keep)
    if len(results) != count or not all(isinstance(one, (bool, np.bool_)) for one in results):
        raise ValueError(f"keep is {keep!r}: True, False, or one of them for each of {count} results")
    if ttl is not None and not any(results):
        raise ValueError("ttl is given, but no result is kept: keep=True")
    if any(kept and one is not None for kept, one in zip(results, outs_of(out, count))):
        raise ValueError("out is given for a result that is kept on the server")
    return Keep(results, check_ttl(ttl))


# --- Requests


def encode(call: Call, operands: Sequence[SentOperand], sinks: Sequence[v1.Sink] = ()) -> bytes:
    """Encodes a request, with `operands` in place of the call's own, and `sinks` in addition to its own. Makes one copy
    of the elements in the request. Raises ResourceExhausted for a request that is too large, before any copy."""
    request = call.request
    if sinks:
        request = type(request)()
        request.CopyFrom(call.request)
        request.options.sinks.extend(sinks)
    fields = request.SerializeToString()
    heads = [_head(field, operand) for field, operand in zip(call.operands, operands)]
    size = len(fields) + sum(len(head) + operand.nbytes for head, operand in zip(heads, operands))
    if size > _MAX_MESSAGE_BYTES:
        raise ResourceExhausted(grpc.StatusCode.RESOURCE_EXHAUSTED,
                                f"the request has {size} bytes; one message can have {_MAX_MESSAGE_BYTES}")
    # getvalue() below returns the collected bytes without a copy.
    body = io.BytesIO()
    body.write(fields)
    for head, operand in zip(heads, operands):
        body.write(head)
        for piece in operand.payload():
            body.write(piece)
    return body.getvalue()


def _head(field: Field, operand: SentOperand) -> bytes:
    """The bytes before the elements of an operand in its field."""
    header = operand.header()
    if not field.name:
        return wire.length_prefix(field.number, len(header) + operand.nbytes) + header
    tensor = wire.length_prefix(v1.NamedTensor.TENSOR_FIELD_NUMBER, len(header) + operand.nbytes) + header
    named = v1.NamedTensor(name=field.name).SerializeToString() + tensor
    return wire.length_prefix(field.number, len(named) + operand.nbytes) + named


def transpose(x: Any, axes: Iterable[int] | None, variant: str, keep: Keep = INLINE) -> Call:
    operand = operand_of(x)
    rank = operand.rank
    perm = reversed_axes(rank) if axes is None else perm_of(axes, rank)
    if not operand.in_order:
        wanted = perm or [1, 0]
        if sorted(wanted) == list(range(rank)):
            perm = [operand.perm[a] for a in wanted]
        else:
            operand = operand_of(x, any_order=False)
    request = v1.TransposeRequest(perm=perm, variant=variant, options=keep.options())
    fields = [Field(v1.TransposeRequest.X_FIELD_NUMBER, operand)]
    return Call(_KERNELS + "Transpose", request, fields, keeps=keep.results, operation="transpose")


def matrix(x: Any) -> tuple[AnyOperand, bool]:
    """The operand of a factor of a product, and True if its transpose is sent."""
    operand = operand_of(x)
    if operand.in_order:
        return operand, False
    if operand.swaps_last_two:
        return operand, True
    return operand_of(x, any_order=False), False


def gemm(a: Any, b: Any, c: Any, alpha: float | None, beta: float | None, bias: Any, activation: str | None,
         trans_a: bool, trans_b: bool, precision: str | None, dtype: npt.DTypeLike | None, variant: str,
         keep: Keep = INLINE) -> Call:
    (a, a_swapped), (b, b_swapped) = matrix(a), matrix(b)
    fields = [Field(v1.GemmRequest.A_FIELD_NUMBER, a), Field(v1.GemmRequest.B_FIELD_NUMBER, b)]
    if c is not None:
        fields.append(Field(v1.GemmRequest.C_FIELD_NUMBER, operand_of(c, any_order=False)))
    if bias is not None:
        fields.append(Field(v1.GemmRequest.BIAS_FIELD_NUMBER, operand_of(bias, any_order=False)))
    request = v1.GemmRequest(
        trans_a=flag_of("trans_a", trans_a) != a_swapped, trans_b=flag_of("trans_b", trans_b) != b_swapped,
        alpha=factor_of("alpha", alpha), beta=beta_of(beta, c is not None), precision=precision_of(precision),
        activation=activation_of(activation), out_data_type=result_data_type(dtype), variant=variant,
        options=keep.options())
    return Call(_KERNELS + "Gemm", request, fields, keeps=keep.results, operation="gemm")


def reduce(x: Any, op: str, axis: Axes, keepdims: bool, dtype: npt.DTypeLike | None, ddof: int,
           variant: str, keep: Keep = INLINE) -> Call:
    # `finish` cannot reorder the axes of a result that stays on the server, so send the axes in the order of x.
    operand, axes = operand_of(x, any_order=not any(keep.results)), axes_of(axis)
    keepdims = flag_of("keepdims", keepdims)
    rank, finish = operand.rank, None
    if not operand.in_order:
        logical = from_front(axes, rank) or list(range(rank))
        index_of_all = op in ("argmin", "argmax") and len(logical) == rank
        if index_of_all or not set(logical) <= set(range(rank)):
            operand = operand_of(x, any_order=False)
        else:
            axes = [operand.perm[i] for i in logical] if axes else []
            finish = _axes_back(operand.perm, logical, keepdims)
    request = v1.ReduceRequest(op=reduce_op(op), axes=axes, keepdims=keepdims, ddof=ddof_of(ddof), variant=variant,
                               out_data_type=result_data_type(dtype), options=keep.options())
    fields = [Field(v1.ReduceRequest.X_FIELD_NUMBER, operand)]
    return Call(_KERNELS + "Reduce", request, fields, finish, keep.results, "reduce")


def _axes_back(perm: Sequence[int], reduced: Sequence[int], keepdims: bool) -> Callable[[Array], Array]:
    """Makes a function that reorders the axes of a result from the order sent to the order of the array."""
    kept = [perm[i] for i in range(len(perm)) if keepdims or i not in reduced]
    order = [sorted(kept).index(axis) for axis in kept]
    return lambda y: y.transpose(order)


def run(program: v1.Program, inputs: Sequence[tuple[str, AnyOperand]], keep: Keep) -> Call:
    fields = [Field(v1.RunRequest.INPUTS_FIELD_NUMBER, operand, name) for name, operand in inputs]
    request = v1.RunRequest(program=program, options=keep.options(program.outputs))
    return Call(_KERNELS + "Run", request, fields, keeps=keep.results)


# --- Responses


def _defect(text: str, request_id: str) -> Error:
    return Internal(grpc.StatusCode.INTERNAL, text, request_id)


def not_valid(error: Exception, request_id: str) -> Error:
    return _defect(f"the server's response is not valid: {error}", request_id)


def valid(decode: Callable[[bytes], _T], response: bytes, request_id: str) -> _T:
    """Decodes a response with `decode`. Raises Internal if the response is invalid."""
    try:
        return decode(response)
    except wire.WireError as error:
        raise not_valid(error, request_id) from error


def decode(call: Call, response: bytes, request_id: str, report: Report | None,
           fetch: Callable[[int, InRegion], Array | None] = lambda i, found: None) -> list[Array | TensorInfo]:
    """Decodes the results of a response. Arrays are views of the response or come from `fetch`. Results that stay
    on the server are TensorInfos. Raises Internal if this is not a response to `call`.

    fetch: returns the array of a result in shared memory, given its number; None if the location is wrong.
    """
    results: list[Array | TensorInfo] = []
    execution = v1.Execution()
    try:
        for number, value in wire.fields(memoryview(response)):
            if number == 1:
                message = wire.submessage(value)
                if not call.operation:
                    message = wire.submessage(dict(wire.fields(message))[v1.NamedTensor.TENSOR_FIELD_NUMBER])
                result = decode_tensor(message)
                if isinstance(result, InRegion):
                    fetched = fetch(len(results), result)
                    if fetched is None:
                        raise wire.WireError("a result is where it was not to be")
                    result = fetched
                if call.finish and not isinstance(result, TensorInfo):
                    result = call.finish(result)
                results.append(result)
            elif number == 2 and (report is not None or any(call.keeps)):
                execution.MergeFromString(bytes(wire.submessage(value)))
    except (ValueError, KeyError, DecodeError) as error:
        raise not_valid(error, request_id) from error
    if [isinstance(result, TensorInfo) for result in results] != list(call.keeps):
        raise _defect(f"the server's response has {len(results)} results, or not those on the server that were "
                      f"to stay there", request_id)
    if report is not None:
        report(execution_of(execution))
    return [dataclasses.replace(result, device=execution.device) if isinstance(result, TensorInfo) else result
            for result in results]


def outs_of(out: Any, count: int) -> list[Array | None]:
    """The `out` argument as a list, for `count` results: `out` is an array for one, a sequence for several."""
    if out is None:
        return [None] * count
    return [out] if count == 1 else list(out)


def deliver(results: Sequence[Array | TensorInfo], outs: Sequence[Array | None]) -> list[Array | TensorInfo]:
    """Returns the results, or the arrays of `outs` after copying the elements into them. Raises ValueError if the shape
    or dtype of an array differs from its result."""
    if len(results) != len(outs):
        raise ValueError(f"out has {len(outs)} arrays for {len(results)} results")
    delivered: list[Array | TensorInfo] = []
    for array, out in zip(results, outs):
        if out is not None and not isinstance(array, TensorInfo):
            if out.shape != array.shape or out.dtype != array.dtype:
                raise ValueError(f"out is {out.dtype}{list(out.shape)}, the result {array.dtype}{list(array.shape)}")
            # The server may have written the result to `out` already.
            if array is not out:
                copies.copy(out, array)
        delivered.append(array if out is None else out)
    return delivered


def decode_info(response: bytes, request_id: str) -> ServerInfo:
    """Decodes a GetInfoResponse. Raises Internal if it is invalid."""
    info = v1.GetInfoResponse()
    try:
        info.MergeFromString(response)
    except DecodeError as error:
        raise not_valid(error, request_id) from error
    return server_info_of(info)


def encode_health(service: str) -> bytes:
    name = service.encode()
    return wire.length_prefix(1, len(name)) + name if name else b""


def decode_health(response: bytes, request_id: str) -> bool:
    """True if HealthCheckResponse.status is SERVING. Raises Internal if the response is invalid."""
    try:
        return wire.integer(dict(wire.fields(memoryview(response))).get(1, 0)) == 1
    except wire.WireError as error:
        raise not_valid(error, request_id) from error
