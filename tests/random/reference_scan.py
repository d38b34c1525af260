"""References of running sums, products, minima and maxima."""

import numpy as np

from element_types import TYPES, cast, kind_of, named, rounded, unit
from reference_reduce import bounded_by, joined, limit, usual_type, whole, wide
from value import Value, exact, gamma, inexact, need_exact


def shifted(y, first):
    """Running results that leave the element itself out."""
    return np.concatenate([np.full((*y.shape[:-1], 1), first, y.dtype), y], -1)[..., :y.shape[-1]]


def floats(op, terms, out, exclusive):
    """Running sums and products along the last axis, of numbers that have been rounded to `out`."""
    acc, n = "f64" if out == "f64" else "f32", terms.shape[-1]
    x = wide(terms)
    size = np.abs(x)
    if op == "SUM":
        y, magnitude = np.cumsum(x, -1), np.cumsum(bounded_by(x), -1)
        lost = magnitude > TYPES[acc].greatest / 4
    else:
        y, magnitude = np.cumprod(x, -1), np.cumprod(np.where(size > 1, bounded_by(x), 1), -1)
        smallest = np.cumprod(np.where((size < 1) & (size > 0), size, 1), -1)
        lost = (magnitude > TYPES[acc].greatest / 4) | (smallest < 2.0**(TYPES[acc].smallest + TYPES[acc].bits))
    certain = whole(x) and not np.any(magnitude > limit(acc))
    error = gamma(n, unit(acc)) * (magnitude if op == "SUM" else bounded_by(y))
    error = np.where(lost, np.inf, error)
    if exclusive:
        y, error = shifted(y, 0 if op == "SUM" else 1), shifted(error, 0)
    if certain:
        return Value(out, rounded(out, y))
    return inexact(out, y, error)


def order(op, type_, x, exclusive):
    y = (np.minimum if op == "MIN" else np.maximum).accumulate(x, -1) if x.shape[-1] else x
    if not exclusive:
        return exact(type_, y)
    t = TYPES[type_]
    if t.kind == "f":
        first = np.inf if op == "MIN" else -np.inf
    elif t.kind == "b":
        first = op == "MIN"
    else:
        first = int(t.greatest) if op == "MIN" else t.least
    return exact(type_, shifted(y, first))


def of_rows(op, type_, x, out, exclusive):
    """Scans the last axis of real numbers."""
    if op in ("MIN", "MAX"):
        return order(op, type_, x, exclusive)
    if kind_of(out) == "f":
        return floats(op, cast(x, type_, out), out, exclusive)
    computed = "u64" if kind_of(out) == "u" else "i64"
    x = cast(x, type_, computed)
    y = np.cumsum(x, -1, dtype=x.dtype) if op == "SUM" else np.cumprod(x, -1, dtype=x.dtype)
    if exclusive:
        y = shifted(y, 0 if op == "SUM" else 1)
    return exact(out, cast(y, computed, out))


def scan(step, values):
    x, fields = values[0], step.fields
    need_exact(x)
    op, axis = fields["op"].removeprefix("SCAN_OP_"), fields.get("axis", 0)
    usual = x.type if op in ("MIN", "MAX") else usual_type("SUM", x.type)
    out = named(fields["out_data_type"]) if "out_data_type" in fields else usual
    rows = np.moveaxis(x.data, axis, -1)
    backward = slice(None, None, -1 if fields.get("reverse") else 1)
    rows = rows[..., backward]
    exclusive = fields.get("exclusive", False)
    with np.errstate(all="ignore"):
        if x.kind == "c":
            part = TYPES[out].part
            rows = cast(rows, x.type, out)
            y = joined(out, [of_rows(op, part, half, part, exclusive) for half in (rows.real, rows.imag)])
        else:
            y = of_rows(op, x.type, rows, out, exclusive)
    data, error = (None if a is None else np.moveaxis(a[..., backward], -1, axis) for a in (y.data, y.error))
    return [Value(out, data, error, signed_zeros=kind_of(out) not in "fc")]
