"""Random steps that compute: products, reductions, scans, sorts, and the short forms of maps."""

import numpy as np

from element_types import COMPLEX, FLOATS, INTEGERS, NUMBERS, REAL, api_name, kind_of, named
from random_data import choose_size
from reference_reduce import usual_type
from value import Unsuitable

REDUCTIONS = ["SUM", "PROD", "MIN", "MAX", "MEAN", "ARGMIN", "ARGMAX", "ANY", "ALL", "COUNT_NONZERO", "NORM1", "NORM2",
              "NORMINF", "SUMSQ", "VAR", "STD", "LOGSUMEXP"]
NO_EMPTY_AXIS = ("MIN", "MAX", "ARGMIN", "ARGMAX", "NORMINF")


def out_type(b, usual, fields, integers_only_narrow=False):
    """Asks for another type of the result at times: floats stay floats, and complex numbers complex."""
    if not b.chance(0.25):
        return
    types = COMPLEX if usual in COMPLEX else FLOATS if usual in FLOATS else REAL
    chosen = b.rng.choice(types)
    if not (integers_only_narrow and chosen == "bool"):
        fields["out_data_type"] = api_name(chosen)


def reduce(b):
    op = b.rng.choice(REDUCTIONS)
    x = b.operand(NUMBERS if op in ("SUM", "PROD", "MEAN") else REAL, exact=True)
    v = b.values[x]
    rank, fields = v.data.ndim, {"op": f"REDUCE_OP_{op}"}
    axes = b.axes(rank) if rank else []
    if op in ("ARGMIN", "ARGMAX") and len(axes) > 1:
        axes = axes[:1] if b.chance(0.7) else []
    if axes or b.chance(0.5):
        fields["axes"] = axes
    if op in NO_EMPTY_AXIS and 0 in v.shape:
        raise Unsuitable("an empty axis")
    if v.kind == "c" and rank == 8:
        raise Unsuitable("eight axes that are reduced and kept by turns")
    if b.chance(0.4):
        fields["keepdims"] = True
    if op in ("VAR", "STD") and b.chance(0.5):
        fields["ddof"] = b.rng.choice([1, 1, 2, 7])
    if op not in ("ARGMIN", "ARGMAX", "ANY", "ALL", "COUNT_NONZERO"):
        out_type(b, usual_type(op, v.type), fields)
    if op == "SUMSQ" and v.kind in "ui" and kind_of(named(fields.get("out_data_type", "DATA_TYPE_I64"))) == "f":
        if np.any(np.abs(v.data.astype(np.longdouble)) > 2**31):
            raise Unsuitable("squares of 64-bit integers beyond 2^64, with a float as the result")
    b.add("reduce", [x], fields)


def scan(b):
    op = b.rng.choice(["SUM", "SUM", "PROD", "MIN", "MAX"])
    x = b.operand(NUMBERS if op == "SUM" else REAL, min_rank=1, exact=True)
    v = b.values[x]
    fields = {"op": f"SCAN_OP_{op}", "axis": b.axis(v.data.ndim)}
    fields |= {name: True for name in ("exclusive", "reverse") if b.chance(0.35)}
    if op in ("SUM", "PROD"):
        usual = usual_type("SUM", v.type)
        out_type(b, usual, fields, integers_only_narrow=True)
    b.add("scan", [x], fields)


def gemm(b):
    type_ = b.choose_type([*INTEGERS, *FLOATS, *COMPLEX])
    a = b.existing(lambda v: v.type == type_ and v.exact and 2 <= v.data.ndim <= 5 and v.data.size <= 4000)
    fields = {f"trans_{name}": True for name in "ab" if b.chance(0.35)}
    large = b.large and b.chance(0.6)
    if a is None:
        batch = b.shape(b.rng.choice([0, 0, 0, 1, 1, 2, 3]), 6)
        a = b.fresh(type_, (*batch, *(min(choose_size(b.rng, large), 130) for _ in range(2))))
    rows, k = b.values[a].shape[-2:]
    if fields.get("trans_a"):
        rows, k = k, rows
    batch = b.smaller(b.values[a].shape[:-2]) if b.chance(0.7) else (b.rng.randrange(1, 4), *b.values[a].shape[:-2])
    n = min(choose_size(b.rng, large), 130)
    turned = fields.get("trans_b", False)

    def fits(v):
        return v.type == type_ and v.exact and v.data.ndim == 2 and v.shape[1 if turned else 0] == k and v.data.size <= 4000
    other = b.existing(fits, 0.5) or b.fresh(type_, (*batch, *((n, k) if turned else (k, n))))
    n = b.values[other].shape[-2 if turned else -1]
    whole = np.broadcast_shapes(b.values[a].shape[:-2], b.values[other].shape[:-2])
    if len(whole) > 6 or int(np.prod(whole)) * rows * n * max(k, 1) > 1_500_000:
        raise Unsuitable("a large product")
    b.add("gemm", [a, other, *gemm_options(b, type_, fields, whole, rows, n)], fields)


def gemm_options(b, type_, fields, batch, rows, n):
    """Chooses further fields, and returns the names of the inputs that they need."""
    out, inputs, floats = type_, [], type_ in FLOATS
    if type_ == "i8":
        out = b.rng.choice(["i32", "i8"])
    elif type_ in ("f16", "bf16"):
        out = b.rng.choice([type_, "f32"])
    if out != ("i32" if type_ == "i8" else type_) or b.chance(0.2):
        fields["out_data_type"] = api_name(out)
    numbers = [1.0, 2.0, -1.0, 0.0, 3.0] if type_ in INTEGERS else [1.0, 2.0, -1.0, 0.0, 0.5, -2.5, 0.3]
    if b.chance(0.5):
        fields["alpha"] = b.rng.choice(numbers)
    if b.chance(0.4):
        fields["beta"] = b.rng.choice(numbers)
        if fields["beta"] != 0:
            inputs.append(b.like(out, (*b.smaller(batch), rows, n), exact=True))
    if floats and b.chance(0.3):
        fields["has_bias"] = True
        inputs.append(b.like(out, (n,), exact=True))
    if floats and b.chance(0.4):
        fields["activation"] = b.rng.choice(["ACTIVATION_RELU", "ACTIVATION_GELU", "ACTIVATION_NONE"])
    if b.chance(0.2):
        fields["precision"] = b.rng.choice(["PRECISION_IEEE", "PRECISION_TF32"])
    return inputs


def cast(b):
    x = b.operand(NUMBERS, exact=True)
    types = [*COMPLEX, "bool"] if b.values[x].kind == "c" else NUMBERS
    b.add("cast", [x], {"data_type": api_name(b.choose_type(types))})


def scale(b):
    x = b.operand([*INTEGERS, *FLOATS], exact=True)
    whole = b.values[x].type in INTEGERS
    b.add("scale", [x], {"factor": b.rng.choice([2.0, -1.0, 3.0, 1.0, 0.0, float(2**53 - 1) if whole else 0.3])})


def add(b):
    x = b.operand(REAL, exact=True)
    v = b.values[x]
    inputs = [x, b.broadcastable(v.type, v.shape, exact=True)]
    b.rng.shuffle(inputs)
    b.add("add", inputs, {})


def sort(b):
    x = b.operand(REAL, min_rank=1, exact=True)
    fields = {"axis": b.axis(b.values[x].data.ndim)}
    fields |= {"descending": True} if b.chance(0.4) else {}
    fields |= {"indices": b.further_name("places")} if b.chance(0.4) else {}
    b.add("sort", [x], fields)


def argsort(b):
    x = b.operand(REAL, min_rank=1, exact=True)
    b.add("argsort", [x], {"axis": b.axis(b.values[x].data.ndim), "descending": b.chance(0.4)})


def topk(b):
    x = b.operand(REAL, min_rank=1, exact=True)
    size = b.values[x].shape[-1]
    if size == 0:
        raise Unsuitable("an empty axis")
    fields = {"k": b.rng.choice([1, size, b.rng.randrange(1, size + 1), b.rng.randrange(1, min(size, 9) + 1)])}
    fields |= {"smallest": True} if b.chance(0.5) else {}
    fields |= {"indices": b.further_name("places")} if b.chance(0.5) else {}
    b.add("topk", [x], fields)


def in_order(x):
    """True for a vector in ascending order, NaN last."""
    return x.ndim == 1 and np.array_equal(x, np.sort(x), equal_nan=x.dtype.kind == "f")


def searchsorted(b):
    needles = b.operand(REAL, exact=True)
    v = b.values[needles]
    fields = {"right": True} if b.chance(0.5) else {}
    vector = b.existing(lambda u: u.type == v.type and u.exact and in_order(u.data), 0.4)
    if vector:
        return b.add("searchsorted", [vector, needles], fields)
    unsorted = b.fresh(v.type, b.shape(1))
    x = b.values[unsorted].data
    if b.chance(0.5):
        return b.add("searchsorted", [b.fresh(v.type, x.shape, data=np.sort(x)), needles], fields)
    order = np.argsort(x, kind="stable")
    if b.chance(0.3):
        order = np.where(b.data_rng.random(x.shape) < 0.5, order - x.size, order)
    sorter = b.fresh(b.rng.choice(["i32", "i64"]), x.shape, data=order)
    return b.add("searchsorted", [unsorted, needles, sorter], fields | {"has_sorter": True})


CHOICES = {"gemm": (gemm, 8), "reduce": (reduce, 14), "scan": (scan, 7), "cast": (cast, 6), "scale": (scale, 4), "add": (add, 6),
           "sort": (sort, 5), "argsort": (argsort, 3), "topk": (topk, 4), "searchsorted": (searchsorted, 4)}
