"""References of steps that move elements: views, joins, and elements by indices.

Each function takes arrays, and works for elements and for their errors alike.
"""

import numpy as np

from element_types import kind_of
from value import Value, need_exact


def moved(function, fields, values, indices=()):
    """The result of a step that moves elements of `values`, which have one type, with the errors they have."""
    need_exact(*indices)
    places = [v.data for v in indices]
    data = function(fields, *[v.data for v in values], *places)
    error = None
    if not all(v.exact for v in values):
        error = function(fields, *[np.zeros(v.shape) if v.exact else v.error for v in values], *places)
    return [Value(values[0].type, data, error, all(v.signed_zeros for v in values))]


def transpose(fields, x):
    perm = fields.get("perm", [])
    if perm:
        return x.transpose(perm)
    return np.swapaxes(x, -1, -2) if x.ndim >= 2 else x


def reshape(fields, x):
    return x.reshape(fields.get("shape", []))


def slices(fields, rank):
    """The index that takes what a SliceStep takes."""
    starts, ends, steps = (fields.get(name, []) for name in ("starts", "ends", "steps"))
    axes = fields.get("axes", []) or range(max(map(len, (starts, ends, steps))))
    key = [slice(None)] * rank
    for i, axis in enumerate(axes):
        key[axis] = slice(starts[i] if starts else None, ends[i] if ends else None, steps[i] if steps else None)
    return tuple(key)


def slice_(fields, x):
    return x[slices(fields, x.ndim)]


def broadcast_to(fields, x):
    return np.broadcast_to(x, fields.get("shape", []))


def diagonal(fields, x):
    return np.diagonal(x, fields.get("offset", 0), fields.get("axis1", -2), fields.get("axis2", -1))


def concat(fields, *values):
    return np.concatenate(values, fields.get("axis", 0))


def take(fields, x, places):
    return np.take(x, places.astype(np.int64), fields.get("axis", 0))


def along(x, places, axis):
    """The index of the elements along an axis. The other axes are broadcast."""
    axis %= x.ndim
    shape = [max(n, k) if min(n, k) else 0 for n, k in zip(x.shape, places.shape)]
    shape[axis] = places.shape[axis]
    key = [np.arange(n).reshape([n if i == a else 1 for i in range(x.ndim)]) for a, n in enumerate(x.shape)]
    key[axis] = places.astype(np.int64)
    return tuple(np.broadcast_to(k, shape) for k in key)


def take_along_axis(fields, x, places):
    return x[along(x, places, fields.get("axis", 0))]


def put_along_axis(fields, x, values, places):
    y, axis = np.array(x), fields.get("axis", 0) % x.ndim
    shape = list(x.shape)
    shape[axis] = places.shape[axis]
    key = along(x, np.broadcast_to(places, shape), axis)
    # One index at a time, so that the last one stays.
    positive = tuple(np.where(k < 0, k + n, k).ravel() for k, n in zip(key, x.shape))
    flat = np.ravel_multi_index(positive, x.shape) if y.size else []
    row = y.reshape(-1)
    for place, value in zip(flat, np.broadcast_to(values, shape).ravel()):
        row[place] = value
    return row.reshape(x.shape)


def set_slice(fields, x, values):
    y = np.array(x)
    y[slices(fields, x.ndim)] = values
    return y


def compress(_, x, mask):
    return x[mask]


def roll(fields, x):
    shifts, axes = fields.get("shifts", []), fields.get("axes", [])
    if not axes:
        return np.roll(x, shifts[0])
    for shift, axis in zip(shifts, axes):
        x = np.roll(x, shift, axis)
    return x


def tile(fields, x):
    return np.tile(x, fields.get("counts", []))


def repeat(fields, x):
    return np.repeat(x, fields.get("count", 0), fields.get("axis"))


def pad(fields, x, *values):
    before, after = fields.get("before", []), fields.get("after", [])
    count = max(len(before), len(after))
    axes = fields.get("axes", []) or range(count)
    shape, key = list(x.shape), [slice(None)] * x.ndim
    for i, axis in enumerate(axes):
        first = before[i] if before else 0
        key[axis] = slice(first, first + x.shape[axis])
        shape[axis] += first + (after[i] if after else 0)
    y = np.zeros(shape, x.dtype)
    if values:
        y[...] = values[0]
    y[tuple(key)] = x
    return y


def results(step, values):
    """The reference of a step of this file."""
    fields = step.fields
    if step.kind in ("take", "take_along_axis"):
        return moved(FUNCTIONS[step.kind], fields, values[:1], values[1:])
    if step.kind == "put_along_axis":
        return moved(put_along_axis, fields, [values[0], values[2]], values[1:2])
    if step.kind == "compress":
        taken = moved(compress, fields, values[:1], values[1:])
        taken[0].final = True
        return taken
    return moved(FUNCTIONS[step.kind], fields, values)


FUNCTIONS = {"transpose": transpose, "reshape": reshape, "slice": slice_, "broadcast_to": broadcast_to, "diagonal": diagonal,
             "concat": concat, "take": take, "take_along_axis": take_along_axis, "put_along_axis": put_along_axis,
             "set_slice": set_slice, "compress": compress, "roll": roll, "tile": tile, "repeat": repeat, "pad": pad}


def has_zeros(type_):
    """True if pad without values takes the type."""
    return kind_of(type_) != "r"
