"""Functions of NumPy that are made of others: on the server, with NumPy's values and types."""

import math
import warnings

import numpy as np
import pytest
from comparison import same

import warpline
from warpline import composed

NAN, INF = math.nan, math.inf
X = np.array([[1.5, NAN, -2, INF], [NAN, NAN, NAN, NAN], [0, 3, -INF, 2]])
F = np.array([[3.0, -4, 0.5], [1, 2, -2]])
I = np.array([[3, -4, 0], [1, 2, 3]])
V, W = np.array([2, 0, 5, 2, 2, 1]), np.array([0.25, 1, 3, NAN, 1, 0.5])


@pytest.fixture(scope="module")
def c(daemon):
    with warpline.connect(daemon.address) as connected:
        yield connected


def flat(result):
    return [one for part in result for one in flat(part)] if isinstance(result, (tuple, list)) else [result]


def agree(c, function, *arrays):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = flat(function(*arrays))
    with warnings.catch_warnings():
        warnings.simplefilter("error", warpline.WarplinePerformanceWarning)
        got = flat(function(*(c.put(x) for x in arrays)))
    assert len(got) == len(want)
    for one, expected in zip(got, want):
        assert isinstance(one, (warpline.Expression, bool, np.ndarray))
        one, expected = np.asarray(one), np.asarray(expected)
        assert one.dtype == expected.dtype and one.shape == expected.shape
        np.testing.assert_allclose(one, expected, rtol=1e-12)


CASES = {
    "nansum": (np.nansum, X), "nansum, axis": (lambda x: np.nansum(x, axis=0, keepdims=True), X[::2]), "nanprod": (np.nanprod, X[:1, :3]),
    "nancumsum": (lambda x: np.nancumsum(x, axis=1), X[:2, :3]), "nancumprod": (np.nancumprod, X[:1, :3]),
    "nanmin": (lambda x: np.nanmin(x, axis=1), X), "nanmax": (lambda x: np.nanmax(x, axis=1, keepdims=True), X),
    "nanmin of integers": (np.nanmin, I), "nanmean": (lambda x: np.nanmean(x, axis=1), X[:2]), "nanmean of integers": (np.nanmean, I),
    "nanvar": (lambda x: np.nanvar(x, axis=0), X[:, :2]), "nanstd": (lambda x: np.nanstd(x, ddof=1), X[:1, :3]),
    "nan_to_num": (np.nan_to_num, X), "nan_to_num, values": (lambda x: np.nan_to_num(x, nan=1.0, posinf=7.0, neginf=-7.0), X.astype("f4")),
    "isclose": (lambda x: np.isclose(x, x + 1e-9), X), "isclose, nan": (lambda x: np.isclose(x, x[0], equal_nan=True), X),
    "isclose, number": (lambda x: np.isclose(x, 3), I), "allclose": (lambda x: np.allclose(x, x * (1 + 1e-7)), F),
    "allclose, not": (lambda x: np.allclose(x, x + 1), F), "array_equal": (lambda x: np.array_equal(x, x[:2]), X[:2]),
    "array_equal, shapes": (lambda x: np.array_equal(x, x[:1]), F), "array_equal, nan": (lambda x: np.array_equal(x, x, equal_nan=True), X),
    "isin": (lambda x: np.isin(x, [2, 5, 7]), V), "isin, invert": (lambda x: np.isin(x, [2.0, NAN], invert=True), X),
    "isin of none": (lambda x: np.isin(x, []), V), "broadcast_arrays": (lambda x: np.broadcast_arrays(x, x[:1], 3.0), F),
    "meshgrid": (lambda x, y: np.meshgrid(x, y), V, W), "meshgrid, ij": (lambda x, y: np.meshgrid(x, y, indexing="ij"), V, W),
    "meshgrid, sparse": (lambda x, y: np.meshgrid(x, y, x, sparse=True), V, V), "column_stack": (lambda x, y: np.column_stack((x, y)), V, W),
    "append": (lambda x: np.append(x, 9.0), V), "append, axis": (lambda x: np.append(x, x[:1], axis=0), F),
    "diag of a matrix": (lambda x: np.diag(x, 1), F), "diag": (np.diag, V), "diag above": (lambda x: np.diag(x, 2), V),
    "diag below": (lambda x: np.diag(x, -1), V), "average": (np.average, F), "average, weights": (lambda x: np.average(x, weights=abs(x)), F),
    "average, axis": (lambda x: np.average(x, axis=1, weights=[1, 2, 3]), I), "norm": (np.linalg.norm, F), "norm of integers": (np.linalg.norm, I),
    "norm, axis": (lambda x: np.linalg.norm(x, axis=1, keepdims=True), F), "norm 1": (lambda x: np.linalg.norm(x, 1), F),
    "norm inf": (lambda x: np.linalg.norm(x, INF), F), "norm -1": (lambda x: np.linalg.norm(x, -1), F),
    "norm fro": (lambda x: np.linalg.norm(x, "fro", keepdims=True), F), "vector norm 1": (lambda x: np.linalg.norm(x[0], 1), F),
    "vector norm 3": (lambda x: np.linalg.norm(x, 3, axis=0), F), "vector norm 0": (lambda x: np.linalg.norm(x[0], 0), F),
    "vector norm -inf": (lambda x: np.linalg.norm(x, -INF, axis=1), F), "norm of complex": (np.linalg.norm, F * 1j),
    "bincount": (np.bincount, V), "bincount, minlength": (lambda x: np.bincount(x, minlength=9), V.astype("u1")),
    "bincount of none": (lambda x: np.bincount(x, minlength=2), V[:0]), "histogram": (np.histogram, F), "histogram of integers": (lambda x: np.histogram(x, 3), V),
    "histogram, f4": (lambda x: np.histogram(x, 4), F.astype("f4")), "histogram, range": (lambda x: np.histogram(x, 5, range=(-3, 2)), F),
    "histogram, edges": (lambda x: np.histogram(x, [-4, 0, 1, 3]), F), "histogram, density": (lambda x: np.histogram(x, 4, density=True), F),
    "empty_like": (lambda x: np.empty_like(x) * 0, F),
    "isclose, small integers": (lambda x: np.isclose(x, 10, atol=1), np.array([9, 10, 12], "u1")),
    "isclose, least integer": (lambda x: np.isclose(x, 127, atol=1, rtol=0), np.array([-128, 126], "i1")),
    "isclose, beyond the type": (lambda x: np.isclose(x, 300), np.array([44, 255], "u1")),
    "nanmean, no axis": (lambda x: np.nanmean(x, axis=()), X), "nanvar, few numbers": (lambda x: np.nanvar(x, ddof=2), X[:1, :2]),
    "histogram, range of f4": (lambda x: np.histogram(x, 10, (0, 1)), (np.arange(11) / 10).astype("f4")),
    "average of small integers": (lambda x, w: np.average(x, weights=w), np.array([1, 200], "u1"), np.array([1, 3], "f4")),
    "average by bools": (lambda x, w: np.average(x, weights=w), np.array([1, 2], "f4"), np.array([True, True])),
    "average of integers that overflow": (lambda x: np.average(x, weights=x), np.array([127, -120], "i1")),
}


def test_unsigned_integers_are_found_among_signed_ones(c):  # exactly, which older NumPy does not
    u, i = c.put(np.array([2**63, 2**64 - 1, 5], "u8")), c.put(np.array([2**63 - 1, -1, 5, -2**63]))
    same(np.isin(u, i), np.array([False, False, True]))
    same(np.isin(i, u), np.array([False, False, True, False]))


def test_complex_numbers_have_no_nan_on_the_server(c):
    z = np.array([1 + 1j, NAN, 2])
    t = c.put(z)
    with pytest.warns(warpline.WarplinePerformanceWarning):
        same(np.nansum(t), np.nansum(z))
    with pytest.warns(warpline.WarplinePerformanceWarning):
        same(np.isclose(t, z), np.isclose(z, z))


def test_results_without_a_tensor_are_those_of_a_client(c):
    same(np.meshgrid(c.put(V), [1, 2], sparse=True)[1], np.array([[1], [2]]))
    same(np.isin([1, 2], c.put(V[:0])), np.array([False, False]))


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.3.0", reason="NumPy 2.3 gives norms of nothing a value")
@pytest.mark.parametrize("shape", [(0,), (0, 2)])
def test_norms_of_nothing(c, shape):
    agree(c, lambda x: np.linalg.norm(x, INF), np.zeros(shape))


@pytest.mark.parametrize("name", CASES)
def test_values(c, name):
    agree(c, *CASES[name])


A3, B3, M, N = (np.random.default_rng(5).normal(size=shape) for shape in ((2, 3, 4), (2, 4, 5), (3, 4), (4, 3)))


@pytest.mark.parametrize("spelled, operands", [
    ("ij,jk->ik", (M, N)), ("ij,jk", (M, N)), ("ij,ij->", (M, M)), ("ij,ij->i", (M, M)), ("bij,bjk->bik", (A3, B3)), ("bij,bjk->ikb", (A3, B3)),
    ("i,j->ij", (M[0], N[0])), ("ij->ji", (M,)), ("ij->", (M,)), ("ij->j", (M,)), ("ij", (M,)), ("ij,jk,kl->il", (M, N, M)),
    ("bij,bij->b", (A3, A3)), ("bij,j->bi", (A3, M[0])), ("ij,kj->", (M, M)), ("bij,kl->bl", (A3, M)), ("ij,j->ij", (M, M[0]))])
def test_einsum(c, spelled, operands):
    agree(c, lambda *x: np.einsum(spelled, *x), *operands)


def test_what_einsum_refuses(c):
    with pytest.raises(ValueError, match="letters, not by '1'"):
        np.einsum("i1,1k->ik", c.put(M), c.put(N))
    t = c.put(M)
    for wrong in ("ij,jk->ik", "ij->iji", "ij->k", "ijk->i"):
        with pytest.raises(ValueError, match="einsum"):
            np.einsum(wrong, *[t] * (1 + wrong.count(",")))
    for spelled, x in (("ii->i", M[:, :3]), ("...j->...", M)):
        with pytest.warns(warpline.WarplinePerformanceWarning, match="numpy.einsum"):
            same(np.einsum(spelled, c.put(x)), np.einsum(spelled, x))


def test_what_is_wrong(c):
    v = c.put(V)
    with pytest.raises(ValueError, match="must not be negative"):
        np.bincount(v - 1)
    with pytest.raises(ValueError, match="monotonically"):
        np.histogram(v, [1, 0])
    with pytest.raises(ValueError, match="not finite"):
        np.histogram(c.put(X))
    with pytest.warns(warpline.WarplinePerformanceWarning, match="numpy.bincount"):
        same(np.bincount(v, weights=V), np.bincount(V, weights=V))


def test_later_names_of_numpy(c):
    """NumPy has these functions of the standard since 2.0."""
    for order in (1, 2, INF, 3):
        want = np.linalg.norm(F, order, axis=1)
        np.testing.assert_allclose(np.asarray(composed.vector_norm(c.put(F), axis=1, ord=order)), want)
