"""What users try with expressions and tensors: what NumPy's functions make of them, and what to do instead."""

import asyncio
import pickle
import warnings

import numpy as np
import pytest

import warpline

X = np.arange(12.0).reshape(3, 4)


@pytest.fixture
def client(daemon):
    with warpline.connect(daemon.address) as connected:
        yield connected


@pytest.fixture
def t(client):
    with client.put(X) as tensor:
        yield tensor


def test_axes_reversed(client, t):
    wide = np.arange(24.0).reshape(2, 3, 4)
    p = warpline.program()
    for e, want in [(t + t, X + X), (t @ t.T, X @ X.T), (t.sum(axis=0), X.sum(0)), (t.sum(), X.sum()),
                    (p.transpose(wide, (1, 0, 2)), wide.transpose(1, 0, 2)), (p.input(wide), wide),
                    (warpline.program().gemm(t, X, trans_b=True), X @ X.T)]:
        assert np.array_equal(client.run(e.T), want.T)
    assert np.array_equal(client.run((t + t).T @ X), (X + X).T @ X)
    x = warpline.placeholder("x")
    for e in (x, x @ t, (t + x).sum(axis=0)):
        with pytest.raises(TypeError, match="rank of .* is not known .* mT"):
            e.T


def test_dtypes_and_shapes(client, t):
    p = warpline.program()
    wide, half = np.zeros((2, 1, 0, 4), "i2"), np.zeros((4, 4), "f2")
    for e in (t @ t.T + 1, (t.T @ X).sum(axis=0), t.argmax(), t.mean(axis=-1, keepdims=True), p.input(wide).T, p.input(wide).mT,
              p.transpose(wide, (1, 0, -1, 2)), p.input(wide).sum(axis=(0, 2)), p.input(wide).any(axis=1), p.input(wide).mean(),
              p.gemm(half, half, dtype="f4"), p.gemm(half.astype("i1"), half.astype("i1")), t.astype("u1") * 3 - 1,
              p.input(X[:, :1]) + X[:1], p.input(np.array(3)) * 2, p.input(X.T[::-1]).T):
        got = client.run(e)
        assert (e.dtype, e.shape, e.ndim) == (got.dtype, got.shape, got.ndim)
    x, y = warpline.placeholder("x", "i1"), warpline.placeholder("y")
    for e, dtype in [(x @ x, "i4"), (x.mean(), "f8"), (x.any(), "?"), (x.sum(), "i8"), (x.mT + x, "i1"), (x + t, "f8"),
                     (y @ t, "f8"), (y.astype("f4") @ y.astype("f2"), "f4"), (y, None), (y.sum() * np.float32(2), "f4"), (y.sum() + y, None)]:
        # The reduction of all elements is one number, whatever the shape.
        assert e.dtype == dtype and e.shape == (() if "reduce" in str(e) else None)
    # The line that is wrong raises the error that the server would give.
    for use, words in [(lambda: t @ t, "inner size 3"), (lambda: t + X[:2], "cannot be broadcast"), (lambda: t.sum(axis=5), "axis 5"),
                       (lambda: p.transpose(X, (0, 0)), "named twice"), (lambda: t.reshape(5, 5), "12 elements"),
                       (lambda: np.sort(t, axis=4), "4 is outside"), (lambda: np.concatenate([t, np.ones((2, 5))]), "axis 0 only")]:
        with pytest.raises(ValueError, match=words):
            use()
    later = x @ t + np.ones(5)
    with pytest.raises(ValueError, match="cannot be broadcast"):
        client.run(later, x=np.ones((2, 3), "i1"))


def test_shapes_of_long_chains():
    x = warpline.program().input(X)
    for _ in range(3000):
        x = x.mT
    assert x.shape == X.shape and x.T.shape == X.T.shape


def test_reductions_of_numpy(client, t):
    e = t + t
    for function in (np.sum, np.prod, np.mean, np.max, np.min, np.var, np.std, np.any, np.all, np.argmin, np.argmax):
        for given, array in ((t, X), (e, X + X)):
            for axis in (None, 1):
                got = function(given, axis=axis)
                assert isinstance(got, warpline.Expression) and np.allclose(client.run(got), function(array, axis=axis))
    assert client.run(np.sum(t, axis=1, keepdims=True)).shape == (3, 1)
    assert client.run(np.sum(t, dtype="f4")).dtype == "f4" and np.allclose(client.run(np.std(t, ddof=1)), X.std(ddof=1))
    with pytest.raises(TypeError, match="out is given"):
        np.sum(t, out=np.zeros(()))


def test_what_is_shown():
    p = warpline.program()
    bf16 = p.input(np.zeros((2, 2), warpline.bfloat16))
    x = warpline.placeholder("x", "f4")
    total = p.input(X).sum(axis=0, name="total")
    for e, want in [(total, "total float64[4]"), (p.input(X), "input float64[3, 4]"), (bf16.T, "transpose bfloat16[2, 2]"),
                    (bf16.sum(), "reduce bfloat16[]"), (x, "x float32"), (x @ x, "gemm float32"),
                    (warpline.placeholder("y"), "y"), (p.gemm(x, X), "gemm float64")]:
        assert repr(e) == f"<warpline.Expression {want}>"
    assert repr(warpline.program(total, x @ x)) == "<warpline.Program total float64[4], gemm float32>"
    assert repr(p) == "<warpline.Program without outputs>"


def test_functions_that_fetch_warn_once_for_each_line(client):
    big, small = np.ones((512, 256)), np.ones((512, 255))
    with client.put(big) as t, client.put(small) as u, warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (t, t + t):
            assert np.asarray(x).shape == np.array(x, "f4").shape == np.ascontiguousarray(x).shape == big.shape
            for lazy in (np.sum(x), np.mean(x, axis=0)):
                assert isinstance(lazy, warpline.Expression)
            assert np.shape(x) == big.shape and np.ndim(x) == 2
        assert np.concatenate([u, small]).shape == (1024, 255)
        for use in (lambda: np.dstack([big, t]), lambda: np.cov((t + t)[:2]), lambda: np.gradient(t, axis=0),
                    lambda: np.linalg.norm(t[:2], 2)):
            with pytest.raises(warpline.WarplinePerformanceWarning, match="has fetched the elements.* np.asarray"):
                use()
        # The functions after these are not affected.
        assert np.asarray(t).shape == big.shape
    with client.put(big) as t, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            np.cov(t[:2])
            np.dstack([t, t]), np.fmod(t, 2), np.fmod(t, 3)
            np.add.reduceat(t, [0, 1])
    assert [(one.category, one.filename) for one in caught] == [(warpline.WarplinePerformanceWarning, __file__)] * 4
    assert [str(one.message).split()[0] for one in caught] == ["numpy.cov", "numpy.dstack", "numpy.fmod",
                                                               "numpy.add.reduceat"]


def test_functions_of_numpy_work(client, t):
    assert np.allclose(np.concatenate([t, X]), np.concatenate([X, X])) and np.array_equal(t, X)
    assert np.array_equal(np.stack([t, t + 1]), np.stack([X, X + 1])) and np.vstack([t]).shape == X.shape
    assert np.array_equal(np.dot(X.T, t), X.T @ X) and np.linalg.norm(t) == np.linalg.norm(X)
    with pytest.raises(TypeError):
        np.zeros(3, like=t)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", warpline.WarplinePerformanceWarning)
        assert all(map(np.array_equal, np.frexp(t), np.frexp(X)))
        assert np.array_equal(np.multiply(t, 2, dtype="f4"), np.multiply(X, 2, dtype="f4"))
        assert np.array_equal(np.sin(t * 1j), np.sin(X * 1j))
    for use, what in ((lambda: np.exp(t, out=X), "numpy.exp"), (lambda: np.add.at(t, [0], 1), "numpy.add.at")):
        with pytest.raises(TypeError, match=f"{what} writes into an array"):
            use()


def test_one_number_is_what_python_takes_as_one(client, t):
    assert (t > -1).all() and not (t < 0).any() and max(t.sum(), 1) is not 1  # noqa: F632
    assert f"{t.sum():.2f} {t.sum() / 3:>8.1f}" == f"{X.sum():.2f} {X.sum() / 3:>8.1f}" and f"{t.sum()}" == repr(t.sum())
    assert round(t.mean(), 2) == round(float(X.mean()), 2) and list(range(t.argmax()))[-1] == X.argmax() - 1
    assert X.max() in t and 1e9 not in t and [10, 20][client.put(np.int64(1))] == 20
    for use in (lambda: range(t.sum()), lambda: [1][t], lambda: round(t)):
        with pytest.raises(TypeError, match="no integer|not one number|one number"):
            use()
    for key in (t > 2, 0, (0, 1), slice(None)):
        with pytest.raises(TypeError, match=r"never change: warpline\.set_slice.* np\.where"):
            t[key] = 0
    np.testing.assert_array_equal(X[t[0].argsort()[:2]], X[X[0].argsort()[:2]])  # an array's index
    for x in (t.sum(), warpline.program(t.sum()), warpline.placeholder("x")):
        with pytest.raises(TypeError, match="cannot be pickled, because"):
            pickle.dumps(x)


def test_programs_are_no_arrays(client, t):
    p = warpline.program(t.sum())
    for use in (lambda: np.asarray(p), lambda: client.transpose(p), lambda: client.put(p)):
        with pytest.raises(TypeError, match="a program is no array"):
            use()


def test_neither_true_nor_false(t):
    for x in (t, t + t, warpline.placeholder("x")):
        with pytest.raises(TypeError, match=r"not true or false: its any\(\) and all\(\)"):
            bool(x)
        assert x is not None and x in (None, x) and not (x == None) and x != None  # noqa: E711


def test_products_of_elements(client, t):
    assert np.array_equal(client.run(t * t), X * X) and np.array_equal(client.run((t + t) * X), 2 * X * X)
    assert np.array_equal(client.run(X * t), X * X) and np.array_equal(client.run(t * X[0].tolist()), X * X[0])
    with pytest.raises(TypeError, match="x @ y multiplies matrices"):
        t.program.scale(t, t)


def test_inputs_go_by_name(client, t):
    x, y = warpline.placeholder("x"), warpline.placeholder("y")
    p = warpline.program(x @ y)
    for given in ((p, X), (p, t), (p, p), (t, p)):
        with pytest.raises(TypeError, match=r"one program .* run.p, x=\.\.\.."):
            client.run(*given)
    with pytest.raises(TypeError, match=r"expressions or a program, not ndarray: .* run.e, x="):
        client.run(x @ y, X)
    with pytest.raises(TypeError, match=r"placeholder 'y' takes an array or a resident tensor, .* keep=True"):
        client.run(p, x=t, y=t.T)
    with client.run(t.T, keep=True) as turned:
        assert np.allclose(client.run(p, x=t, y=turned), X @ X.T)


def test_inputs_are_not_computed(client, t):
    x = warpline.placeholder("x")
    for given, inputs in (((t,), {}), ((x,), {"x": X}), ((warpline.program(x),), {"x": X}), ((t.sum(), t), {})):
        with pytest.raises(ValueError, match="is an input, of which there is nothing to compute: .* t.numpy()"):
            client.run(*given, **inputs)


def test_what_is_to_be_awaited_is_no_array(daemon):
    async def check():
        async with warpline.aio.connect(daemon.address) as c:
            put = asyncio.ensure_future(c.put(X))
            for use in (c.gemm(put, X), c.transpose(put), c.put(put)):
                with pytest.raises(TypeError, match="this Task is no array: await it"):
                    await use
            assert np.allclose(await c.gemm(await put, X.T), X @ X.T)

    asyncio.run(check())
