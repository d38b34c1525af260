"""Converts arguments other than arrays to the API's form: names of enumerations, axes, small integers."""

import contextlib
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import numpy as np

from warpline.names import Activation, Precision, ReduceOp

# One axis, several axes, or None for all axes. -1 is the last axis.
Axes = int | Iterable[int] | None


def _enum(names: Any, prefix: str, name: str | None, what: str) -> str | None:
    """The API's name of an enumeration value. `name` is the name in lower case, without the prefix; one of `names`."""
    if name is None:
        return None
    if name not in get_args(names):
        raise ValueError(f"{what} is {name!r}; there are {', '.join(get_args(names))}")
    return f"{prefix}{name.upper()}"


def reduce_op(name: str) -> str | None:
    return _enum(ReduceOp, "REDUCE_OP_", name, "op")


def activation_of(name: str | None) -> str | None:
    return _enum(Activation, "ACTIVATION_", name, "activation")


def precision_of(name: str | None) -> str | None:
    return _enum(Precision, "PRECISION_", name, "precision")


def fields_of(**fields: Any) -> dict[str, Any]:
    """The fields of a step as JSON, without those that are None, "", False or empty: these are defaults. Floats that
    JSON lacks are strings, as protobuf has them."""
    return {name: _json(value) for name, value in fields.items()
            if value is not None and value is not False and value != "" and value != []}


def _json(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def axes_of(axis: Axes) -> list[int]:
    """Converts axes for the wire, where an empty list means all. Raises ValueError for an empty tuple, with which NumPy
    reduces nothing."""
    if axis is None:
        return []
    # A 0-d array has __iter__ too, but is one number.
    given: Any = axis
    several = isinstance(given, Iterable) and getattr(given, "ndim", 1) > 0
    axes = [_integer(f"axis[{i}]", a) for i, a in enumerate(given)] if several else [_integer("axis", given)]
    if not axes:
        raise ValueError("axis is empty: there is nothing to reduce")
    return axes


def ddof_of(ddof: Any) -> int:
    """Converts ddof for the wire. Accepts floats without a fraction, as NumPy does. Raises TypeError for anything else
    but integers."""
    return _integer("ddof", int(ddof) if isinstance(ddof, (float, np.floating)) and ddof.is_integer() else ddof)


def _integer(name: str, value: Any) -> int:
    """Checks an integer for a 32-bit field. Raises TypeError for anything but an integer. A bool raises TypeError too,
    because it is probably another argument in the wrong place. Raises ValueError if the value does not fit."""
    integer = None
    if not isinstance(value, (bool, np.bool_)):
        with contextlib.suppress(TypeError):
            integer = operator.index(value)
    if integer is None:
        raise TypeError(f"{name} is {value!r}: expected an integer")
    if not -(1 << 31) <= integer < 1 << 31:
        raise ValueError(f"{name} is {integer}: expected an integer of 32 bits")
    return integer


def factor_of(name: str, value: float | None) -> float | None:
    """Checks a number for an optional float field. Raises TypeError for anything but a number or None."""
    if value is not None and not hasattr(value, "__float__") and not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r}: expected a number")
    return None if value is None else float(value)


def beta_of(beta: float | None, has_c: bool) -> float | None:
    """beta for the wire: if a c is given, the default is 1, so c is added."""
    return 1.0 if beta is None and has_c else factor_of("beta", beta)


def flag_of(name: str, value: bool) -> bool:
    """Checks a flag. Raises TypeError for anything but a bool or an integer: the string "no" would be true."""
    if not isinstance(value, (bool, np.bool_, int)):
        raise TypeError(f"{name} is {value!r}: expected True or False")
    return bool(value)


def perm_of(axes: Iterable[int], rank: int | None) -> list[int]:
    """Converts a permutation for the wire. It must have an entry for each axis, because negative entries, which the
    wire does not allow, are resolved here. Raises ValueError for an empty one unless the rank is 0: an empty
    permutation has another meaning on the wire. rank: number of axes of the array; None: not known."""
    if not isinstance(axes, Iterable):
        raise TypeError(f"axes is {axes!r}: expected an entry for each axis, as (1, 0)")
    perm = [_integer(f"axes[{i}]", axis) for i, axis in enumerate(axes)]
    if not perm and rank != 0:
        raise ValueError("axes is empty: expected an entry for each axis, or None, which reverses them")
    return from_front(perm, len(perm))


def reversed_axes(rank: int) -> list[int]:
    """The permutation that reverses all axes, for the wire. An empty permutation on the wire swaps the last two axes,
    which is the same for rank 2."""
    return [] if rank == 2 else list(reversed(range(rank)))


def from_front(axes: Sequence[int], rank: int) -> list[int]:
    """Resolves negative axes, which count from the last axis. Axes out of range stay unchanged: the server rejects
    them."""
    return [a + rank if -rank <= a < 0 else a for a in axes]
