"""Data types and shapes of steps, inferred from those of their inputs."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from warpline import core
from warpline.dtypes import data_type

# Data type and shape of an array.
Kind = tuple[np.dtype[Any], tuple[int, ...]]

# Shapes that a step takes whatever its arguments are, if they are valid for any shape.
_ANY_SHAPE = {"gemm": (1, 1), "reduce": (1,) * 8}


def step_kind(kind: str, fields: Iterable[tuple[str, Any]], inputs: Sequence[Kind]) -> Kind | None:
    """The data type and shape of a step's result. None if the server would refuse the inputs.

    kind, fields: operation of the step, and the fields of its message.
    """
    names = tuple(f"x{i}" for i in range(len(inputs)))
    program = core.operation(kind, names, tuple(fields), "")
    kinds = core.infer(program, [(name, data_type(dtype), shape) for name, (dtype, shape) in zip(names, inputs)])
    return kinds[0] if kinds else None


@functools.lru_cache(maxsize=1024)
def step_dtype(kind: str, fields: tuple[tuple[str, Any], ...],
               inputs: tuple[np.dtype[Any] | None, ...]) -> np.dtype[Any] | None:
    """The data type of a step's result, which does not depend on shapes. None if an input's type is not known, and the
    result's type depends on it."""
    # Both operands have one type: a step of others is refused.
    known = next((dtype for dtype in inputs[:2] if dtype is not None), None)
    if kind not in _ANY_SHAPE:
        return known
    if known is None:
        return None
    inferred = step_kind(kind, fields, [(known, _ANY_SHAPE[kind])] * (2 if kind == "gemm" else 1))
    return inferred[0] if inferred else None
