"""Resident tensors: their properties that the client knows."""

import math
import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpline import core
from warpline._core import ffi, lib
from warpline.downloads import call_here, call_of_numpy
from warpline.dtypes import data_type, name_of
from warpline.implements import NotHere, accepted


def short(id: str) -> str:
    """The part of an id that may be shown. The whole id is a secret."""
    return f"...{id[-8:]}"


@dataclass(frozen=True, repr=False)
class TensorInfo:
    """A resident tensor as its owner sees it."""

    id: str  # id of the tensor; a secret, which gives access to the elements
    dtype: np.dtype[Any]  # data type of the elements
    shape: tuple[int, ...]  # sizes of the axes
    device: int  # ordinal of the tensor's device
    nbytes: int  # size of the elements, in bytes
    missing_bytes: int  # how many of these bytes are still to be put
    ttl: float  # seconds until its lease ends if the tensor is neither used nor renewed

    def __repr__(self) -> str:
        return (f"TensorInfo(id={short(self.id)!r}, dtype={name_of(self.dtype)}, shape={self.shape}, "
                f"device={self.device}, nbytes={self.nbytes}, missing_bytes={self.missing_bytes}, ttl={self.ttl:g})")


class Remote:
    """Base class of objects whose elements are elsewhere. NumPy must not treat such an object as an array."""

    # Makes NumPy call our operator for array + tensor. Expressions and tensors of the blocking client have more.
    __array_ufunc__: Any = None

    # Functions of NumPy that are computed on the server.
    _functions: dict[Callable[..., Any], Callable[..., Any]] = {}

    def __array_function__(self, function: Callable[..., Any], types: Iterable[type], arguments: Any,
                           keywords: Any) -> Any:
        if not all(issubclass(kind, (np.ndarray, Remote)) for kind in types):
            return NotImplemented
        if (ours := self._functions.get(function)) is not None:
            try:
                return ours(*arguments, **accepted(function, ours, keywords))
            except NotHere:
                return call_here(function, function.__name__, arguments, keywords)
        return call_of_numpy(function, arguments, keywords)


class Resident(Remote):
    """The properties of a tensor that the client knows without asking the server."""

    _class_name = "warpline.Tensor"

    def __init__(self, handle: Any) -> None:
        """handle: a warpline_tensor of the library, which becomes this object's."""
        self._handle = ffi.gc(handle, lib.warpline_tensor_free)
        self._info = info_of(handle)

    def __repr__(self) -> str:
        return (f"<{self._class_name} {short(self.id)} {name_of(self.dtype)}{list(self.shape)} "
                f"on device {self.device}>")

    @property
    def id(self) -> str:
        """Name of the tensor at the server. Keep it secret: anyone who has the id may read and drop the tensor."""
        return self._info.id

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        return self._info.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self._info.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of the elements, in bytes."""
        return self._info.nbytes

    @property
    def device(self) -> int:
        """Ordinal of the tensor's device (`info().devices`)."""
        return self._info.device

    def _compute(self, expression: Any) -> Any:
        """Computes an expression that reads this tensor. Returns an array."""
        raise TypeError(f"{expression!r} is no array before it is computed: give it to a client's run")


class ResidentOperand:
    """A resident tensor in place of an arrays.Operand: only its id is sent."""

    in_order = True
    swaps_last_two = False

    def __init__(self, tensor: Resident) -> None:
        # Keeps the tensor alive, so its lease lasts until the call has read it.
        self.tensor = tensor
        self.data_type = data_type(tensor.dtype)
        self.rank = tensor.ndim
        self.shape = tensor.shape
        self.perm = tuple(range(self.rank))


def check_ttl(ttl: float | None) -> float:
    """Converts seconds for the library, where 0 means the default. Raises TypeError unless ttl is a number, and ValueError
    unless it is above zero and finite."""
    if ttl is None:
        return 0.0
    if not isinstance(ttl, numbers.Real):
        raise TypeError(f"ttl is {ttl!r}: a number of seconds, or None for the server's default")
    if not 0 < ttl < math.inf:
        raise ValueError(f"ttl is {ttl}: seconds above zero, and finite, or None for the server's default")
    return float(ttl)


def check_id(id: Any) -> str:
    """Checks an id. Raises TypeError if it is not an id, and ValueError for the form that the command line takes."""
    if not isinstance(id, str) or not id:
        raise TypeError(f"an id is a str that is not empty, not {type(id).__name__}")
    if id.startswith("@"):
        raise ValueError("the id begins with '@', by which the command line tells ids from files: leave that out")
    return id


def info_of(handle: Any) -> TensorInfo:
    """Reads the TensorInfo of a warpline_tensor."""
    dtype, shape = core.kind_of(lib.warpline_tensor_type(handle))
    return TensorInfo(str(ffi.string(lib.warpline_tensor_id(handle)), "ascii"), dtype, shape,
                      lib.warpline_tensor_device(handle), math.prod(shape) * dtype.itemsize,
                      lib.warpline_tensor_missing_bytes(handle), lib.warpline_tensor_lease_seconds(handle))
