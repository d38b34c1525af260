"""Arrays as operands: sent in the order of their axes in memory, with the fewest copies that the layouts allow."""

import reprlib
from collections.abc import Awaitable, Sequence
from typing import Any

import numpy as np

from warpline.dlpack import from_dlpack
from warpline.dtypes import data_type
from warpline.residents import Remote, Resident, ResidentOperand

# A NumPy array of any data type.
Array = np.ndarray[Any, Any]


def as_array(x: Any) -> Array:
    """Converts `x` to a NumPy array: by NumPy, and by `__dlpack__` where NumPy cannot, as for bfloat16. Copies nothing if
    the elements are in host memory already, and NumPy finds them there.

    Raises TypeError for what would lose something or is no array: masked elements, also where `x` only gives them or
    contains them; memory that the CPU cannot read; tensors, whose elements are elsewhere; sparse matrices and other
    Python objects; awaitables."""
    if type(x) is np.ndarray:
        return x
    if isinstance(x, Remote):
        raise TypeError(f"{x!r} is no array: it goes where tensors may, or np.asarray fetches its elements")
    if _is_sequence(x):
        x = _checked_elements(x)
    elif isinstance(x, Awaitable) and not hasattr(x, "__array__"):
        raise TypeError(f"this {type(x).__name__} is no array: await it")
    converted = _converted(x)
    if converted.dtype.hasobject:
        raise _no_numbers(x, converted)
    if type(converted) is np.ndarray:
        return converted
    mask = getattr(converted, "mask", None)
    if mask is not None and np.any(mask):
        raise TypeError(f"elements of this {type(x).__name__} are masked, and a server has no masks: fill it first "
                        "(filled), or take what is not masked (compressed)")
    # Subclasses may index and reshape differently: the rows of an np.matrix are matrices.
    return converted.view(np.ndarray)


def _converted(x: Any) -> Array:
    # PyTorch negates and conjugates when elements are read, which DLPack does not do.
    for method in ("resolve_conj", "resolve_neg"):
        if hasattr(x, method):
            x = getattr(x, method)()
    # Dask says what its parts are, and drops their masks.
    if isinstance(getattr(x, "_meta", None), np.ma.MaskedArray):
        x = x.compute()
    has_dlpack = hasattr(x, "__dlpack__")
    if has_dlpack and not hasattr(x, "__array__") and not hasattr(x, "__array_interface__"):
        return from_dlpack(x)
    try:
        return np.asanyarray(x)
    except (TypeError, RuntimeError, BufferError) as error:
        if not has_dlpack:
            raise
        try:
            return from_dlpack(x)
        except (RuntimeError, BufferError, ValueError):
            raise TypeError(f"NumPy cannot read this {type(x).__name__}: {error}") from error


def _is_sequence(x: Any) -> bool:
    """True for what NumPy reads element by element: sequences that have no elements in one piece of memory."""
    if not isinstance(x, Sequence) or isinstance(x, str) or hasattr(x, "__array__"):
        return False
    try:
        memoryview(x)  # type: ignore[arg-type]
    except TypeError:
        return True
    return False


def _checked_elements(x: Any) -> list[Any]:
    """The elements, where those that are arrays of any library are NumPy's: NumPy itself would drop masks, and cannot
    read some."""
    return [_checked_elements(element) if _is_sequence(element) else
            as_array(element) if hasattr(element, "__array__") and not isinstance(element, (np.generic, np.ndarray, Remote))
            or isinstance(element, np.ma.MaskedArray) else element for element in x]


def _no_numbers(x: Any, array: Array) -> TypeError:
    """The error for what NumPy makes an array of Python objects of."""
    name = type(x).__name__
    if isinstance(x, np.ndarray):
        return TypeError(f"warpline has no element type for NumPy's {array.dtype}: convert it, as by astype(float)")
    if hasattr(x, "toarray"):
        return TypeError(f"this {name} is sparse: its toarray() is an array")
    if hasattr(x, "__cuda_array_interface__"):
        return TypeError(f"this {name} is in the memory of a GPU: copy it to the host first, as by get() or "
                         "copy_to_host()")
    if array.ndim == 0:
        return TypeError("None is no array" if x is None else f"this {name} is no array, and NumPy makes none of it")
    others = (element for element in array.flat if not isinstance(element, (int, float, complex, np.generic)))
    return TypeError(f"elements of this {name} are Python objects such as {reprlib.repr(next(others, array.flat[0]))}: "
                     "convert them to numbers first")


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
