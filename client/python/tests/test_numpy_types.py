"""One table: data types and values of NumPy's ufuncs and other functions, of each of its types and of pairs of them.

What differs is in docs/operations.md#results-and-numpy. The expected values are those of the installed NumPy, where it
has the rules of NumPy 2.
"""

import itertools
import operator

import numpy as np
import pytest

import warpline
from warpline import elementwise

TYPES = ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"]
UFUNCS = sorted({f for f in vars(np).values() if isinstance(f, np.ufunc) and f.nout == 1 and f.signature is None
                 and (elementwise.operation_of(f) or f in (np.square, np.reciprocal))}, key=lambda f: f.__name__)
NUMPY = np.lib.NumpyVersion(np.__version__)
IS_2 = pytest.mark.skipif(NUMPY < "2.1.0", reason="needs the rules of NumPy 2.1")

# (function, type): NumPy's conjugate of bool is int8. Before 2.1 it made floats of integers to round them.
DIFFERENT = {("conjugate", "?")}
if NUMPY < "2.1.0":
    DIFFERENT |= {(name, t) for name in ("floor", "ceil", "trunc") for t in TYPES[:9]}


@pytest.fixture(scope="module")
def c(daemon):
    with warpline.connect(daemon.address) as connected:
        yield connected


def is_here(ufunc, want, *types):
    """False where the client computes: functions of complex numbers, and nextafter of float16."""
    op = elementwise.operation_of(ufunc)
    if op and "c" not in elementwise.ROWS[op].takes and "c" in "".join(types):
        return False
    return ufunc is not np.nextafter or want != np.float16


def type_of(compute):
    """None where NumPy refuses."""
    with np.errstate(all="ignore"):
        try:
            return compute().dtype
        except (TypeError, ValueError, OverflowError):
            return None


@pytest.mark.parametrize("ufunc", [f for f in UFUNCS if f.nin == 1], ids=lambda f: f.__name__)
def test_types_of_one_operand(ufunc):
    p = warpline.program()
    for t in TYPES:
        x = np.ones(2, t)
        want = type_of(lambda: ufunc(x))
        if want is not None and is_here(ufunc, want, t) and (ufunc.__name__, t) not in DIFFERENT:
            assert ufunc(p.input(x)).dtype == want, t


@pytest.mark.parametrize("ufunc", [f for f in UFUNCS if f.nin == 2], ids=lambda f: f.__name__)
def test_types_of_pairs(ufunc):
    p = warpline.program()
    for t, u in itertools.product(TYPES, TYPES):
        x, y = np.ones(2, t), np.ones(2, u)
        want = type_of(lambda: ufunc(x, y))
        if want is not None and is_here(ufunc, want, t, u):
            assert ufunc(p.input(x), y).dtype == want, (t, u)


@IS_2
@pytest.mark.parametrize("ufunc", [f for f in UFUNCS if f.nin == 2], ids=lambda f: f.__name__)
def test_types_with_numbers(ufunc):
    p = warpline.program()
    for t, number in itertools.product(TYPES, (True, 2, 300, -1, 1 << 40, 1.5, np.float64(1.5), np.int8(-1))):
        x = np.ones(2, t)
        for a, b in ((x, number), (number, x)):
            want = type_of(lambda: ufunc(a, b))
            if want is not None and is_here(ufunc, want, t):
                got = ufunc(*(p.input(side) if side is x else side for side in (a, b)))
                assert got.dtype == want, (t, number)


def agree(c, function, *arrays):
    """The server's value and type of `function` are NumPy's."""
    with np.errstate(all="ignore"):
        want = np.asarray(function(*arrays))
    got = np.asarray(function(*(c.put(x) for x in arrays)))
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


U1, I1, I8 = np.array([0, 1, 100, 255], "u1"), np.array([-128, -7, 0, 127], "i1"), np.array([-3, 0, 5, 1 << 40])

FUNCTIONS = {
    "u1 / 256": (lambda x: x / 256, U1), "u1 / -1": (lambda x: x / -1, U1), "1000 / u1": (lambda x: 1000 / (x + 1), U1[:3]),
    "i1 / 1000": (lambda x: x / 1000, I1), "hypot": (lambda x: np.hypot(x, 300), U1),
    "logical_and": (lambda x: np.logical_and(x, 300), U1), "logical_xor": (lambda x: np.logical_xor(-1, x), U1),
    "copysign": (lambda x: np.copysign(x, -1), U1), "arctan2": (lambda x: np.arctan2(x, x[::-1]), I1),
    "clip below": (lambda x: np.clip(x, -1, 200), U1), "clip above": (lambda x: np.clip(x, 3, 4550), U1),
    "clip both": (lambda x: np.clip(x, -1000, 1000), I1), "clip min": (lambda x: np.clip(x, -1000, None), I1),
    "round, u1": (lambda x: np.round(x, -1), U1[:3]), "round, i1": (lambda x: np.round(x, -1), I1[1:]),
    "round, i8": (lambda x: np.round(x, -2), I8), "round, decimals": (lambda x: np.round(x, 2), I8),
    "rint": (np.rint, I1), "fabs": (np.fabs, I1), "reciprocal": (np.reciprocal, np.array([1, -1, 2, -7], "i2")),
    "reciprocal of f4": (np.reciprocal, np.array([1, -2], "f4")), "square of bool": (np.square, np.array([True, False])),
    "square": (np.square, I1), "quantile, weak": (lambda x: np.quantile(x, 0.5), np.array([1, 2], "f4")),
    "quantile of several": (lambda x: np.quantile(x, [0, 0.5]), np.array([1, 2], "f4")),
    "percentile, weak": (lambda x: np.percentile(x, 50), np.array([1, 2], "f2")),
}


@IS_2
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(c, name):
    agree(c, *FUNCTIONS[name])


@pytest.mark.skipif(NUMPY < "2.2.0", reason="NumPy 2.2 has made NumPy's scalars strong here")
def test_quantiles_by_strong_numbers(c):
    for q in (np.float64(0.5), np.float32(0.5), np.array([0.5], "f4")):
        agree(c, lambda x, q=q: np.quantile(x, q), np.array([1, 2, 4], "f4"))


def test_products_of_i8_have_one_rule(c):
    a = np.array([[100, 100, 100], [1, -1, 2]], "i1")
    t = c.put(a)
    want = a.astype("i4") @ a.T.astype("i4")
    for e in (t @ t.T, np.dot(t, t.T), np.inner(t, t), np.tensordot(t, t, (1, 1))):
        got = np.asarray(e)
        assert got.dtype == np.int32 and got.tolist() == want.tolist()
    for vecdot in filter(None, [getattr(np, "vecdot", None), getattr(np.linalg, "vecdot", None)]):
        got = np.asarray(vecdot(t, t))
        assert got.dtype == np.int32 and got.tolist() == np.diagonal(want).tolist()


UNSIGNED = np.array([0, 5, 1 << 53, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1], "u8")
SIGNED = np.array([-(1 << 63), -1, 0, 5, 1 << 53, (1 << 53) + 1, (1 << 63) - 1], "i8")


@pytest.mark.parametrize("compare", [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge],
                         ids=lambda f: f.__name__)
def test_u64_and_signed_integers_are_compared_exactly(c, compare):
    """Python compares its integers exactly, too; NumPy before 2 rounds to float64."""
    u, s = c.put(UNSIGNED[:, None]), c.put(SIGNED)
    want = [[compare(int(a), int(b)) for b in SIGNED] for a in UNSIGNED]
    turned = [[compare(int(b), int(a)) for b in SIGNED] for a in UNSIGNED]
    assert c.run(compare(u, s)).tolist() == want and c.run(compare(s, u)).tolist() == turned
    for i, b in enumerate(SIGNED):  # numbers of NumPy and Python
        for number in (b, int(b)):
            assert c.run(compare(u, number)).ravel().tolist() == [row[i] for row in want]
    for a, row in zip(UNSIGNED, want):
        assert c.run(compare(a, s)).tolist() == row
    small = SIGNED[1:4].astype("i1")
    assert c.run(compare(u, small)).tolist() == [row[1:4] for row in want]
