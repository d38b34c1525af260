import asyncio

import elements
import numpy as np
import pytest

import warpline


def gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def check(got, name, a, b, out=None, c=None, alpha=1.0, beta=0.0, bias=None, activation=None):
    """Compares with f64; the bound is that of rounding k products and their sum, and the result once more."""
    a, b = elements.values(a), elements.values(b)
    k = a.shape[-1]
    want = alpha * (a @ b)
    bound = abs(alpha) * (np.abs(a) @ np.abs(b)) * (k + 3) * elements.EPS[elements.accumulator(name)]
    terms = ([] if c is None else [beta * elements.values(c)]) + ([] if bias is None else [elements.values(bias)])
    for term in terms:
        want = want + term
        bound = bound + np.abs(term) * 4 * elements.EPS[elements.accumulator(name)]
    if activation == "relu":
        want = np.maximum(want, 0)
    if activation == "gelu":
        # Its slope is at most 1.13; tanh has an error of its own, of which 1 + tanh(-1) leaves all.
        bound = 1.2 * bound + np.abs(want) * 16 * elements.EPS[elements.accumulator(name)]
        want = gelu(want)
    bound = bound + np.abs(want) * 2 * elements.EPS[out or name] + 1e-7 * (out == "f16" or name == "f16")
    assert got.dtype == elements.ALL[out or name] and got.shape == want.shape
    error = np.abs(elements.values(got) - want)
    assert np.all(error <= bound), f"off by {np.max(error - bound)} more than allowed"


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("name", elements.FLOATS)
def test_every_type(client, name, rng):
    for m, n, k in [(1, 1, 1), (5, 7, 3), (64, 32, 48), (33, 65, 17)]:
        a, b = elements.small(name, (m, k), rng, -2, 2), elements.small(name, (k, n), rng, -2, 2)
        check(client.gemm(a, b), name, a, b)


def test_empty(client):
    assert client.gemm(np.zeros((0, 3)), np.zeros((3, 4))).shape == (0, 4)
    assert np.array_equal(client.gemm(np.zeros((2, 0)), np.zeros((0, 4))), np.zeros((2, 4)))


def test_i8(client, rng):
    a, b = rng.integers(-128, 128, (19, 70)).astype("i1"), rng.integers(-128, 128, (70, 23)).astype("i1")
    c = rng.integers(-(2**31), 2**31, (19, 23)).astype("i4")
    product = a.astype("i8") @ b.astype("i8")
    assert np.array_equal(client.gemm(a, b), product)
    got = client.gemm(a, b, c, alpha=-3, beta=5)
    assert got.dtype == np.int32
    assert np.array_equal(got, (-3 * product + 5 * c.astype("i8")).astype("i4"))


def test_i8_into_i8(client, rng):
    a, b = rng.integers(-128, 128, (19, 70)).astype("i1"), rng.integers(-128, 128, (70, 23)).astype("i1")
    got = client.gemm(a, b, dtype="i1")
    assert got.dtype == np.int8
    assert np.array_equal(got, a @ b)


@pytest.mark.parametrize("name", [name for name in elements.INTEGERS if name != "i8"])
def test_integers_wrap(client, name, rng):
    a, b = elements.any_bits(name, (2, 19, 70), rng), elements.any_bits(name, (23, 70), rng).T
    c = elements.any_bits(name, (19, 23), rng)
    got = client.gemm(a, b)
    assert got.dtype == a.dtype
    assert np.array_equal(got, a @ b)
    three, five = np.asarray(-3).astype(a.dtype), np.asarray(5).astype(a.dtype)
    assert np.array_equal(client.gemm(a, b, c, alpha=-3, beta=5), three * (a @ b) + five * c)
    with pytest.raises(warpline.InvalidArgument, match="take no bias"):
        client.gemm(a, b, bias=c[0])


@pytest.mark.parametrize(("name", "unit"), [("c8", 2.0**-24), ("c16", 2.0**-53)])
def test_complex(client, name, unit, rng):
    def draw(*shape):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(name)
    for m, n, k in [(1, 1, 1), (5, 7, 0), (33, 65, 17)]:
        a, b, c = draw(2, m, k), draw(n, k).T, draw(m, n)
        got = client.gemm(a, b, c, alpha=0.5, beta=-2)
        want = 0.5 * (a.astype("c16") @ b.astype("c16")) - 2 * c.astype("c16")
        bound = (np.abs(a) @ np.abs(b) + 2 * np.abs(c)) * (2 * k + 9) * 2 * unit
        assert got.dtype == a.dtype
        assert np.all(np.abs(got - want) <= bound)
        assert np.all(np.abs(client.gemm(a, b) - a.astype("c16") @ b.astype("c16")) <= bound)


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_f32_results(client, name, rng):
    a, b = elements.small(name, (9, 20), rng, -2, 2), elements.small(name, (20, 11), rng, -2, 2)
    c = rng.standard_normal((9, 11), dtype="f4")
    check(client.gemm(a, b, dtype="f4"), name, a, b, out="f32")
    check(client.gemm(a, b, c, alpha=0.5, dtype=np.float32), name, a, b, out="f32", c=c, alpha=0.5, beta=1)


@pytest.mark.parametrize("name", elements.FLOATS)
def test_batches_are_broadcast(client, name, rng):
    for left, right in [((3,), (3,)), ((3,), ()), ((), (2, 3)), ((2, 1), (3,)), ((2, 1, 3), (4, 1)), ((0,), ())]:
        a = elements.small(name, (*left, 4, 6), rng, -2, 2)
        b = elements.small(name, (*right, 6, 5), rng, -2, 2)
        check(client.gemm(a, b), name, a, b)


def test_transposed_operands(client, rng):
    a, b = rng.standard_normal((4, 9)), rng.standard_normal((9, 6))
    for got in (client.gemm(a.T, b.T, trans_a=True, trans_b=True),
                client.gemm(np.asfortranarray(a), np.asfortranarray(b)),
                client.gemm(np.ascontiguousarray(a.T), b, trans_a=True),
                client.gemm(np.ascontiguousarray(a.T).T, np.ascontiguousarray(b.T), trans_b=True)):
        check(got, "f64", a, b)
    wide = rng.standard_normal((9, 8))
    check(client.gemm(a, wide[:, :7]), "f64", a, wide[:, :7])
    check(client.gemm(wide[:, 1:].T, wide[:, 1:]), "f64", wide[:, 1:].T, wide[:, 1:])
    batched = rng.standard_normal((3, 9, 4)).swapaxes(-1, -2)
    check(client.gemm(batched, b), "f64", batched, b)
    check(client.gemm(batched.transpose(1, 0, 2), b), "f64", batched.transpose(1, 0, 2), b)


@pytest.mark.parametrize("name", elements.FLOATS)
def test_epilogue(client, name, rng):
    a, b = elements.small(name, (2, 5, 8), rng, -1, 1), elements.small(name, (8, 7), rng, -1, 1)
    c, bias = elements.small(name, (5, 7), rng, -1, 1), elements.small(name, (7,), rng, -1, 1)
    check(client.gemm(a, b, bias=bias), name, a, b, bias=bias)
    for activation in ("relu", "gelu", "none", None):
        check(client.gemm(a, b, c, alpha=2, beta=-0.5, bias=bias, activation=activation), name, a, b, c=c,
              alpha=2, beta=-0.5, bias=bias, activation=activation)


def test_c(client, rng):
    a, b, c = rng.standard_normal((4, 9)), rng.standard_normal((9, 6)), rng.standard_normal((4, 6))
    check(client.gemm(a, b, c), "f64", a, b, c=c, beta=1)
    check(client.gemm(a, b, np.asfortranarray(c)), "f64", a, b, c=c, beta=1)
    check(client.gemm(a, b, c, beta=0), "f64", a, b)
    with pytest.raises(warpline.InvalidArgument):
        client.gemm(a, b, beta=2)


def test_precision(client, rng):
    a, b = elements.small("f32", (20, 30), rng), elements.small("f32", (30, 10), rng)
    check(client.gemm(a, b, precision="ieee"), "f32", a, b)
    assert np.allclose(client.gemm(a, b, precision="tf32"), a @ b, rtol=0.01, atol=0.3)


def test_matmul_is_numpys(daemon, rng):
    a, b = rng.standard_normal((3, 1, 20, 30)), rng.standard_normal((2, 30, 10))

    async def asynchronously():
        async with warpline.aio.connect(daemon.address) as client:
            return await client.matmul(a, b)

    with warpline.connect(daemon.address) as client:
        for got in (client.matmul(a, b), asyncio.run(asynchronously())):
            assert got.shape == (3, 2, 20, 10) and np.allclose(got, np.matmul(a, b))
        assert client.matmul(np.full((2, 2), 3, "i1"), np.eye(2, dtype="i1")).dtype == np.int32
        with client.matmul(a, b, keep=True) as kept:
            assert kept.shape == (3, 2, 20, 10)
