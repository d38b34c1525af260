"""Operands of different data types become those that NumPy 2 gives, whatever NumPy is installed."""

import asyncio
import itertools
import json
import warnings

import elements
import numpy as np
import pytest

import warpline
from warpline import direct, promotion
from warpline.calls import INLINE
from warpline.plans import plan_program

NUMBERS = [name for name in elements.REAL if name != "bf16"]
WITHOUT_ML_DTYPES = pytest.mark.skipif(warpline.bfloat16.names is None, reason="ml_dtypes has more common types")


@pytest.fixture(scope="module")
def c(daemon):
    with warpline.connect(daemon.address) as connected:
        yield connected


def kinds(*outputs):
    """The operations that are sent for expressions without placeholders, in their order."""
    steps = json.loads(plan_program(outputs).program.message)["steps"]
    return [(step.keys() - {"name", "inputs", "variant"}).pop() for step in steps]


@pytest.mark.parametrize("left, right", itertools.combinations(NUMBERS, 2))
def test_sums_and_differences(c, left, right):
    a, b = elements.make(left, [1, 0, 1]), elements.make(right, [[0], [1]])
    p = warpline.program()
    x, y = p.input(a), p.input(b)
    wide = np.result_type(a.dtype, b.dtype)
    results = [(x + y, a + b), (y + x, a + b), (x + b, a + b), (a + y, a + b), (x + b[1, 0], a + b[1, 0]),
               (x - y, a.astype(wide) - b), (y - x, b.astype(wide) - a), (x - b[1, 0], a.astype(wide) - b[1, 0])]
    for got, (e, want) in zip(c.run(*[e for e, _ in results]), results):
        assert e.dtype == got.dtype == wide and np.array_equal(got, want)


def test_differences_are_promoted_before_they_wrap(c):
    p = warpline.program()
    a, u = np.array([1, 300], "i8"), np.array([5, 255], "u1")
    for e, want in [(p.input(a) - u, a - u), (p.input(u) - a, u - a), (p.input(u) - np.int64(6), u - np.array([6], "i8")),
                    (p.input(a) - u[0], a - u[0]), (7 - p.input(u), np.array([2, 8], "u1"))]:
        got = c.run(e)
        assert got.dtype == want.dtype and got.tolist() == want.tolist()


# For each data type, NumPy 2 gives these to sums with 1, 1.5 and 1j.
WEAK = {"bool": ("i8", "f8", "c16"), "u8": ("u1", "f8", "c16"), "i32": ("i4", "f8", "c16"), "u64": ("u8", "f8", "c16"),
        "f16": ("f2", "f2", "c8"), "f32": ("f4", "f4", "c8"), "f64": ("f8", "f8", "c16"), "c64": ("c8", "c8", "c8")}


@pytest.mark.parametrize("name", WEAK)
def test_numbers_of_python_are_weak(c, name):
    x = warpline.program().input(elements.make(name, [0, 1]))
    assert (x + True).dtype == x.dtype
    for number, want in zip((1, 1.5, 1j), WEAK[name]):
        for e in (x + number, number + x, x - number, number - x):
            assert e.dtype == want
            if e.dtype.kind != "c":
                got = c.run(e)
                assert got.dtype == want
        if number != 1j:
            assert (x * number).dtype == (number * x).dtype == want
    assert x + number is not x


def test_values_of_weak_numbers(c):
    p = warpline.program()
    i, f, h = p.input(np.array([3], "i4")), p.input(np.array([3], "f4")), p.input(np.array([3], "f2"))
    for e, want, dtype in [(i + 1.5, 4.5, "f8"), (1.5 - i, -1.5, "f8"), (i * 1.5, 4.5, "f8"), (i * -2, -6, "i4"),
                           (f + 0.1, np.float32(3) + np.float32(0.1), "f4"), (f * 2, 6, "f4"), (h + 2**11, 2052, "f2"),
                           (f + 2**100, np.float32(2.0**100), "f4"), (i + (2**31 - 4), 2**31 - 1, "i4")]:
        got = c.run(e)
        assert got.dtype == dtype and got[0] == want


def test_scalars_of_numpy_are_strong(c):
    p = warpline.program()
    f, u = p.input(np.array([3], "f4")), p.input(np.array([3], "u1"))
    for e, dtype in [(f + np.float64(1), "f8"), (np.float64(1) + f, "f8"), (f * np.float64(2), "f8"),
                     (f + np.float16(1), "f4"), (u + np.int8(-1), "i2"), (u - np.int16(4), "i2"), (u + np.bool_(True), "u1"),
                     (f + np.array(1.0), "f8"), (f + np.int32(1), "f8"), (u + np.float16(1), "f2")]:
        assert e.dtype == c.run(e).dtype == dtype


@pytest.mark.parametrize("number, dtype", [(256, "u1"), (-1, "u1"), (128, "i1"), (-129, "i1"), (2**31, "i4"), (2**64, "u8"),
                                           (-1, "u8"), (2**63, "i8"), (2**63, "?"), (10**400, "f4")])
def test_integers_out_of_range(number, dtype):
    x = warpline.program().input(np.zeros(2, dtype))
    for use in (lambda: x + number, lambda: number + x, lambda: x - number, lambda: number - x):
        with pytest.raises(OverflowError, match="out of bounds|too large"):
            use()


@pytest.mark.parametrize("left, right", [("f32", "f64"), ("f64", "f16"), ("f16", "f32"), ("i8", "f32"), ("u8", "f16")])
def test_products(c, left, right):
    a, b = elements.make(left, np.arange(6).reshape(2, 3)), elements.make(right, np.arange(12).reshape(3, 4))
    want = a.astype("f8") @ b.astype("f8")
    dtype = np.result_type(a.dtype, b.dtype)
    with c.put(a) as t, c.put(b) as u:
        p = warpline.program()
        for got in (c.run(t @ u), c.run(t @ b), c.run(a @ u), c.run((u.T @ t.T).T), c.gemm(a, b), c.gemm(t, b), c.matmul(t, u),
                    c.run(p.gemm(a.T, b.T, trans_a=True, trans_b=True)), c.gemm(np.asfortranarray(a), b)):
            assert got.dtype == dtype and np.allclose(got, want, rtol=1e-2)
        assert kinds(u.T @ t.T) == ["cast", "gemm"] or dtype not in (a.dtype, b.dtype)


def test_terms_of_products(c):
    p = warpline.program()
    f2, f4, f8, i1 = (np.ones((2, 2), dtype) for dtype in ("f2", "f4", "f8", "i1"))
    for a, b, term, dtype, sent in [
            (f4, f4, f8, "f8", ["cast", "gemm"]), (f8, f8, f4, "f8", ["cast", "gemm"]), (f4, f8, f4.copy(), "f8", ["cast", "cast", "gemm"]),
            (f2, f2, f4, "f4", ["gemm"]), (f2, f2, f8, "f8", ["cast", "gemm"]), (i1, i1, i1, "i4", ["cast", "gemm"]),
            (i1, i1, f4, "f8", ["cast", "cast", "gemm"]), (f4, f4, i1, "f4", ["cast", "gemm"])]:
        e = p.gemm(a, b, term)
        results = [c.run(e), c.gemm(a, b, term)]
        if dtype != "i4":  # Products of int8 take no bias.
            f = p.gemm(a, b, bias=term[0])
            assert kinds(f) == sent
            results += [c.run(f), c.gemm(a, b, bias=term[0])]
        assert kinds(e) == sent
        for got in results:
            assert got.dtype == dtype == e.dtype and got.tolist() == [[3, 3], [3, 3]]
    assert c.gemm(f2, f2, f2, dtype="f4").dtype == "f4" and c.gemm(f2, f2, f4, dtype="f4").dtype == "f4"
    assert c.gemm(f4, f4, f8, beta=0).dtype == "f4"
    # A term is not converted to less than it is.
    with pytest.raises(warpline.InvalidArgument, match="f64"):
        c.gemm(f2, f2, f8, dtype="f4")


def test_direct_calls_of_one_type_are_no_programs():
    def single(a, b, c, dtype=None):
        return direct.gemm(a, b, c, None, None, None, None, False, False, None, dtype, "", INLINE).single

    f2, f4, i1, i4 = (np.ones((2, 2), dtype) for dtype in ("f2", "f4", "i1", "i4"))
    for operands, dtype in [((f4, f4, f4), None), ((f4.astype(">f4"), f4, None), None), ((i1, i1, i4), None),
                            ((f2, f2, f4), "f4"), ((f2, f2, None), "f4")]:
        assert single(*operands, dtype)
    assert not single(f2, f4, None) and not single(i1, i1, i1)
    with pytest.raises(TypeError, match="None is no array"):
        single(f2, None, None)


def test_the_server_refuses_what_it_does_not_support(c):
    with pytest.raises(warpline.InvalidArgument, match="gemm does not take bool"):
        c.gemm(np.ones((2, 2), "?"), np.ones((2, 2), "?"))
    with pytest.raises(TypeError, match="less does not take complex128"):
        warpline.program().input(np.ones(2)) < np.ones(2, "c16")


def test_a_cast_is_sent_once(c):
    with c.put(np.ones((2, 2), "f4")) as t, c.put(np.ones((2, 2))) as u:
        assert kinds((t @ u) + (u @ t) + t) == ["cast", "gemm", "gemm", "map"]


def test_placeholders(c):
    x, y = warpline.placeholder("x", "f4"), warpline.placeholder("y")
    a = np.ones((2, 2))
    e = x @ a + 1
    assert e.dtype == "f8" and e.shape is None and e.ndim is None
    assert c.run(e, x=a.astype("f4")).tolist() == [[3, 3], [3, 3]]
    assert (y + a).dtype == "f8" and (y @ y).dtype is None
    with pytest.raises(warpline.InvalidArgument, match="f32"):
        c.run(y + a, y=a.astype("f4"))


@WITHOUT_ML_DTYPES
def test_structured_types_have_no_common_type(c):
    bf16 = elements.make("bf16", [[1, 2], [3, 4]])
    p = warpline.program()
    t = p.input(bf16)
    for other, name in [(np.ones((2, 2), "f4"), "float32"), (np.float64(1), "float64"), (np.int8(1), "int8"),
                        (np.zeros((2, 2), warpline.float8_e5m2), "float8_e5m2")]:
        for use in (lambda: t + other, lambda: t - other, lambda: p.gemm(t, t, other), lambda: c.gemm(bf16, other)):
            with pytest.raises(TypeError, match=f"(bfloat16 and {name}|{name} and bfloat16) have no common .* ml_dtypes"):
                use()
    assert (t + bf16).dtype == (t @ bf16).dtype == warpline.bfloat16
    assert c.run((t.astype("f4") + np.float64(1))).dtype == "f8"
    for number in (1, 1.5, 1.00390625, 1.01171875, -3.0e38, float("inf"), float("nan"), 10**30):
        got = elements.values(c.run(t * 0 + number))
        assert np.array_equal(got, np.full((2, 2), elements.values(elements.make("bf16", number))), equal_nan=True)
    with pytest.raises(TypeError, match="float8_e5m2, of which nothing is computed"):
        p.input(np.zeros(2, warpline.float8_e5m2)) + 1


@pytest.mark.skipif(warpline.bfloat16.names is not None, reason="needs ml_dtypes")
def test_types_of_ml_dtypes(c):
    bf16, f4 = elements.make("bf16", [[1, 2], [3, 4]]), np.ones((2, 2), "f4")
    t = warpline.program().input(bf16)
    for e, dtype in [(t + f4, "f4"), (t @ f4, "f4"), (t + 1.5, bf16.dtype), (t + np.float64(1), "f8"),
                     (t + bf16[0, 0], bf16.dtype), (t + bf16.view("u2").view([("bf16", "<u2")]), bf16.dtype),
                     (t * np.float32(2), "f4"), (t.program.gemm(bf16, bf16, f4), "f4")]:
        assert e.dtype == c.run(e).dtype == dtype
    assert c.gemm(bf16, f4).dtype == c.gemm(bf16, bf16, f4).dtype == "f4"


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="needs NumPy 2")
@pytest.mark.parametrize("name", [name for name in elements.ALL if name not in ("bf16", *elements.F8)])
def test_weak_numbers_are_those_of_numpy(name):
    dtype = elements.ALL[name]
    for number in (True, 1, 1.5, 1j):
        assert promotion.with_number(dtype, number) == np.add(np.zeros(1, dtype), number).dtype
    for number in (300, -1, -129, 2**40, 2**64, 10**400):
        def outcome(use):
            try:
                return use()
            except OverflowError:
                return OverflowError

        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = outcome(lambda: np.add(np.zeros((), dtype), number))
            got = outcome(lambda: promotion.element(number, dtype))
        assert (got is OverflowError) == (want is OverflowError), number
        if got is not OverflowError:
            assert got.dtype == want.dtype and got == want


def test_asynchronously(daemon):
    a, b = np.ones((2, 3), "f4"), np.ones((3, 2))

    async def check():
        async with warpline.aio.connect(daemon.address) as c:
            async with await c.put(a) as t:
                assert (await c.gemm(a, b)).dtype == (await c.matmul(t, b)).dtype == (await c.run(t @ b - 1.5)).dtype == "f8"

    asyncio.run(check())


def test_common_types_are_those_of_numpy():
    for left, right in itertools.product([name for name in elements.ALL if name not in ("bf16", *elements.F8)], repeat=2):
        a, b = elements.ALL[left], elements.ALL[right]
        assert promotion.common(a.newbyteorder(">"), b) == np.result_type(a, b)
