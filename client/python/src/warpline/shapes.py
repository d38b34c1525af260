"""Predicts the element type and shape of results. A client needs them before the call to reserve shared memory for a
result. The rules are those of warpline.proto."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from warpline.dtypes import DTYPES
from warpline.v1 import warpline_pb2 as v1

_FLOATS = (v1.DATA_TYPE_F16, v1.DATA_TYPE_BF16, v1.DATA_TYPE_F32, v1.DATA_TYPE_F64)
_UNSIGNED = (v1.DATA_TYPE_U8, v1.DATA_TYPE_U16, v1.DATA_TYPE_U32, v1.DATA_TYPE_U64)

_LIKE_X = (v1.REDUCE_OP_MIN, v1.REDUCE_OP_MAX)
_SUMS = (v1.REDUCE_OP_SUM, v1.REDUCE_OP_PROD, v1.REDUCE_OP_SUMSQ)
_INDICES = (v1.REDUCE_OP_ARGMIN, v1.REDUCE_OP_ARGMAX, v1.REDUCE_OP_COUNT_NONZERO)
_TRUTHS = (v1.REDUCE_OP_ANY, v1.REDUCE_OP_ALL)


class Kind(NamedTuple):
    """Element type and shape of an array."""

    data_type: v1.DataType
    shape: tuple[int, ...]


class Unknown(Exception):
    """The operation is invalid. The server's error says why."""


def result_of(operation: str, fields: Any, inputs: Sequence[Kind]) -> Kind:
    """Predicts the result of an operation. operation: the name of its field in Step. fields: the message in that field,
    or the request with the same fields. Raises Unknown if there is no result."""
    rule = _RULES.get(operation)
    if rule is None:
        raise Unknown(operation)
    return rule(fields, inputs)


def outputs_of(program: v1.Program, inputs: Mapping[str, Kind]) -> list[Kind]:
    """Predicts the outputs of a program. Raises Unknown if one of its steps has no result."""
    kinds = dict(inputs)
    try:
        for step in program.steps:
            operation = step.WhichOneof("operation") or ""
            fields = getattr(step, operation, None)
            kinds[step.name] = result_of(operation, fields, [kinds[name] for name in step.inputs])
        return [kinds[name] for name in program.outputs]
    except KeyError as error:
        raise Unknown(str(error)) from error


def broadcast(x: Sequence[int], y: Sequence[int]) -> tuple[int, ...]:
    """Like NumPy's broadcast_shapes. Raises Unknown if the shapes cannot be broadcast together."""
    short, long = sorted((tuple(x), tuple(y)), key=len)
    padded = (1,) * (len(long) - len(short)) + short
    if any(a != b and 1 not in (a, b) for a, b in zip(padded, long)):
        raise Unknown(f"{list(x)} and {list(y)}")
    return tuple(b if a == 1 else a for a, b in zip(padded, long))


def _transpose(fields: Any, inputs: Sequence[Kind]) -> Kind:
    (x,) = _exactly(inputs, 1)
    rank = len(x.shape)
    perm = list(fields.perm)
    if not perm:
        perm = [*range(rank - 2), rank - 1, rank - 2] if rank >= 2 else list(range(rank))
    if sorted(perm) != list(range(rank)):
        raise Unknown(f"perm {perm}")
    return Kind(x.data_type, tuple(x.shape[axis] for axis in perm))


def _gemm(fields: Any, inputs: Sequence[Kind]) -> Kind:
    if len(inputs) < 2 or len(inputs[0].shape) < 2 or len(inputs[1].shape) < 2:
        raise Unknown("factors")
    a, b = inputs[:2]
    m, k = a.shape[-2:][::-1] if fields.trans_a else a.shape[-2:]
    l, n = b.shape[-2:][::-1] if fields.trans_b else b.shape[-2:]
    if k != l or a.data_type != b.data_type:
        raise Unknown("factors")
    own = v1.DATA_TYPE_I32 if a.data_type == v1.DATA_TYPE_I8 else a.data_type
    return Kind(fields.out_data_type or own, (*broadcast(a.shape[:-2], b.shape[:-2]), m, n))


def _reduce(fields: Any, inputs: Sequence[Kind]) -> Kind:
    (x,) = _exactly(inputs, 1)
    rank = len(x.shape)
    axes = {axis + rank if axis < 0 else axis for axis in fields.axes} or set(range(rank))
    if not axes <= set(range(rank)):
        raise Unknown(f"axes {list(fields.axes)}")
    sizes = [(1 if axis in axes else n) for axis, n in enumerate(x.shape) if fields.keepdims or axis not in axes]
    return Kind(fields.out_data_type or _reduced_type(fields.op, x.data_type), tuple(sizes))


def _reduced_type(op: v1.ReduceOp, x: v1.DataType) -> v1.DataType:
    if op in _INDICES:
        return v1.DATA_TYPE_I64
    if op in _TRUTHS:
        return v1.DATA_TYPE_BOOL
    if op in _LIKE_X or x in _FLOATS:
        return x
    if op in _SUMS:
        return v1.DATA_TYPE_U64 if x in _UNSIGNED else v1.DATA_TYPE_I64
    return v1.DATA_TYPE_F64


def _cast(fields: Any, inputs: Sequence[Kind]) -> Kind:
    (x,) = _exactly(inputs, 1)
    if fields.data_type not in DTYPES:
        raise Unknown
    return Kind(fields.data_type, x.shape)


def _scale(fields: Any, inputs: Sequence[Kind]) -> Kind:
    (x,) = _exactly(inputs, 1)
    return x


def _add(fields: Any, inputs: Sequence[Kind]) -> Kind:
    x, y = _exactly(inputs, 2)
    if x.data_type != y.data_type:
        raise Unknown("summands")
    return Kind(x.data_type, broadcast(x.shape, y.shape))


def _exactly(inputs: Sequence[Kind], count: int) -> Sequence[Kind]:
    if len(inputs) != count:
        raise Unknown(f"{len(inputs)} inputs")
    return inputs


_RULES = {"transpose": _transpose, "gemm": _gemm, "reduce": _reduce, "cast": _cast, "scale": _scale, "add": _add}
