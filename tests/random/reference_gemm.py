"""The reference of products of matrices."""

import numpy as np

from element_types import TYPES, cast, named, rounded, unit
from reference_reduce import bounded_by, whole, wide
from value import Unsuitable, Value, exact, gamma, inexact, need_exact

# Sums below are exact, even where tensor cores add: they keep fewer bits than f32 has.
EXACT_LIMIT = {"f32": 2.0**21, "f64": 2.0**52}


def gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def swapped(x, swap):
    return np.swapaxes(x, -1, -2) if swap else x


def integers(a, b, c, alpha, beta, out):
    """Modulo 2^64, and then modulo 2^bits of the result."""
    # Types of one sign for all: NumPy would make u64 and i64 a float.
    total = np.matmul(a.astype(np.int64), b.astype(np.int64)) * np.int64(alpha)
    if c is not None:
        total = total + np.int64(beta) * c.astype(np.int64)
    return exact(out, cast(total, "i64", out))


def size_of(x, least=0.0):
    """Sizes of finite elements, those beside 0 at least `least`: of complex ones, the sum of those of their parts."""
    if x.dtype.kind == "c":
        return np.abs(x.real) + np.abs(x.imag)
    return np.where(x == 0, 0, np.maximum(bounded_by(x), least))


def is_whole(x):
    return whole(x.real) and whole(x.imag) if x.dtype.kind == "c" else whole(x)


def halves(x):
    return float(2 * x).is_integer()


def gemm(step, values):
    need_exact(*values)
    fields, type_ = step.fields, values[0].type
    alpha, beta = fields.get("alpha", 1.0), fields.get("beta", 0.0)
    values = list(values)
    a, b = (swapped(values.pop(0).data, fields.get(f"trans_{name}", False)) for name in "ab")
    c = values.pop(0).data if beta != 0 else None
    bias = values.pop(0).data if fields.get("has_bias") else None
    out = named(fields["out_data_type"]) if "out_data_type" in fields else "i32" if type_ == "i8" else type_
    with np.errstate(all="ignore"):
        if TYPES[type_].kind in "ui":
            return [integers(a, b, c, alpha, beta, out)]
        return [floats(fields, type_, a, b, c, bias, alpha, beta, out)]


def floats(fields, type_, a, b, c, bias, alpha, beta, out):
    acc = "f64" if type_ in ("f64", "c128") else "f32"
    if acc == "f32":
        alpha, beta = float(np.float32(alpha)), float(np.float32(beta))
    activation = fields.get("activation", "ACTIVATION_NONE").removeprefix("ACTIVATION_")
    terms = [x for x in (a, b, c, bias) if x is not None]
    finite = all(np.all(np.isfinite(x)) for x in terms)
    if not finite and (TYPES[type_].kind == "c" or alpha == 0 or activation != "NONE"):
        raise Unsuitable("NaN and infinity may give either of two results here")
    tf32 = fields.get("precision") == "PRECISION_TF32" and type_ == "f32"
    if tf32 and not finite and any(np.any((x != 0) & (np.abs(x) < 2.0**-126)) for x in (a, b)):
        raise Unsuitable("tf32 may take a subnormal number for 0, whose product with infinity is NaN")
    a, b = wide(a), wide(b)
    if not finite:
        a, b = a.astype(np.longdouble), b.astype(np.longdouble)  # whose products skip no zeros
    k = a.shape[-1]
    total = np.matmul(a, b) * alpha if k else np.matmul(a, b)
    # Tensor cores align products by the exponents of their factors, which subnormal numbers share with the first normal.
    least = 2.0**-14 if type_ == "f16" else 0.0
    sizes = size_of(a, least), size_of(b, least)
    products = np.matmul(*sizes)
    magnitude = products * abs(alpha)
    for factor, x in ((beta, c), (1.0, bias)):
        if x is not None:
            total, magnitude = total + factor * wide(x), magnitude + abs(factor) * size_of(wide(x))
    largest = magnitude.max(initial=0)
    is_exact = all(is_whole(x) for x in terms) and halves(alpha) and halves(beta) and 2 * largest <= EXACT_LIMIT[acc]
    if tf32:
        is_exact = is_exact and all(size_of(x).max(initial=0) <= 1024 for x in (a, b))
    if activation == "RELU":
        total = np.maximum(total, 0)
    if is_exact and activation != "GELU":
        return Value(out, rounded(out, total), signed_zeros=False)
    tensor_cores = tf32 or type_ in ("f16", "bf16")
    relative = gamma((2 * k + 2 if TYPES[type_].kind == "c" else k) + 3, unit(acc) * (4 if tensor_cores else 1))
    if tf32:
        relative += 2.0**-9 * (1 + relative)
    if activation == "GELU":
        relative = 1.13 * relative + (16 * unit("f64") if acc == "f64" else 2.0**-20)
        total = gelu(total)
    # cuBLASLt may multiply alpha with an operand before it adds: that product must not overflow either, and may lose
    # half of the smallest number as each other product may.
    largest_a, largest_b = (x.max(axis=axis, keepdims=True, initial=0) for x, axis in zip(sizes, (-1, -2)))
    lost = (k + 3) * max(1, abs(alpha)) + (0 if alpha == 1 else k * (largest_a + largest_b))
    error = relative * magnitude + lost * 2.0**TYPES[acc].smallest
    reached = np.maximum(np.maximum(products, magnitude), np.maximum(largest_a, largest_b) * abs(alpha))
    error = np.where(reached > TYPES[acc].greatest / 4, np.inf, error)
    return inexact(out, total, error)
