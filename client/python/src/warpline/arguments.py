"""What callers give beside arrays, as the wire has it: names of enumerations, axes, small integers."""

import contextlib
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from warpline.v1 import warpline_pb2 as v1

# One axis, several, or all of them. -1 is the last axis.
Axes = int | Iterable[int] | None


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
    axes = [_integer(f"axis[{i}]", a) for i, a in enumerate(given)] if several else [_integer("axis", given)]
    if not axes:
        raise ValueError("axis is empty: there is nothing to reduce")
    return axes


def ddof_of(ddof: Any) -> int:
    """For the wire. Floats without a fraction are taken, as by NumPy. TypeError for anything else but integers."""
    return _integer("ddof", int(ddof) if isinstance(ddof, (float, np.floating)) and ddof.is_integer() else ddof)


def _integer(name: str, value: Any) -> int:
    """For a field of 32 bits. TypeError for what is no integer, and for a bool, which is likely to be another argument
    that is in the wrong place. ValueError for what the field cannot hold."""
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
    """For a field that is a float or not there. TypeError for what is no number."""
    if value is not None and not hasattr(value, "__float__") and not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r}: expected a number")
    return value


def beta_of(beta: float | None, has_c: bool) -> float | None:
    """Whoever gives a c wants it added."""
    return 1.0 if beta is None and has_c else factor_of("beta", beta)


def flag_of(name: str, value: bool) -> bool:
    """TypeError for what is no truth value, as "no" would be true."""
    if not isinstance(value, (bool, np.bool_, int)):
        raise TypeError(f"{name} is {value!r}: expected True or False")
    return bool(value)


def perm_of(axes: Iterable[int], rank: int | None) -> list[int]:
    """A permutation for the wire. It must have an entry for each axis, so that negative ones, which the wire does not
    have, can be counted here. ValueError if it has none although there may be axes: the wire means something else by
    that. rank: of what is permuted; None: it is not known."""
    if not isinstance(axes, Iterable):
        raise TypeError(f"axes is {axes!r}: expected an entry for each axis, as (1, 0)")
    perm = [_integer(f"axes[{i}]", axis) for i, axis in enumerate(axes)]
    if not perm and rank != 0:
        raise ValueError("axes is empty: expected an entry for each axis, or None, which reverses them")
    return from_front(perm, len(perm))


def reversed_axes(rank: int) -> list[int]:
    """The permutation that reverses all axes, for the wire. By an empty one the wire means that the last two axes are
    swapped, which is the same if there are two."""
    return [] if rank == 2 else list(reversed(range(rank)))


def from_front(axes: Sequence[int], rank: int) -> list[int]:
    """Negative axes count from the last one. What is out of range stays so, for the server to refuse."""
    return [a + rank if -rank <= a < 0 else a for a in axes]
