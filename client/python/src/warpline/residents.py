"""Resident tensors: their properties that the client knows, and the calls of TensorService."""

import math
import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from google.protobuf.message import DecodeError

from warpline import wire
from warpline.dtypes import DTYPES, data_type
from warpline.shapes import Kind
from warpline.v1 import warpline_pb2 as v1

_TENSORS = "/warpline.v1.TensorService/"
CREATE_METHOD = _TENSORS + "Create"
PUT_METHOD = _TENSORS + "Put"
GET_METHOD = _TENSORS + "Get"
DROP_METHOD = _TENSORS + "Drop"
RENEW_METHOD = _TENSORS + "Renew"
LIST_METHOD = _TENSORS + "List"


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
        return (f"TensorInfo(id={short(self.id)!r}, dtype={self.dtype}, shape={self.shape}, device={self.device}, "
                f"nbytes={self.nbytes}, missing_bytes={self.missing_bytes}, ttl={self.ttl:g})")


class Remote:
    """Base class of objects whose elements are elsewhere. NumPy must not treat such an object as an array."""

    # Makes NumPy call our operator for array + tensor.
    __array_ufunc__ = None


class Resident(Remote):
    """The properties of a tensor that the client knows without asking the server."""

    def __init__(self, info: TensorInfo) -> None:
        self._info = info

    def __repr__(self) -> str:
        return f"<warpline.Tensor {short(self.id)} {self.dtype}{list(self.shape)}>"

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
    # Bytes of elements in the request.
    nbytes = 0

    def __init__(self, tensor: Resident) -> None:
        # Keeps the tensor alive, so its lease lasts until the call has read it.
        self.tensor = tensor
        self.data_type = data_type(tensor.dtype)
        self.rank = tensor.ndim
        self.perm = tuple(range(self.rank))
        self.kind = Kind(self.data_type, tensor.shape)

    def header(self) -> bytes:
        """The message Tensor."""
        encoded: bytes = v1.Tensor(resident=v1.ResidentTensor(id=self.tensor.id)).SerializeToString()
        return encoded

    def payload(self) -> Iterator[memoryview]:
        return iter(())


# --- TensorService


def check_ttl(ttl: float | None) -> float:
    """Converts seconds for the wire, where 0 means the default. Raises TypeError unless ttl is a number, and ValueError
    unless it is above zero and finite."""
    if ttl is None:
        return 0.0
    if not isinstance(ttl, numbers.Real):
        raise TypeError(f"ttl is {ttl!r}: a number of seconds, or None for the server's default")
    if not 0 < ttl < math.inf:
        raise ValueError(f"ttl is {ttl}: seconds above zero, and finite, or None for the server's default")
    return ttl


def check_id(id: Any) -> str:
    """Checks an id. Raises TypeError if it is not an id, and ValueError for the form that the command line takes."""
    if not isinstance(id, str) or not id:
        raise TypeError(f"an id is a str that is not empty, not {type(id).__name__}")
    if id.startswith("@"):
        raise ValueError("the id begins with '@', by which the command line tells ids from files: leave that out")
    return id


def encode_create(number: v1.DataType, shape: tuple[int, ...], ttl: float | None, device: int | None) -> bytes:
    request = v1.CreateRequest(data_type=number, shape=shape, ttl_seconds=check_ttl(ttl), device=device)
    return cast(bytes, request.SerializeToString())


def encode_drop(id: str) -> bytes:
    return cast(bytes, v1.DropRequest(id=id).SerializeToString())


def encode_renew(id: str, ttl: float | None = None) -> bytes:
    return cast(bytes, v1.RenewRequest(id=id, ttl_seconds=check_ttl(ttl)).SerializeToString())


def encode_list(page_token: str) -> bytes:
    return cast(bytes, v1.ListRequest(page_token=page_token).SerializeToString())


def decode_info(message: v1.TensorInfo) -> TensorInfo:
    """Decodes the description of a tensor. Raises WireError if the message is invalid."""
    dtype, shape, id = DTYPES.get(message.data_type), tuple(message.shape), message.resident.id
    if dtype is None or not id:
        raise wire.WireError(f"a resident tensor of type {message.data_type} with an id of {len(id)} characters")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != message.size_bytes:
        raise wire.WireError(f"{message.size_bytes} bytes for {list(shape)} elements of {dtype}")
    return TensorInfo(id, dtype, shape, message.device, message.size_bytes, message.missing_bytes,
                      message.resident.ttl_seconds)


def decode_created(response: bytes) -> TensorInfo:
    """Decodes a CreateResponse or a RenewResponse, which have the same layout. Raises WireError for other bytes."""
    return decode_info(_parsed(v1.RenewResponse, response).tensor)


def decode_list(response: bytes) -> tuple[list[TensorInfo], str]:
    """Decodes one page, and the token of the next page. Raises WireError for other bytes."""
    page = _parsed(v1.ListResponse, response)
    return [decode_info(tensor) for tensor in page.tensors], page.next_page_token


def _parsed(kind: Any, message: bytes) -> Any:
    try:
        return kind.FromString(message)
    except DecodeError as error:
        raise wire.WireError(str(error)) from error


def decode_kept(message: memoryview, dtype: np.dtype[Any], shape: tuple[int, ...]) -> TensorInfo:
    """Decodes the ResidentTensor in a response. Another field names its device. Raises WireError for other bytes."""
    resident = _parsed(v1.ResidentTensor, bytes(message))
    if not resident.id:
        raise wire.WireError("a resident tensor without an id")
    return TensorInfo(resident.id, dtype, shape, 0, math.prod(shape) * dtype.itemsize, 0, resident.ttl_seconds)
