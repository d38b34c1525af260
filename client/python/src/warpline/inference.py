"""Data types and shapes of steps, which the library infers from those of their inputs."""

import functools
import json
from typing import Any

import numpy as np

from warpline import core, errors
from warpline.dtypes import data_type

# Data type and shape of an array.
Kind = tuple[np.dtype[Any], tuple[int, ...]]

# The fields on which the data type of a result depends.
_TYPE_FIELDS = ("op", "out_data_type")


@functools.lru_cache(maxsize=4096)
def step_kind(kind: str, fields: tuple[tuple[str, Any], ...], inputs: tuple[Kind, ...]) -> Kind:
    """The data type and shape of a step's result. Raises InvalidArgument if the server would refuse the inputs.

    kind, fields: operation of the step, and the fields of its message.
    """
    names = tuple(f"x{i}" for i in range(len(inputs)))
    if kind == "map":
        program = _map_program(dict(fields)["op"], names)
    else:
        program = core.operation(kind, names, fields, "")
    return core.infer(program, [(name, data_type(dtype), shape) for name, (dtype, shape) in zip(names, inputs)])[0]


@functools.lru_cache(maxsize=1024)
def _map_program(op: str, names: tuple[str, ...]) -> core.Program:
    """A map of one operation on all inputs."""
    node = {"op": f"MAP_OP_{op.upper()}", "operands": list(range(len(names)))}
    return core.program(json.dumps({"steps": [{"name": op, "inputs": names, "map": {"nodes": [node]}}],
                                    "outputs": [op]}))


@functools.lru_cache(maxsize=1024)
def step_dtype(kind: str, fields: tuple[tuple[str, Any], ...],
               inputs: tuple[np.dtype[Any] | None, ...]) -> np.dtype[Any] | None:
    """The data type of a step's result, which does not depend on shapes. None if an input's type is not known, and the
    result's type depends on it. For types that the server would refuse, the type of the inputs."""
    # Both operands have one type: a step of others is refused.
    known = next((dtype for dtype in inputs[:2] if dtype is not None), None)
    if kind not in ("gemm", "reduce", "scan") or known is None:
        return known
    matrices = ((known, (1, 1)),) * (2 if kind == "gemm" else 1)
    try:
        return step_kind(kind, tuple(field for field in fields if field[0] in _TYPE_FIELDS), matrices)[0]
    except (errors.InvalidArgument, errors.Unimplemented):
        return known
