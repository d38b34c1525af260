"""References of reductions and scans, with the errors that any order of additions may have."""

import numpy as np

from element_types import TYPES, cast, kind_of, named, rounded, unit
from value import Unsuitable, Value, exact, gamma, inexact, need_exact

# Results that do not depend on rounding.
ORDER = {"MIN": np.min, "MAX": np.max, "ARGMIN": np.argmin, "ARGMAX": np.argmax, "ANY": np.any, "ALL": np.all,
         "COUNT_NONZERO": np.count_nonzero}


def usual_type(op, type_):
    kind = kind_of(type_)
    if op in ("ARGMIN", "ARGMAX", "COUNT_NONZERO"):
        return "i64"
    if op in ("ANY", "ALL"):
        return "bool"
    if op in ("MIN", "MAX") or kind in "fc":
        return type_
    if op in ("SUM", "PROD", "SUMSQ"):
        return "u64" if kind == "u" else "i64"
    return "f64"


def accumulated(type_, out):
    """The type in which a reduction to a float adds."""
    return "f64" if kind_of(type_) != "f" or "f64" in (type_, out) else "f32"


def limit(acc):
    """Sums of whole numbers up to here are exact in any order."""
    return 2.0**TYPES[acc].bits


def wide(data):
    """Numbers in a type in which the reference rounds much less than the server does."""
    if data.dtype.kind in "?biu" or data.dtype == np.float64:
        return data.astype(np.longdouble)
    return data.astype(np.clongdouble if data.dtype == np.complex128 else np.complex128 if data.dtype.kind == "c" else np.float64)


def whole(x):
    return bool(np.all(np.isfinite(x)) and np.all(x == np.rint(x)))


def bounded_by(x):
    """Sizes of the finite elements; 0 for the others, whose results do not depend on the order of additions."""
    return np.where(np.isfinite(x), np.abs(x), 0)


def sum_of(terms, out, acc, divisor=1.0, roundings=3):
    """The sum along the last axis, divided, as `out`."""
    n = terms.shape[-1]
    total, magnitude = terms.sum(-1), bounded_by(terms).sum(-1)
    exact_sum = whole(terms) and not np.any(magnitude > limit(acc))
    power_of_two = divisor > 0 and np.frexp(divisor)[0] == 0.5
    total = total / divisor
    if exact_sum and (power_of_two or n == 0):
        return Value(out, rounded(out, total), signed_zeros=False)
    # Sums may overflow on the way, in an order that nobody promises.
    error = gamma(n + roundings, unit(acc)) * magnitude / max(divisor, 1)
    # A square may lose half of the smallest number.
    error = np.where(magnitude > TYPES[acc].greatest / 4, np.inf, error + n * 2.0**TYPES[acc].smallest)
    return inexact(out, total, error)


def prod_of(terms, out, acc):
    """The product along the last axis."""
    n = terms.shape[-1]
    total, size = terms.prod(-1), np.abs(terms)
    largest = np.where(size > 1, bounded_by(terms), 1).prod(-1)
    smallest = np.where((size < 1) & (size > 0), size, 1).prod(-1)
    if whole(terms) and not np.any(largest > limit(acc)):
        return Value(out, rounded(out, total), signed_zeros=False)
    # Products that overflow or underflow on the way depend on their order.
    lost = (largest > TYPES[acc].greatest / 4) | (smallest < 2.0**(TYPES[acc].smallest + TYPES[acc].bits))
    return inexact(out, total, np.where(lost, np.inf, gamma(n, unit(acc)) * bounded_by(total)))


def variance_of(terms, out, ddof, root):
    """The variance along the last axis, or its root. It is computed in f64."""
    n = terms.shape[-1]
    degrees = max(0, n - ddof)
    u = gamma(2 * n + 16, unit("f64"))
    distance = np.abs(terms - terms.mean(-1, keepdims=True)) if n else terms
    spread, size = (distance**2).sum(-1), bounded_by(terms)
    magnitude = 8 * (distance**2 + distance * size + u * size**2).sum(-1)
    value = spread / np.longdouble(degrees)
    if degrees == 0:
        # 0 / 0 or more / 0, which rounding decides unless the numbers are whole and small.
        small = np.all(terms == np.rint(terms), -1) & (size.sum(-1) < 2**50)
        certain = (n <= 1) | ~np.all(np.isfinite(terms), -1) | small
        return inexact(out, value, np.where(certain, 0, np.inf))
    # A square may lose half of the smallest number.
    error = (u * magnitude + n * np.longdouble(2)**TYPES["f64"].smallest) / degrees
    if root:
        value = np.sqrt(value)
        error = np.where(value > 0, np.minimum(error / np.where(value > 0, value, 1), np.sqrt(error)), np.sqrt(error))
        error = error + unit("f64") * bounded_by(value)
    error = np.where(size.max(-1, initial=0) > 1e150, np.inf, error)
    return inexact(out, value, error)


def log_sum_exp_of(terms, out, acc):
    n, u = terms.shape[-1], unit(acc)
    top = terms.max(-1, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, 0)
    value = shift + np.log(np.exp(terms - shift[..., None]).sum(-1))
    value = np.where(np.isfinite(top), value, top)
    error = gamma(n + 16, u) + 8 * u * (np.log(max(n, 2)) + 2) + 4 * u * bounded_by(value)
    return inexact(out, value, error)


def integers(op, rows, out):
    """Sums and products modulo 2^64."""
    type_ = "u64" if rows.dtype.kind == "u" else "i64"
    terms = rows.astype(TYPES[type_].held)
    if op == "SUMSQ":
        terms = terms * terms
    total = terms.prod(-1) if op == "PROD" else terms.sum(-1)
    return exact(out, cast(np.asarray(total, terms.dtype), type_, out))


def of_rows(op, type_, rows, out, ddof):
    """Reduces the last axis of real numbers."""
    kind = kind_of(type_)
    if op in ORDER:
        y = ORDER[op](rows != 0 if op in ("ANY", "ALL", "COUNT_NONZERO") else rows, -1)
        return exact(out, cast(np.asarray(y, TYPES[usual_type(op, type_)].held), usual_type(op, type_), out))
    if op in ("SUM", "PROD", "SUMSQ") and kind_of(out) != "f":
        return integers(op, rows, out)
    if op == "PROD" and kind != "f":
        rows, type_ = cast(rows, type_, out), out
    acc, terms = accumulated(type_, out), wide(rows)
    if op == "PROD":
        return prod_of(terms, out, acc)
    if op in ("SUM", "MEAN"):
        return sum_of(terms, out, acc, 1.0 if op == "SUM" else float(rows.shape[-1]))
    if op == "NORM1":
        return sum_of(np.abs(terms), out, acc)
    if op == "NORMINF":
        return Value(out, rounded(out, rounded("f64", np.abs(terms).max(-1))))
    if op == "SUMSQ":
        return sum_of(terms**2, out, acc)
    if op == "NORM2":
        # An error of e before the root is one of e / root, or at most of the root of e.
        squares = sum_of(terms**2, "f64", acc)
        root = np.sqrt((terms**2).sum(-1))
        before = np.zeros(root.shape) if squares.exact else squares.error
        error = np.where(root > 0, before / np.where(root > 0, root, 1), np.sqrt(before))
        small = root < 2.0**(TYPES[acc].smallest / 2 + TYPES[acc].bits)  # squares that underflow
        return inexact(out, root, np.where(small & (root > 0), np.inf, error + 2 * unit(acc) * bounded_by(root)))
    if op in ("VAR", "STD"):
        return variance_of(terms, out, ddof, op == "STD")
    return log_sum_exp_of(terms, out, acc)


def complex_rows(op, type_, rows, out):
    """Sums and means by parts. NumPy divides complex means otherwise: a NaN in one part spoils the other."""
    part = TYPES[type_].part
    if op != "PROD":
        parts = [of_rows(op, part, half, TYPES[out].part, 0) for half in (rows.real, rows.imag)]
        return joined(out, parts)
    terms = wide(rows)
    size = (np.abs(terms.real) + np.abs(terms.imag))
    acc = "f64" if "c128" in (type_, out) else "f32"
    if not np.all(np.isfinite(terms)):
        raise Unsuitable("complex products with NaN or infinity depend on their order")
    largest, smallest = np.where(size > 1, size, 1).prod(-1), np.where((size < 1) & (size > 0), size, 1).prod(-1)
    total = terms.prod(-1)
    if whole(terms.real) and whole(terms.imag) and not np.any(largest > limit(acc)):
        return Value(out, rounded(out, total), signed_zeros=False)
    lost = (largest > np.sqrt(TYPES[acc].greatest)) | (smallest < 2.0**(TYPES[acc].smallest / 2 + TYPES[acc].bits))
    # Zeros beside factors that underflow do not matter.
    error = gamma(4 * rows.shape[-1] + 4, unit(acc)) * size.prod(-1)
    real, imag = (inexact(TYPES[out].part, p, np.where(lost, np.inf, error)) for p in (total.real, total.imag))
    return joined(out, [real, imag])


def joined(out, parts):
    """A complex value from those of its parts."""
    data = parts[0].data.astype(TYPES[out].held)
    data.imag = parts[1].data
    error = None
    if not all(p.exact for p in parts):
        error = np.maximum(*[np.zeros(p.shape) if p.exact else p.error for p in parts])
    return Value(out, data, error, signed_zeros=False)


def reduce(step, values):
    x, fields = values[0], step.fields
    need_exact(x)
    op = fields["op"].removeprefix("REDUCE_OP_")
    axes = sorted(axis % x.data.ndim for axis in fields.get("axes", [])) or list(range(x.data.ndim))
    kept = [axis for axis in range(x.data.ndim) if axis not in axes]
    rows = x.data.transpose(kept + axes)
    rows = rows.reshape([*rows.shape[:len(kept)], int(np.prod(rows.shape[len(kept):]))])
    out = named(fields["out_data_type"]) if "out_data_type" in fields else usual_type(op, x.type)
    with np.errstate(all="ignore"):
        if x.kind == "c":
            y = complex_rows(op, x.type, rows, out)
        else:
            y = of_rows(op, x.type, rows, out, fields.get("ddof", 0))
    shape = x.shape if fields.get("keepdims") else y.shape
    if fields.get("keepdims"):
        shape = [1 if axis in axes else n for axis, n in enumerate(x.shape)]
    error = None if y.exact else np.asarray(y.error).reshape(shape)
    # The sign of a zero among the results depends on the order.
    return [Value(out, np.asarray(y.data).reshape(shape), error, signed_zeros=kind_of(out) not in "fc")]
