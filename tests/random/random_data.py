"""Random shapes, and arrays of random elements."""

import numpy as np

from element_types import TYPES, rounded

MAX_ELEMENTS = 20_000
MAX_RANK = 8
RANKS = (4, 16, 22, 18, 12, 8, 7, 6, 7)  # weights
# Around the sizes of vectors, tiles and blocks.
LARGE = (15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 130, 255, 256, 257, 300, 511, 513, 1000, 1023, 1024, 1025,
         2047, 2048, 2049, 3000, 4096, 4097, 5000, 8191, 8192, 8193)
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 3.0)
STYLES = {"small": 62, "general": 22, "special": 16}  # weights


def choose_size(rng, large):
    if large and rng.random() < 0.6:
        return rng.choice(LARGE) if rng.random() < 0.8 else rng.randrange(8, 6000)
    draw = rng.random()
    return 0 if draw < 0.02 else 1 if draw < 0.2 else rng.randrange(2, 8)


def choose_shape(rng, large=False, rank=None, limit=MAX_ELEMENTS):
    """A shape of at most `limit` elements."""
    if rank is None:
        rank = rng.choices(range(1, 4))[0] if large else rng.choices(range(MAX_RANK + 1), RANKS)[0]
    shape, left = [], limit
    for _ in range(rank):
        size = choose_size(rng, large)
        if rank > 4 and size > 3:
            size = rng.randrange(1, 4)
        size = size if size <= left else max(1, min(left, rng.randrange(1, 4)))
        left //= max(size, 1)
        shape.append(size)
    rng.shuffle(shape)
    return tuple(shape)


def choose_style(rng):
    return rng.choices(list(STYLES), list(STYLES.values()))[0]


def reals(data_rng, type_, shape, style):
    """Floats in f64, before they are rounded."""
    if style == "small":
        return data_rng.integers(-4, 5, shape).astype(np.float64)
    x = data_rng.standard_normal(shape) * 10.0 ** data_rng.integers(-2, 3)
    if style == "special":
        t = TYPES[type_]
        more = (*SPECIAL, t.greatest, -t.greatest, 2.0**t.smallest, 2.0**(t.smallest + t.bits - 1), 3 * 2.0**t.smallest)
        x = np.where(data_rng.random(shape) < 0.3, np.asarray(more)[data_rng.integers(0, len(more), shape)], x)
    return x


def integers(data_rng, type_, shape, style):
    t = TYPES[type_]
    if style == "small":
        return data_rng.integers(-5 if t.kind == "i" else 0, 6, shape).astype(t.held)
    x = np.frombuffer(data_rng.bytes(int(np.prod(shape)) * t.size), t.held).reshape(shape)
    edges = np.array([t.least, int(t.greatest), 0, 1], object).astype(t.held)
    return np.where(data_rng.random(shape) < (0.3 if style == "special" else 0.02), edges[data_rng.integers(0, 4, shape)], x)


def array(data_rng, type_, shape, style):
    """Random elements of a type. All are whole and small in the style "small"."""
    t = TYPES[type_]
    if t.kind == "b":
        return np.asarray(data_rng.random(shape) < data_rng.choice([0.1, 0.5, 0.9]))
    if t.kind in "ui":
        return np.asarray(integers(data_rng, type_, shape, style), t.held)
    if t.kind == "r":
        return np.asarray(data_rng.integers(0, 256, shape), np.uint8)
    if t.kind == "f":
        return rounded(type_, np.asarray(reals(data_rng, type_, shape, style)))
    z = np.empty(shape, np.complex128)
    z.real, z.imag = (reals(data_rng, t.part, shape, style) for _ in range(2))
    return rounded(type_, z)
