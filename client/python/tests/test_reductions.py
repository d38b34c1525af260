"""Reductions by their own names, of both clients."""

import asyncio

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
    for ddof, error, text in ((0.5, TypeError, "ddof is 0.5: expected an integer"),
                              (np.nan, TypeError, "ddof is nan: expected an integer"),
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
