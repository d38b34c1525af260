"""Element types: the mapping between NumPy dtypes and the API's data types.

NumPy has no bfloat16 and no 8-bit floats. If the package ml_dtypes is installed, arrays have its types.
Otherwise they have the structured dtypes below, with one unsigned field that holds the bits: `y["bf16"]`.
The bits cannot be mistaken for numbers, and the type survives copies, slices and .npy files. Both forms can
always be sent.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

BITS: dict[str, np.dtype[Any]] = {
    "DATA_TYPE_BF16": np.dtype([("bf16", "<u2")]),
    "DATA_TYPE_F8E4M3": np.dtype([("f8e4m3", "u1")]),
    "DATA_TYPE_F8E5M2": np.dtype([("f8e5m2", "u1")]),
}

try:
    import ml_dtypes

    ML_DTYPES: dict[str, np.dtype[Any]] = {
        "DATA_TYPE_BF16": np.dtype(ml_dtypes.bfloat16),
        "DATA_TYPE_F8E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
        "DATA_TYPE_F8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    }
except ImportError:
    ML_DTYPES = {}

_NUMPY: dict[str, np.dtype[Any]] = {
    "DATA_TYPE_BOOL": np.dtype("?"),
    "DATA_TYPE_U8": np.dtype("u1"),
    "DATA_TYPE_U16": np.dtype("<u2"),
    "DATA_TYPE_U32": np.dtype("<u4"),
    "DATA_TYPE_U64": np.dtype("<u8"),
    "DATA_TYPE_I8": np.dtype("i1"),
    "DATA_TYPE_I16": np.dtype("<i2"),
    "DATA_TYPE_I32": np.dtype("<i4"),
    "DATA_TYPE_I64": np.dtype("<i8"),
    "DATA_TYPE_F16": np.dtype("<f2"),
    "DATA_TYPE_F32": np.dtype("<f4"),
    "DATA_TYPE_F64": np.dtype("<f8"),
    "DATA_TYPE_C64": np.dtype("<c8"),
    "DATA_TYPE_C128": np.dtype("<c16"),
}

# The dtypes of results.
DTYPES: dict[str, np.dtype[Any]] = {**_NUMPY, **(ML_DTYPES or BITS)}

# The upper half of a float32: 8 bits of exponent, 7 of fraction. Without the package ml_dtypes it is a structured
# dtype of the bits. NumPy then writes integers into the bits: `np.ones(4, bfloat16)` and `astype(bfloat16)` do not
# give the numbers meant. The server can convert: `client.run(warpline.program().cast(x, warpline.bfloat16))`.
bfloat16 = DTYPES["DATA_TYPE_BF16"]
# OCP FP8 with 4 bits of exponent and 3 of fraction.
float8_e4m3fn = DTYPES["DATA_TYPE_F8E4M3"]
# OCP FP8 with 5 bits of exponent and 2 of fraction.
float8_e5m2 = DTYPES["DATA_TYPE_F8E5M2"]

# NumPy has several types for one size of integer (C's long and long long); kind and size identify them.
_BY_KIND = {(d.kind, d.itemsize): number for number, d in _NUMPY.items()}
_SPECIAL = {d: number for table in (BITS, ML_DTYPES) for number, d in table.items()}
_NAMES = {"bfloat16": bfloat16, "float8_e4m3fn": float8_e4m3fn, "float8_e5m2": float8_e5m2}


def data_type(dtype: np.dtype[Any]) -> str:
    """The API's name of a dtype, in any byte order, such as "DATA_TYPE_F32". Raises TypeError if the API lacks the type."""
    found = _SPECIAL.get(dtype)
    if found is None and dtype.kind != "V":
        found = _BY_KIND.get((dtype.kind, dtype.itemsize))
    if found is None:
        raise TypeError(f"warpline has no element type for NumPy's {dtype}")
    return found


def result_data_type(dtype: npt.DTypeLike | None) -> str:
    """The API's name of a dtype that a caller names. Accepts anything that np.dtype takes (so "f8" has 8 bytes),
    "bfloat16", "float8_e4m3fn" and "float8_e5m2". None: "", the operation's default."""
    if dtype is None:
        return ""
    if isinstance(dtype, str) and dtype in _NAMES:
        return data_type(_NAMES[dtype])
    return data_type(np.dtype(dtype))


def name_of(dtype: np.dtype[Any]) -> str:
    """The name of a dtype for messages: "bfloat16" for the structured dtype of its bits too."""
    return next((name for name, special in _NAMES.items() if special == dtype), str(dtype))
