"""Reductions by their own names, of both clients."""

import asyncio
import warnings

import numpy as np
import pytest

import warpline

NAMES = ["sum", "prod", "mean", "var", "std", "min", "max", "argmin", "argmax", "any", "all"]
X = np.random.default_rng(3).standard_normal((5, 6, 7))


@pytest.fixture(params=["blocking", "asyncio"])
def reduced(request, daemon):
    """reduced(name, ...): what the client's method of that name gives."""
    def blocking(name, *arguments, **options):
        with warpline.connect(daemon.address) as client:
            return getattr(client, name)(*arguments, **options)

    def with_asyncio(name, *arguments, **options):
        async def call():
            async with warpline.aio.connect(daemon.address) as client:
                return await getattr(client, name)(*arguments, **options)

        return asyncio.run(call())

    return blocking if request.param == "blocking" else with_asyncio


@pytest.mark.parametrize("name", NAMES)
def test_each_is_numpys(reduced, name):
    x = X > 1 if name in ("any", "all") else X
    for axis in (None, 1):
        expected = getattr(np, name)(x, axis=axis)
        got = reduced(name, x, axis)
        assert got.dtype == expected.dtype and np.allclose(got, expected)


def test_options(reduced):
    assert reduced("sum", X, axis=(0, 2), keepdims=True).shape == (1, 6, 1)
    assert reduced("sum", X, dtype="f4").dtype == np.float32
    assert np.allclose(reduced("var", X, 0, ddof=1), X.var(axis=0, ddof=1))
    assert np.allclose(reduced("std", X, 0, ddof=2), X.std(axis=0, ddof=2))
    out = np.empty((5, 7))
    assert reduced("max", X, 1, out=out) is out and np.array_equal(out, X.max(axis=1))


def test_ddof_of_any_kind(reduced):
    for ddof in (1.0, np.float32(1), np.int8(1), np.array(1)):
        assert np.allclose(reduced("var", X, 0, ddof=ddof), X.var(axis=0, ddof=1))
    for ddof, error, text in ((np.nan, TypeError, "ddof is nan: expected an integer"),
                              ("1", TypeError, "ddof is '1': expected an integer"),
                              (True, TypeError, "ddof is True: expected an integer"),
                              (None, TypeError, "ddof is None: expected an integer"),
                              (1 << 31, ValueError, "ddof is 2147483648: expected an integer of 32 bits")):
        for attempt in (lambda: reduced("std", X, ddof=ddof), lambda: warpline.placeholder("x").std(ddof=ddof)):
            with pytest.raises(error, match=text):
                attempt()


@pytest.mark.parametrize("axis, error, text", [
    (True, TypeError, "axis is True: expected an integer"),
    (np.True_, TypeError, "axis is .*True_?.*: expected an integer"),
    ((0, False), TypeError, r"axis\[1\] is False: expected an integer"),
    (1.0, TypeError, "axis is 1.0: expected an integer"),
    ("1", TypeError, r"axis\[0\] is '1': expected an integer"),
    (-1 << 40, ValueError, "axis is -1099511627776: expected an integer of 32 bits"),
    ((), ValueError, "axis is empty"),
])
def test_wrong_axes(reduced, axis, error, text):
    for attempt in (lambda: reduced("sum", X, axis), lambda: reduced("reduce", X, "max", axis),
                    lambda: warpline.placeholder("x").sum(axis), lambda: warpline.program().reduce(X, "sum", axis)):
        with pytest.raises(error, match=text):
            attempt()


def test_expressions_and_clients_have_the_same_names():
    for name in NAMES:
        assert callable(getattr(warpline.Client, name)) and callable(getattr(warpline.aio.Client, name))
        assert callable(getattr(warpline.Expression, name))


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("op", ["sum", "prod", "mean"])
def test_complex_numbers(client, op, dtype):
    rng = np.random.default_rng(3)
    for shape in ((7,), (5, 6), (3, 4, 5), (2, 3, 2, 3, 2, 3, 2, 3), (4, 1), (3, 0), (0,), (1,), ()):
        x = (1 + 0.1 * rng.standard_normal((*shape, 2))).astype("f4" if dtype == "c8" else "f8").view(dtype)[..., 0]
        axes = [None, *range(len(shape)), *([(0, 2), (1,)] if len(shape) == 3 else [])]
        for axis in axes:
            for keepdims in (False, True):
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    want = getattr(np, op)(x, axis=axis, keepdims=keepdims)
                got = client.reduce(x, op, axis, keepdims=keepdims)
                assert got.dtype == want.dtype and got.shape == want.shape
                np.testing.assert_allclose(got, want, rtol=1e-5 if dtype == "c8" else 1e-13)
    x = np.arange(60).reshape(6, 10).astype(dtype)
    np.testing.assert_allclose(client.reduce(x[:, :7], op, 0), getattr(np, op)(x[:, :7], axis=0), rtol=1e-5)
    np.testing.assert_allclose(client.reduce(x.T, op, 1), getattr(np, op)(x.T, axis=1), rtol=1e-5)
    assert client.reduce(x, op, dtype="c16").dtype == np.dtype("c16")
    if dtype == "c8" and op == "prod":
        assert client.reduce(np.full(40, 1e3, dtype), op, dtype="c16") == np.prod(np.full(40, 1e3), dtype="c16")
    p = warpline.program()
    np.testing.assert_allclose(client.run(p.input(x)[1:, ::3].reduce(op, 0)), getattr(np, op)(x[1:, ::3], axis=0), rtol=1e-5)


def test_complex_numbers_have_no_order(client):
    x = np.ones(3, "c8")
    for op in ("min", "max", "argmin", "argmax"):
        with pytest.raises(warpline.InvalidArgument, match="have no order"):
            client.reduce(x, op)
    for op in ("any", "norm2", "std", "logsumexp"):
        with pytest.raises(warpline.Unimplemented, match=f"{op} of complex numbers is not implemented"):
            client.reduce(x, op)
    with pytest.raises(warpline.InvalidArgument, match="the result is a complex number"):
        client.reduce(x, "sum", dtype="f4")


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8", "u8"])
def test_products_of_integers_as_floats(client, dtype):
    x = np.full(9, 1 if dtype == "?" else 100, dtype)
    assert client.reduce(x, "prod", dtype="f8") == np.prod(x, dtype="f8")
    assert client.reduce(np.full(2, 2**40), "prod", dtype="f8") == 2.0**80
    assert client.reduce(x, "prod", dtype="f4").dtype == np.dtype("f4")
