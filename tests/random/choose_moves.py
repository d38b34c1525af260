"""Random steps that move elements."""

import numpy as np

from element_types import TYPES
from reference_moves import has_zeros, slices
from value import Unsuitable

ANY = list(TYPES)


def transpose(b):
    x = b.operand(ANY)
    rank = b.values[x].data.ndim
    b.add("transpose", [x], {} if b.chance(0.2) else {"perm": b.rng.sample(range(rank), rank)})


def reshape(b):
    x = b.operand(ANY)
    count = b.values[x].data.size
    shape = []
    if count == 0:
        shape = list(b.shape(limit=100)) or [1]
        shape[b.rng.randrange(len(shape))] = 0
    else:
        left = count
        while left > 1 and len(shape) < 7:
            divisors = [d for d in range(1, min(left, 64) + 1) if left % d == 0]
            shape.append(b.rng.choice(divisors))
            left //= shape[-1]
            if b.chance(0.4):
                break
        shape.append(left)
        if left == 1 and (len(shape) > 1 or b.chance(0.5)):
            shape.pop()
        if shape and b.chance(0.3):
            shape[b.rng.randrange(len(shape))] = -1
    b.add("reshape", [x], {"shape": shape})


def slice_fields(b, shape):
    """The fields of a SliceStep, with ends beyond the axes at times."""
    axes = b.axes(len(shape)) if b.chance(0.5) else list(range(b.rng.randrange(len(shape) + 1)))
    sizes = [shape[axis] for axis in axes]
    steps = [b.rng.choice([1, 1, 1, 2, 3, -1, -1, -2]) for _ in axes]
    starts, ends = [], []
    for n, step in zip(sizes, steps):
        low, high = sorted((b.rng.randrange(n + 1), b.rng.randrange(n + 1))) if b.chance(0.3) else (0, n)
        if step < 0:
            start, end = (high - 1, low - 1) if low > 0 else (high - 1, -2**63)
            start = start if start >= 0 else -n - 1
        else:
            start, end = low, high if b.chance(0.8) else high + b.rng.choice([0, n, 2**40])
        starts.append(start - n if 0 <= start < n and b.chance(0.3) else start)
        ends.append(end - n if 0 <= end < n and b.chance(0.3) else end)
    fields = {"steps": steps} if any(s != 1 for s in steps) or b.chance(0.3) else {}
    fields |= {"starts": starts} if b.chance(0.8) else {}
    fields |= {"ends": ends} if b.chance(0.8) or not fields else {}
    if axes != list(range(len(axes))) or b.chance(0.5):
        fields["axes"] = axes
    return fields


def slice_(b):
    x = b.operand(ANY)
    b.add("slice", [x], slice_fields(b, b.values[x].shape))


def broadcast_to(b):
    x = b.operand(ANY, limit=5000)
    shape = list(b.values[x].shape)
    for i, n in enumerate(shape):
        if n == 1 and b.chance(0.6):
            shape[i] = b.rng.choice([0, 2, 3, 5])
    shape = list(b.shape(b.rng.randrange(0, min(3, 9 - len(shape))), 30)) + shape
    b.add("broadcast_to", [x], {"shape": shape})


def diagonal(b):
    x = b.operand(ANY, min_rank=2)
    shape = b.values[x].shape
    fields = {"offset": b.rng.randrange(-3, 4)} if b.chance(0.6) else {}
    first, second = b.axes(len(shape), 2)
    if b.chance(0.5):
        fields |= {"axis1": first, "axis2": second}
    rows, columns = shape[fields.get("axis1", -2)], shape[fields.get("axis2", -1)]
    if not -rows <= fields.get("offset", 0) <= columns:
        fields["offset"] = 0
    b.add("diagonal", [x], fields)


def concat(b):
    x = b.operand(ANY, min_rank=1)
    v = b.values[x]
    axis = b.axis(v.data.ndim)
    inputs = [x]
    for _ in range(b.rng.choice([0, 1, 1, 2, 3])):
        shape = list(v.shape)
        shape[axis] = b.rng.choice([shape[axis], 0, 1, 2, 3])
        inputs.append(x if b.chance(0.15) else b.like(v.type, shape))
    b.rng.shuffle(inputs)
    b.add("concat", inputs, {"axis": axis})


def indices(b, shape, size):
    """The name of a new input with indices of an axis."""
    type_ = b.rng.choice(["i32", "i64"])
    if size == 0 and int(np.prod(shape)):
        raise Unsuitable("no index names an element of an empty axis")
    low = -size if b.chance(0.4) else 0
    data = b.data_rng.integers(low, size, shape) if size else np.zeros(shape)
    return b.fresh(type_, shape, data=data)


def existing_indices(b, rank, size):
    """The name of a value that can be indices, such as the places of a sort."""
    def fits(v):
        return (v.type in ("i32", "i64") and v.data.ndim == rank and v.data.size
                and np.all((v.data >= -size) & (v.data < size)))
    return b.existing(fits, 0.5)


def take(b):
    x = b.operand(ANY, min_rank=1)
    shape = b.values[x].shape
    axis, rank = b.axis(len(shape)), b.rng.randrange(0, min(4, 10 - len(shape)))
    places = existing_indices(b, rank, shape[axis])
    if places is None:
        places = indices(b, b.shape(rank, 200) if shape[axis] else [0] * max(rank, 1), shape[axis])
    b.add("take", [x, places], {"axis": axis})


def take_along_axis(b):
    x = b.operand(ANY, min_rank=1)
    shape = b.values[x].shape
    axis = b.axis(len(shape))
    wanted = [n if b.chance(0.7) else 1 for n in shape]
    wanted = [n if n != 1 or b.chance(0.7) else b.rng.choice([2, 3]) for n in wanted] if b.chance(0.2) else wanted
    wanted = [n if m in (1, n) or n == 1 else m for n, m in zip(wanted, shape)]
    wanted[axis] = b.rng.choice([1, 2, 5, shape[axis]]) if shape[axis] else 0
    b.add("take_along_axis", [x, indices(b, wanted, shape[axis])], {"axis": axis})


def put_along_axis(b):
    x = b.operand(ANY, min_rank=1)
    v = b.values[x]
    axis = b.axis(v.data.ndim)
    full = list(v.shape)
    full[axis] = b.rng.choice([1, 2, 5, v.shape[axis]]) if v.shape[axis] else 0
    places = [n if b.chance(0.7) else 1 for n in full]
    places[axis] = full[axis]
    b.add("put_along_axis", [x, indices(b, places, v.shape[axis]), b.broadcastable(v.type, tuple(full))], {"axis": axis})


def set_slice(b):
    x = b.operand(ANY)
    v = b.values[x]
    fields = slice_fields(b, v.shape)
    part = v.data[slices(fields, v.data.ndim)].shape
    b.add("set_slice", [x, b.broadcastable(v.type, part)], fields)


def compress(b):
    x = b.operand(ANY, min_rank=1)
    shape = b.values[x].shape
    b.add("compress", [x, b.like("bool", shape[:b.rng.randrange(1, len(shape) + 1)], exact=True)], {})


def roll(b):
    x = b.operand(ANY)
    rank = b.values[x].data.ndim
    if rank == 0 or b.chance(0.3):
        return b.add("roll", [x], {"shifts": [b.rng.randrange(-9, 10)]})
    axes = [b.axis(rank) for _ in range(b.rng.randrange(1, 4))]
    return b.add("roll", [x], {"shifts": [b.rng.choice([0, 1, -1, 5, -7, 2**40 + 1]) for _ in axes], "axes": axes})


def tile(b):
    x = b.operand(ANY, limit=5000)
    rank = b.values[x].data.ndim
    counts = [b.rng.choice([1, 1, 2, 3, 0] if b.chance(0.2) else [1, 1, 2]) for _ in range(b.rng.randrange(0, min(9, rank + 2)))]
    b.add("tile", [x], {"counts": counts})


def repeat(b):
    x = b.operand(ANY, limit=8000)
    rank = b.values[x].data.ndim
    fields = {"count": b.rng.choice([0, 1, 2, 2, 3])}
    if rank and b.chance(0.7):
        fields["axis"] = b.axis(rank)
    b.add("repeat", [x], fields)


def pad(b):
    x = b.operand(ANY)
    v = b.values[x]
    rank = v.data.ndim
    axes = b.axes(rank) if b.chance(0.5) else list(range(b.rng.randrange(rank + 1)))
    widths = [[b.rng.choice([0, 0, 1, 2, 5]) for _ in axes] for _ in range(2)]
    fields = {name: w for name, w in zip(("before", "after"), widths) if b.chance(0.8)}
    if not fields:
        axes = []
    elif axes != list(range(len(axes))) or b.chance(0.4):
        fields["axes"] = axes
    shape = list(v.shape)
    for name in ("before", "after"):
        for axis, width in zip(axes, fields.get(name, [])):
            shape[axis] += width
    fills = [] if has_zeros(v.type) and b.chance(0.6) else [b.broadcastable(v.type, tuple(shape))]
    b.add("pad", [x, *fills], fields)


CHOICES = {"transpose": (transpose, 8), "reshape": (reshape, 6), "slice": (slice_, 9), "broadcast_to": (broadcast_to, 5),
           "diagonal": (diagonal, 4), "concat": (concat, 5), "take": (take, 5), "take_along_axis": (take_along_axis, 4),
           "put_along_axis": (put_along_axis, 4), "set_slice": (set_slice, 4), "compress": (compress, 2), "roll": (roll, 4),
           "tile": (tile, 3), "repeat": (repeat, 3), "pad": (pad, 4)}
