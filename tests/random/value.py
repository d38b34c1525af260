"""A tensor as a reference knows it: its elements, and how far a result may be from them."""

import dataclasses

import numpy as np

from element_types import TYPES, kind_of, rounded, unit


class Unsuitable(Exception):
    """The reference makes no promise for these operands: the generator chooses others."""


@dataclasses.dataclass
class Value:
    type: str
    data: np.ndarray
    # Bound of the error of each element; infinity where nothing is promised. None: the elements are exact.
    error: "np.ndarray | None" = None
    # False if NumPy and the server may disagree about the signs of zeros.
    signed_zeros: bool = True
    # True for a result of unknown size, which no step can read.
    final: bool = False

    @property
    def shape(self):
        return self.data.shape

    @property
    def kind(self):
        return kind_of(self.type)

    @property
    def exact(self):
        return self.error is None

    def __str__(self):
        return f"{self.type}[{', '.join(map(str, self.shape))}]"


def need_exact(*values):
    """Only steps that move elements read results of rounding: errors are not propagated through arithmetic."""
    if not all(v.exact for v in values):
        raise Unsuitable("an operand is not exact")


def exact(type_, data, like=()):
    """A value without error. The signs of its zeros are as certain as those of the values in `like`."""
    return Value(type_, np.asarray(data, TYPES[type_].held), signed_zeros=all(v.signed_zeros for v in like))


def inexact(type_, wide, error):
    """A value from its elements in a wider type and their error before they are rounded to the type."""
    with np.errstate(all="ignore"):
        size = np.abs(wide)
        bound = error + unit(type_) * (size + error) + 2.0**TYPES[type_].smallest
        # The reference rounds as well.
        bound = bound + unit(type_) * size
        bound = np.where(np.isinf(error), np.inf, np.where(np.isfinite(size), bound, 0)).astype(np.float64)
    return Value(type_, rounded(type_, wide), bound, signed_zeros=False)


def gamma(n, u):
    """The relative error of n roundings."""
    return n * u / (1 - n * u) if n * u < 0.5 else np.inf


def differences(value, got):
    """A mask of the elements of a result that are further from the reference than they may be."""
    if value.kind == "c":
        parts = [dataclasses.replace(value, type=TYPES[value.type].part, data=part(value.data))
                 for part in (np.real, np.imag)]
        return differences(parts[0], got.real) | differences(parts[1], got.imag)
    want = value.data
    same = got == want
    if value.kind == "f":
        same |= np.isnan(got) & np.isnan(want)
    if value.exact:
        return ~same
    greatest = TYPES[value.type].greatest
    with np.errstate(all="ignore"):
        same |= np.abs(got.astype(np.float64) - want) <= value.error
        # Only one of the two has overflowed.
        like = np.signbit(got) == np.signbit(want)
        limit = greatest * (1 - 2 * unit(value.type))
        same |= like & np.isinf(got) & (np.abs(want) >= limit - value.error)
        same |= like & np.isinf(want) & (value.error > 0) & (np.abs(got.astype(np.float64)) >= limit - value.error)
    return ~(same | np.isinf(value.error))
