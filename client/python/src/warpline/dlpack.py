"""Arrays of other libraries, through DLPack, without a copy."""

import ctypes
from typing import Any

import numpy as np

from warpline.dtypes import DTYPES

# Devices whose memory the CPU can read: kDLCPU, kDLCUDAHost, kDLROCMHost, kDLCUDAManaged.
_HOST_DEVICES = {1, 3, 11, 13}

# (type code, bits) of the element types that np.from_dlpack rejects.
_NOT_IN_NUMPY = {(4, 16): "DATA_TYPE_BF16", (10, 8): "DATA_TYPE_F8E4M3", (12, 8): "DATA_TYPE_F8E5M2"}


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("type_bits", ctypes.c_uint8),
        ("type_lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer_of.restype = ctypes.c_void_p


def from_dlpack(x: Any) -> np.ndarray[Any, Any]:
    """Makes a view of `x`, which has `__dlpack__`. Raises TypeError if the CPU cannot read its memory, or if the API
    lacks its element type."""
    device = int(x.__dlpack_device__()[0])
    if device not in _HOST_DEVICES:
        raise TypeError(f"the {type(x).__name__} is not in host memory (DLPack device {device}): copy it there first")
    try:
        return np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError) as error:
        # A capsule can be used only once, so this requests a new one.
        view = _read(x.__dlpack__())
        if view is None:
            raise TypeError(f"NumPy cannot read this {type(x).__name__}: {error}") from error
        return view


def _read(capsule: Any) -> np.ndarray[Any, Any] | None:
    """Makes a view of a capsule's tensor if NumPy lacks its element type; else returns None. The view keeps the capsule
    alive, which owns the memory."""
    tensor = _DLTensor.from_address(_pointer_of(capsule, b"dltensor"))
    name = _NOT_IN_NUMPY.get((tensor.type_code, tensor.type_bits))
    if name is None or tensor.type_lanes != 1:
        return None
    dtype = DTYPES[name]
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if 0 in shape:
        return np.empty(shape, dtype)
    if tensor.strides:
        strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
    else:
        strides = tuple(int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(tensor.ndim))
    if min(strides, default=0) < 0:
        raise TypeError("negative strides")
    extent = 1 + sum((n - 1) * stride for n, stride in zip(shape, strides))
    memory = (ctypes.c_uint8 * (extent * dtype.itemsize)).from_address(tensor.data + tensor.byte_offset)
    memory.capsule = capsule
    bits = np.frombuffer(memory, dtype=f"u{dtype.itemsize}")
    in_bytes = [stride * dtype.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(bits, shape, in_bytes).view(dtype)
