"""Calls of NumPy's functions with the keywords that programs give them: on the server what it computes, else here."""

import warnings

import numpy as np
import pytest

import warpline

X = np.array([[3.0, -1, 2, 2], [1, 0, 5, -4]])
EMPTY = np.zeros((2, 0))
INTEGERS = np.array([[3, 1, 2], [7, 250, 0]], "u1")
MASK = X > 0


@pytest.fixture(scope="module")
def c(daemon):
    with warpline.connect(daemon.address) as connected:
        yield connected


def agree(c, function, *arrays):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = function(*arrays)
    got = function(*(c.put(x) for x in arrays))
    assert isinstance(got, warpline.Expression)
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-12)


ON_THE_SERVER = {
    "initial of sum": lambda x: np.sum(x, initial=10), "initial of prod": lambda x: np.prod(x, axis=0, initial=2),
    "initial of max": lambda x: np.max(x, initial=4), "initial of min": lambda x: np.min(x, axis=1, initial=-2),
    "max, where": lambda x: np.max(x, where=x < 3, initial=0), "min, where": lambda x: np.min(x, 0, where=x > 0, initial=9),
    "sum, where and initial": lambda x: np.sum(x, axis=1, where=x > 0, initial=1, keepdims=True),
    "var, where": lambda x: np.var(x, where=x > 0), "std, where": lambda x: np.std(x, axis=1, where=x > 0, ddof=1),
    "where and no axis": lambda x: np.sum(x, axis=(), where=x > 0), "mean, where and no axis": lambda x: np.mean(x, axis=(), where=x > 0),
    "max, where, no axis and initial": lambda x: np.max(x, axis=(), where=x > 0, initial=2),
    "initial of another type": lambda x: np.max(x.astype("i4"), initial=2.5, where=x > 0),
    "initial of a product": lambda x: np.prod(x.astype("i8"), initial=2.5), "initial, exact": lambda x: np.sum(abs(x).astype("u8") + (1 << 63), initial=np.int64(2)),
    "var of none": lambda x: np.var(x, where=x > 100), "mean, where": lambda x: np.mean(x, where=x > 0),
    "var, ddof": lambda x: np.var(x, ddof=0.5), "std, ddof": lambda x: np.std(x, axis=0, ddof=1.5, keepdims=True),
    "std, ddof beyond": lambda x: np.std(x, ddof=8.5), "sum, no axis": lambda x: np.sum(x, axis=()),
    "mean, no axis": lambda x: np.mean(x, axis=()), "any, no axis": lambda x: np.any(x, axis=()),
    "max, no axis": lambda x: np.max(x, axis=(), keepdims=True), "ptp": np.ptp, "ptp, axis": lambda x: np.ptp(x, 1, keepdims=True),
    "add.reduce": np.add.reduce, "multiply.reduce": lambda x: np.multiply.reduce(x, axis=1),
    "maximum.reduce": lambda x: np.maximum.reduce(x, axis=None), "minimum.reduce": lambda x: np.minimum.reduce(x, keepdims=True),
    "logical_or.reduce": np.logical_or.reduce, "logical_and.reduce": lambda x: np.logical_and.reduce(x, axis=(0, 1)),
    "add.reduce, initial": lambda x: np.add.reduce(x, initial=3, where=x > 0), "add.outer": lambda x: np.add.outer(x, x[0]),
    "multiply.outer": lambda x: np.multiply.outer(x[0], x), "add.accumulate": np.add.accumulate,
    "diff, prepend": lambda x: np.diff(x, prepend=0), "diff, append": lambda x: np.diff(x, axis=0, append=x[:1]),
    "diff, both": lambda x: np.diff(x, 2, prepend=[[1], [2]], append=7), "tril of a vector": lambda x: np.tril(x[0]),
    "triu of a vector": lambda x: np.triu(x[1], 1), "quantile": lambda x: np.quantile(x, 0.25, weights=None),
    "percentile": lambda x: np.percentile(x, 50, method="linear"), "fmin is not": lambda x: np.minimum(x, 0),
}
if np.lib.NumpyVersion(np.__version__) < "2.0.0":
    del ON_THE_SERVER["quantile"]


@pytest.mark.parametrize("name", ON_THE_SERVER)
def test_on_the_server(c, name):
    agree(c, ON_THE_SERVER[name], X)


@pytest.mark.parametrize("name", ["initial of sum", "initial of max", "sum, no axis", "var, where", "ptp", "add.reduce",
                                  "diff, prepend", "maximum.reduce", "mean, no axis", "sum, where and initial"])
def test_of_integers(c, name):
    agree(c, ON_THE_SERVER[name], INTEGERS)


@pytest.mark.parametrize("function", [lambda x: np.max(x, initial=1), lambda x: np.min(x, axis=1, initial=1), np.median,
                                      lambda x: np.sum(x, initial=2), lambda x: np.median(x, axis=1, keepdims=True)])
def test_of_nothing(c, function):
    agree(c, function, EMPTY)


def test_rank_0(c):
    x = np.array(2.0)
    for function in (lambda x: np.sum(x, axis=0), lambda x: np.max(x, axis=-1), lambda x: np.mean(x, axis=()),
                     lambda x: np.add.reduce(x.reshape(1)), lambda x: x[x > 1].reshape(1) if isinstance(x, np.ndarray) else x[x > 1]):
        np.testing.assert_array_equal(c.run(function(c.put(x))), function(x))
    with pytest.raises(ValueError, match="axis 1"):
        np.sum(c.put(x), axis=1)


HERE = {
    "pad, mean": lambda x: np.pad(x, 1, mode="mean"), "unique, axis": lambda x: np.unique(x, axis=0),
    "quantile, method": lambda x: np.quantile(x, 0.3, method="lower"), "fmax": lambda x: np.fmax(x, 2),
    "fmod": lambda x: np.fmod(x, 2), "heaviside": lambda x: np.heaviside(x, 0.5), "deg2rad": np.deg2rad,
    "dtype of multiply": lambda x: np.multiply(x, 2, dtype="f4"), "where of add": lambda x: np.add(x, 1, where=True),
    "compress, axis": lambda x: np.compress([True, False, True, True], x, axis=1), "interp": lambda x: np.interp([0.5], x[0], x[1]),
    "hypot.reduce": lambda x: np.hypot.reduce(x), "subtract.accumulate": lambda x: np.subtract.accumulate(x),
    "argwhere of rank 0": lambda x: np.argwhere(x[0, 0]), "piecewise": lambda x: np.piecewise(x[0], [x[0] < 2, x[0] >= 2], [0, 1]),
    "an operator": lambda x: x.astype("c16") < 2, "a reflected operator": lambda x: 2 < x.astype("c16"),
}


@pytest.mark.parametrize("name", HERE)
def test_on_the_client_with_a_warning(c, name):
    with pytest.warns(warpline.WarplinePerformanceWarning, match="is not computed on the server") as caught:
        got = HERE[name](c.put(X))
    assert len(caught) == 1 and caught[0].filename == __file__
    want = HERE[name](X)
    assert isinstance(got, (np.ndarray, np.generic)) and np.asarray(got).dtype == np.asarray(want).dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.filterwarnings("error::warpline.WarplinePerformanceWarning")
@pytest.mark.parametrize("use", [lambda x: x & 1, lambda x: -(x > 0), lambda x: (x > 0) - (x > 1), lambda x: x << x])
def test_operators_that_numpy_refuses(c, use):
    for x in (X, c.put(X)):
        with pytest.raises(TypeError):
            use(x)
