"""Arrays of every element type, and their values as NumPy can compute with them."""

import numpy as np

import warpline
from messages import DTYPES
from messages import v1

ALL = {name.removeprefix("DATA_TYPE_").lower(): DTYPES[number] for name, number in v1.DataType.items() if number}
COMPLEX = ("c64", "c128")
F8 = ("f8e4m3", "f8e5m2")
REAL = [name for name in ALL if name not in COMPLEX + F8]
FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = [name for name in ALL if name[0] in "ui"]

# Relative error of one rounding.
EPS = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}


def accumulator(name):
    """The type in which products and sums of this one are accumulated."""
    return "f64" if name == "f64" else "f32"


def bits(array):
    """The elements as unsigned integers: for comparisons that must be exact, NaN included."""
    array = np.ascontiguousarray(array)
    size = array.dtype.itemsize
    if size == 16:
        return array.view("u8").reshape(*array.shape, 2) if array.shape else array.reshape(1).view("u8")
    return array.view(f"u{size}")


def make(name, values):
    """Values as an array of the type: rounded for floats."""
    dtype = ALL[name]
    if name == "bf16" and dtype.names:
        wide = np.ascontiguousarray(values, "f4").view("u4").astype("u8")
        return ((wide + 0x7FFF + (wide >> 16 & 1)) >> 16).astype("u2").view(dtype).reshape(np.shape(values))
    return np.asarray(values).astype(dtype)


def values(array):
    """The elements as f64, or as they are if they are not floats."""
    if array.dtype == warpline.bfloat16:
        wide = np.ascontiguousarray(array).view("u2").astype("u4") << 16
        return wide.view("f4").reshape(array.shape).astype("f8")
    return array.astype("f8") if array.dtype.kind == "f" else array


def any_bits(name, shape, rng):
    """Every pattern of bits that the type has."""
    if name == "bool":
        return rng.integers(0, 2, shape).astype("?")
    dtype = ALL[name]
    count = int(np.prod(shape, dtype="i8"))
    return rng.integers(0, 256, count * dtype.itemsize, dtype="u1").view(dtype).reshape(shape)


def small(name, shape, rng, low=-9, high=10):
    """Small integers, and for floats some fraction too."""
    if name == "bool":
        return rng.integers(0, 2, shape).astype("?")
    if name in FLOATS:
        return make(name, rng.uniform(low, high, shape))
    return rng.integers(max(low, 0) if name[0] == "u" else low, high, shape).astype(ALL[name])
