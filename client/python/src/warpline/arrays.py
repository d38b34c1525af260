"""Arrays as operands: sent in the order of their axes in memory, with the fewest copies that the layouts allow."""

from collections.abc import Awaitable
from typing import Any

import numpy as np

from warpline.dlpack import from_dlpack
from warpline.dtypes import data_type
from warpline.residents import Remote, Resident, ResidentOperand

# A NumPy array of any data type.
Array = np.ndarray[Any, Any]

def as_array(x: Any) -> Array:
    """Converts `x` to a NumPy array. Copies nothing if `x` is an array, or has `__array_interface__`, or `__dlpack__`
    in host memory. Calls np.asarray for anything else. Raises TypeError for masked arrays (the mask would be lost),
    memory that the CPU cannot read, tensors (their elements are elsewhere), and awaitables."""
    if type(x) is np.ndarray:
        return x
    if isinstance(x, Remote):
        raise TypeError(f"{x!r} is no array: it goes where tensors may, or np.asarray fetches its elements")
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("a masked array cannot be sent: fill it first")
    if isinstance(x, Awaitable):
        raise TypeError(f"a {type(x).__name__} is no array: await it")
    if isinstance(x, np.ndarray):
        # Subclasses may index and reshape differently: the rows of an np.matrix are matrices.
        return x.view(np.ndarray)
    if not hasattr(x, "__array_interface__") and hasattr(x, "__dlpack__"):
        return from_dlpack(x)
    return np.asarray(x)


class Operand:
    """An array to send, with its axes in memory order. The library gathers arrays that are not contiguous in that
    order.

    array: the given array. stored: a view of the array with the axes in the order in which they are sent.
    perm: axis i of the array is axis perm[i] of `stored`. in_order: true if `perm` moves no axis.
    rank, nbytes: number of axes and size of the array.
    """

    def __init__(self, x: Any, any_order: bool = True) -> None:
        """any_order: if false, the axes are sent in the order of `x`, not in memory order."""
        self.array = as_array(x)
        self.data_type = data_type(self.array.dtype)
        self.rank = self.array.ndim
        self.nbytes = self.array.nbytes
        self.perm = tuple(range(self.rank))
        self.in_order = True
        self.stored = self.array
        if any_order and not self.array.flags.c_contiguous:
            order = _memory_order(self.array)
            if order != list(self.perm):
                self.perm = tuple(order.index(i) for i in self.perm)
                self.in_order = False
                self.stored = self.array.transpose(order)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes in the order in which they are sent."""
        return self.stored.shape

    @property
    def swaps_last_two(self) -> bool:
        """True if `stored` is the array with its last two axes swapped."""
        rank = self.rank
        return rank >= 2 and self.perm == (*range(rank - 2), rank - 1, rank - 2)


AnyOperand = Operand | ResidentOperand


def operand_of(x: Any, any_order: bool = True) -> AnyOperand:
    """Makes an operand of an array or a resident tensor."""
    return ResidentOperand(x) if isinstance(x, Resident) else Operand(x, any_order)


def _memory_order(x: Array) -> list[int]:
    """The axes in order of decreasing stride."""
    # An axis of size 1 may have any stride: use the stride of a contiguous array.
    strides, dense = [abs(stride) for stride in x.strides], x.itemsize
    for i in reversed(range(x.ndim)):
        if x.shape[i] == 1:
            strides[i] = dense
        dense = strides[i] * x.shape[i]
    axes = list(range(x.ndim))
    # Broadcast axes (stride 0) have no place in memory order.
    return axes if 0 in strides else sorted(axes, key=lambda i: -strides[i])
