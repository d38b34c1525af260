"""The calls of the API: arguments to the bytes of a request, and the bytes of a response to arrays.

What the blocking and the asynchronous client have in common; neither of them looks at arrays.
"""

import io
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import grpc
import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from warpline import wire
from warpline.arrays import Array, Operand, decode_tensor
from warpline.dtypes import result_data_type
from warpline.errors import Error, Internal, ResourceExhausted
from warpline.v1 import warpline_pb2 as v1

# 2 GiB is where protobuf ends; 4 GiB is where gRPC's own length field wraps, silently.
_MAX_MESSAGE_BYTES = (2 << 30) - (64 << 10)

_KERNELS = "/warpline.v1.KernelService/"
INFO_METHOD = "/warpline.v1.InfoService/GetInfo"
HEALTH_METHOD = "/grpc.health.v1.Health/Check"

# What a caller is told of how its request was carried out.
Report = Callable[[v1.Execution], None]
Axes = int | Iterable[int] | None


class Call(NamedTuple):
    """A request, and what is left to do to each array of its response."""

    method: str
    body: bytes
    finish: Callable[[Array], Array] | None = None
    # Of a Run: a response has as many arrays, in NamedTensors.
    outputs: int | None = None


# --- What a caller may say in words


def _enum(kind: Any, prefix: str, name: str | None, what: str) -> Any:
    """The number of the value that is called `name`, in lower case and without the prefix."""
    if name is None:
        return 0
    numbers = {key.removeprefix(prefix).lower(): number for key, number in kind.items() if number}
    if name not in numbers:
        raise ValueError(f"{what} is {name!r}; there are {', '.join(numbers)}")
    return numbers[name]


def reduce_op(name: str) -> v1.ReduceOp:
    return _enum(v1.ReduceOp, "REDUCE_OP_", name, "op")


def activation_of(name: str | None) -> v1.Activation:
    return _enum(v1.Activation, "ACTIVATION_", name, "activation")


def precision_of(name: str | None) -> v1.Precision:
    return _enum(v1.Precision, "PRECISION_", name, "precision")


def axes_of(axis: Axes) -> list[int]:
    """Axes for the wire, where none means all. ValueError for an empty tuple: NumPy then reduces nothing."""
    if axis is None:
        return []
    # An array of no axes has __iter__ too, but is one number.
    given: Any = axis
    several = isinstance(given, Iterable) and getattr(given, "ndim", 1) > 0
    axes = [operator.index(a) for a in (given if several else [given])]
    if not axes:
        raise ValueError("axis is empty: there is nothing to reduce")
    return axes


def beta_of(beta: float | None, has_c: bool) -> float | None:
    """Whoever gives a c wants it added."""
    return 1.0 if beta is None and has_c else beta


def perm_of(perm: Iterable[int] | None) -> list[int]:
    """A permutation for the wire, where none means that the last two axes are swapped. As many axes as it has
    entries it must be for, so that negative ones, which the wire has not, can be counted here."""
    axes = [] if perm is None else [operator.index(a) for a in perm]
    return _from_front(axes, len(axes))


def _from_front(axes: Sequence[int], rank: int) -> list[int]:
    """Negative axes count from the last one. What is out of range stays so, for the server to refuse."""
    return [a + rank if -rank <= a < 0 else a for a in axes]


# --- Requests


def _body(fields: bytes, operands: Sequence[tuple[bytes, Operand]]) -> bytes:
    """A request: encoded fields, then each operand behind what introduces it. One copy of all. What is too
    large is refused before anything is copied."""
    size = len(fields) + sum(len(head) + operand.array.nbytes for head, operand in operands)
    if size > _MAX_MESSAGE_BYTES:
        raise ResourceExhausted(grpc.StatusCode.RESOURCE_EXHAUSTED,
                                f"the request has {size} bytes; one message can have {_MAX_MESSAGE_BYTES}")
    # getvalue() below hands over the bytes that it has collected, without a copy.
    body = io.BytesIO()
    body.write(fields)
    for head, operand in operands:
        body.write(head)
        for piece in operand.payload():
            body.write(piece)
    return body.getvalue()


def _field(number: int, operand: Operand) -> tuple[bytes, Operand]:
    """An operand as the field of that number."""
    header = operand.header()
    return wire.length_prefix(number, len(header) + operand.array.nbytes) + header, operand


def transpose(x: Any, perm: Iterable[int] | None, variant: str) -> Call:
    operand, axes = Operand(x), perm_of(perm)
    rank = operand.array.ndim
    if not operand.in_order:
        wanted = axes or [*range(rank - 2), rank - 1, rank - 2]
        if sorted(wanted) == list(range(rank)):
            axes = [operand.perm[a] for a in wanted]
        else:
            operand = Operand(operand.array, any_order=False)
    request = v1.TransposeRequest(perm=axes, variant=variant)
    number = v1.TransposeRequest.X_FIELD_NUMBER
    return Call(_KERNELS + "Transpose", _body(request.SerializeToString(), [_field(number, operand)]))


def matrix(x: Any) -> tuple[Operand, bool]:
    """A factor of a product, and whether what is sent is its transpose."""
    operand = Operand(x)
    if operand.in_order:
        return operand, False
    if operand.swaps_last_two:
        return operand, True
    return Operand(operand.array, any_order=False), False


def gemm(a: Any, b: Any, c: Any, alpha: float | None, beta: float | None, bias: Any, activation: str | None,
         trans_a: bool, trans_b: bool, precision: str | None, dtype: npt.DTypeLike | None, variant: str) -> Call:
    (a, a_swapped), (b, b_swapped) = matrix(a), matrix(b)
    operands = [_field(v1.GemmRequest.A_FIELD_NUMBER, a), _field(v1.GemmRequest.B_FIELD_NUMBER, b)]
    if c is not None:
        operands.append(_field(v1.GemmRequest.C_FIELD_NUMBER, Operand(c, any_order=False)))
    if bias is not None:
        operands.append(_field(v1.GemmRequest.BIAS_FIELD_NUMBER, Operand(bias, any_order=False)))
    request = v1.GemmRequest(
        trans_a=bool(trans_a) != a_swapped, trans_b=bool(trans_b) != b_swapped, alpha=alpha,
        beta=beta_of(beta, c is not None), precision=precision_of(precision),
        activation=activation_of(activation), out_data_type=result_data_type(dtype), variant=variant)
    return Call(_KERNELS + "Gemm", _body(request.SerializeToString(), operands))


def reduce(x: Any, op: str, axis: Axes, keepdims: bool, dtype: npt.DTypeLike | None, ddof: int,
           variant: str) -> Call:
    operand, axes = Operand(x), axes_of(axis)
    rank, finish = operand.array.ndim, None
    if not operand.in_order:
        logical = _from_front(axes, rank) or list(range(rank))
        index_of_all = op in ("argmin", "argmax") and len(logical) == rank
        if index_of_all or not set(logical) <= set(range(rank)):
            operand = Operand(operand.array, any_order=False)
        else:
            axes = [operand.perm[i] for i in logical] if axes else []
            finish = _axes_back(operand.perm, logical, keepdims)
    request = v1.ReduceRequest(op=reduce_op(op), axes=axes, keepdims=keepdims, ddof=ddof, variant=variant,
                               out_data_type=result_data_type(dtype))
    number = v1.ReduceRequest.X_FIELD_NUMBER
    return Call(_KERNELS + "Reduce", _body(request.SerializeToString(), [_field(number, operand)]), finish)


def _axes_back(perm: Sequence[int], reduced: Sequence[int], keepdims: bool) -> Callable[[Array], Array]:
    """Puts the axes of a result, which are in the order of what was sent, into that of the array."""
    kept = [perm[i] for i in range(len(perm)) if keepdims or i not in reduced]
    order = [sorted(kept).index(axis) for axis in kept]
    return lambda y: y.transpose(order)


def run(program: v1.Program, inputs: Sequence[tuple[str, Operand]]) -> Call:
    operands = []
    for name, operand in inputs:
        tensor, _ = _field(v1.NamedTensor.TENSOR_FIELD_NUMBER, operand)
        named = v1.NamedTensor(name=name).SerializeToString() + tensor
        prefix = wire.length_prefix(v1.RunRequest.INPUTS_FIELD_NUMBER, len(named) + operand.array.nbytes)
        operands.append((prefix + named, operand))
    body = _body(v1.RunRequest(program=program).SerializeToString(), operands)
    return Call(_KERNELS + "Run", body, outputs=len(program.outputs))


# --- Responses


def _defect(text: str, request_id: str) -> Error:
    return Internal(grpc.StatusCode.INTERNAL, text, request_id)


def _not_valid(error: Exception, request_id: str) -> Error:
    return _defect(f"the server's response is not valid: {error}", request_id)


def decode(call: Call, response: bytes, request_id: str, report: Report | None) -> list[Array]:
    """The arrays of a response, which are views of it. Internal if it is not a response to this call."""
    arrays: list[Array] = []
    execution = v1.Execution()
    try:
        for number, value in wire.fields(memoryview(response)):
            if number == 1:
                message = wire.submessage(value)
                if call.outputs is not None:
                    message = wire.submessage(dict(wire.fields(message))[v1.NamedTensor.TENSOR_FIELD_NUMBER])
                array = decode_tensor(message)
                arrays.append(call.finish(array) if call.finish else array)
            elif number == 2 and report is not None:
                execution.MergeFromString(bytes(wire.submessage(value)))
    except (ValueError, KeyError, DecodeError) as error:
        raise _not_valid(error, request_id) from error
    if len(arrays) != (call.outputs or 1):
        raise _defect(f"the server's response has {len(arrays)} arrays", request_id)
    if report is not None:
        report(execution)
    return arrays


def outs_of(out: Any, count: int) -> list[Array | None]:
    """What is given as `out` for `count` results: an array for one, a sequence for several."""
    if out is None:
        return [None] * count
    return [out] if count == 1 else list(out)


def deliver(arrays: Sequence[Array], outs: Sequence[Array | None]) -> list[Array]:
    """The arrays, or those of `outs` with the elements copied into them. ValueError where shape or dtype are
    not those of the result."""
    if len(arrays) != len(outs):
        raise ValueError(f"out has {len(outs)} arrays for {len(arrays)} results")
    delivered = []
    for array, out in zip(arrays, outs):
        if out is not None:
            if out.shape != array.shape or out.dtype != array.dtype:
                raise ValueError(f"out is {out.dtype}{list(out.shape)}, the result {array.dtype}{list(array.shape)}")
            np.copyto(out, array)
        delivered.append(array if out is None else out)
    return delivered


def decode_info(response: bytes, request_id: str) -> v1.GetInfoResponse:
    """Internal if it is none."""
    info = v1.GetInfoResponse()
    try:
        info.MergeFromString(response)
    except DecodeError as error:
        raise _not_valid(error, request_id) from error
    return info


def encode_health(service: str) -> bytes:
    name = service.encode()
    return wire.length_prefix(1, len(name)) + name if name else b""


def decode_health(response: bytes, request_id: str) -> bool:
    """HealthCheckResponse.status is SERVING. Internal if it is no such response."""
    try:
        return wire.integer(dict(wire.fields(memoryview(response))).get(1, 0)) == 1
    except wire.WireError as error:
        raise _not_valid(error, request_id) from error
