"""The element types of the API, and how references hold, round and convert them.

Values of bf16 are held in arrays of f32, those of the 8-bit floats as bytes, and all others in their own type.
"""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class ElementType:
    name: str
    number: int  # in the API
    kind: str    # b: bool, u and i: integers, f: floats, c: complex, r: raw bytes
    held: np.dtype
    size: int
    bits: int = 0      # of the significand, with the implicit one
    smallest: int = 0  # exponent of the smallest subnormal number
    part: str = ""     # type of the parts of complex numbers
    least: int = 0     # of integers
    greatest: float = 0


def _types():
    types = [ElementType("bool", 1, "b", np.dtype("?"), 1)]
    for place, bits in enumerate((8, 16, 32, 64)):
        types.append(ElementType(f"u{bits}", 2 + place, "u", np.dtype(f"u{bits // 8}"), bits // 8, greatest=2**bits - 1))
        types.append(ElementType(f"i{bits}", 6 + place, "i", np.dtype(f"i{bits // 8}"), bits // 8, least=-2**(bits - 1),
                                 greatest=2**(bits - 1) - 1))
    types += [ElementType("f16", 10, "f", np.dtype("f2"), 2, 11, -24, greatest=65504.0),
              ElementType("bf16", 11, "f", np.dtype("f4"), 2, 8, -133, greatest=255 * 2.0**120),
              ElementType("f32", 12, "f", np.dtype("f4"), 4, 24, -149, greatest=float(np.finfo("f4").max)),
              ElementType("f64", 13, "f", np.dtype("f8"), 8, 53, -1074, greatest=float(np.finfo("f8").max)),
              ElementType("c64", 14, "c", np.dtype("c8"), 8, 24, -149, "f32", greatest=float(np.finfo("f4").max)),
              ElementType("c128", 15, "c", np.dtype("c16"), 16, 53, -1074, "f64", greatest=float(np.finfo("f8").max)),
              ElementType("f8e4m3", 16, "r", np.dtype("u1"), 1), ElementType("f8e5m2", 17, "r", np.dtype("u1"), 1)]
    return {t.name: t for t in types}


TYPES = _types()
BY_NUMBER = {t.number: t for t in TYPES.values()}
INTEGERS = [t.name for t in TYPES.values() if t.kind in "ui"]
FLOATS = [t.name for t in TYPES.values() if t.kind == "f"]
COMPLEX = [t.name for t in TYPES.values() if t.kind == "c"]
REAL = ["bool", *INTEGERS, *FLOATS]
NUMBERS = [*REAL, *COMPLEX]


def kind_of(name):
    return TYPES[name].kind


def api_name(name):
    return f"DATA_TYPE_{name.upper()}"


def named(api_name):
    return api_name.removeprefix("DATA_TYPE_").lower()


def unit(name):
    """The unit roundoff."""
    return 2.0**-TYPES[name].bits


def computed(name):
    """The type in which maps compute with a float: f32 or f64."""
    return "f64" if name == "f64" else "f32"


def to_bf16(wide):
    """Rounds once, from any wider type, to the nearest bf16, held as f32."""
    wide = np.asarray(wide)
    with np.errstate(all="ignore"):
        near = wide.astype(np.float32)
        if wide.dtype != np.float32:
            # Rounding to odd keeps what the second rounding must know.
            above = np.abs(near.astype(np.longdouble)) > np.abs(wide)
            inexact = (near != wide) & ~np.isnan(wide)
            near = np.where(above, np.nextafter(near, np.float32(0)), near).astype(np.float32)
            near = (near.view(np.uint32) | inexact.astype(np.uint32)).view(np.float32)
        bits = near.view(np.uint32)
        rounded = bits + np.uint32(0x7fff) + (bits >> np.uint32(16) & np.uint32(1))
        rounded = (rounded & np.uint32(0xffff0000)).view(np.float32)
        return np.where(np.isnan(near), np.float32(np.nan), rounded).astype(np.float32).reshape(wide.shape)


def rounded(name, wide):
    """Rounds real or complex numbers of a wider type to a floating-point type."""
    with np.errstate(all="ignore"):
        return to_bf16(wide) if name == "bf16" else np.asarray(wide).astype(TYPES[name].held)


def saturated(data, target):
    """Floats as integers: truncated, the nearest one in range, and 0 for NaN."""
    with np.errstate(all="ignore"):
        whole = np.trunc(data.astype(np.longdouble))
    one, bits = np.longdouble(1), 8 * target.size - (target.kind == "i")
    least, greatest = -np.ldexp(one, bits) if target.kind == "i" else 0, np.ldexp(one, bits) - 1
    inside = (whole >= least) & (whole <= greatest)
    result = np.where(inside, whole, 0).astype(target.held)
    result[whole > greatest] = int(target.greatest)
    result[whole < least] = target.least
    return result


def cast(data, source, target):
    """Converts by the rules of CastStep."""
    data = np.asarray(data)
    from_kind, to = kind_of(source), TYPES[target]
    if source == target:
        return data
    if to.kind == "b":
        return data != 0
    with np.errstate(all="ignore"):
        if to.kind in "ui":
            return saturated(data, to) if from_kind == "f" else data.astype(to.held)
        if target == "bf16" and from_kind in "ui":
            data = data.astype(np.longdouble)
        return rounded(target, data)


def encoded(name, data, odd_bools=False):
    """The bytes of the elements. `odd_bools`: true bools are any bytes but 0."""
    data = np.ascontiguousarray(data)
    if name == "bf16":
        return (data.view(np.uint32) >> np.uint32(16)).astype(np.uint16).tobytes()
    if name == "bool" and odd_bools:
        bytes_ = np.arange(1, data.size + 1, dtype=np.int64).reshape(data.shape) * 7 % 255 + 1
        return np.where(data, bytes_, 0).astype(np.uint8).tobytes()
    return data.tobytes()


def decoded(name, content, shape):
    """The elements of a result."""
    if name == "bf16":
        return (np.frombuffer(content, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(shape)
    if name == "bool":
        return (np.frombuffer(content, np.uint8) != 0).reshape(shape)
    return np.frombuffer(content, TYPES[name].held).reshape(shape)
