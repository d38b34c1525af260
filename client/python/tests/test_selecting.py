"""Results whose size depends on elements: they give what NumPy gives."""

import numpy as np
import pytest
from comparison import same

import warpline
from daemon import Daemon

RANDOM = np.random.default_rng(11)
A = RANDOM.integers(-3, 4, size=(7, 5, 4)).astype("f4")


@pytest.fixture(scope="module")
def t(client):
    with client.put(A) as tensor:
        yield tensor


@pytest.mark.parametrize("mask", [A > 0, A > 9, A > -9, A[:, :, 0] > 0, A[:, 0, 0] > 0], ids=["some", "none", "all", "rows", "planes"])
def test_masks(client, t, mask):
    same(t[mask], A[mask])
    with client.put(mask) as m:
        same(t[m], A[mask])
        same((2 * t.transpose(0, 1, 2) + 1)[m], (2 * A + 1)[mask])
    same(t[t > 1], A[A > 1])


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f2", "f8", "c8", "c16"])
def test_masks_of_all_types(client, dtype):
    x = A.astype(dtype)
    with client.put(x) as u:
        same(u[A != 1], x[A != 1])


def test_results_stay_or_come(client, t):
    mask = A > 0
    total, chosen = client.run(t.sum(), t[mask])
    assert total == A.sum()
    same(chosen, A[mask])
    kept, count = client.run(t[mask], (t > 0).reduce("count_nonzero"), keep=[True, False])
    with kept:
        assert kept.shape == (count,) == A[mask].shape
        same(kept, A[mask])
        same(kept + 1, A[mask] + 1)
    out = np.empty(A[mask].shape, "f4")
    client.run(t[mask], out=out)
    same(out, A[mask])


def test_what_needs_the_shape(client, t):
    chosen = t[A > 0]
    assert chosen.shape is None
    with pytest.raises(TypeError, match="needs the shape .* not known before it is computed"):
        np.median(chosen)
    for wrong in (np.ones((7, 4), bool), np.ones((7, 5, 4, 1), bool)):
        with pytest.raises(warpline.InvalidArgument, match="must have the first axes of"):
            client.run(t[wrong])


def test_places(client, t):
    for got, want in zip(np.nonzero(t), np.nonzero(A), strict=True):
        same(got, want)
    for got, want in zip(client.run(*(t > 1).nonzero()), np.nonzero(A > 1), strict=True):
        same(got, want)
    same(np.argwhere(t), np.argwhere(A))
    same(np.flatnonzero(t), np.flatnonzero(A))
    same(np.compress([True, False, True], t, 0), np.compress([True, False, True], A, 0))
    same(np.compress(A.ravel() > 1, t), np.compress(A.ravel() > 1, A))
    same(np.extract(A > 1, t), np.extract(A > 1, A))


@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "i8", "f2", "f4", "f8"])
def test_different_elements(client, dtype):
    x = np.abs(A).astype(dtype) if dtype[0] == "u" else A.astype(dtype)
    with client.put(x) as u:
        same(np.unique(u), np.unique(x))
        got = client.run(*np.unique(u, return_index=True, return_inverse=True, return_counts=True))
        want = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        for index in (0, 1, 3):
            same(got[index], want[index])
        same(got[2].ravel(), want[2].ravel())
        same(got[0][got[2]], x)
    empty = np.zeros(0, dtype)
    with client.put(empty) as u:
        for got in client.run(*np.unique(u, return_counts=True)):
            assert got.shape == (0,)


def test_nan_differs_from_nan(client):
    x = np.array([1, np.nan, 0.0, -0.0, np.nan, 1])
    with client.put(x) as u:
        same(np.unique(u), np.unique(x))
        if hasattr(np, "unique_counts"):
            values, counts = client.run(*np.unique_counts(u))
            assert len(values) == 4 and counts.tolist() == [2, 2, 1, 1]
            assert client.run(np.unique_all(u).inverse_indices).tolist() == [1, 2, 0, 0, 3, 1]


def test_results_that_are_too_large():
    with Daemon("--max-inline-bytes=500000") as daemon, warpline.connect(daemon.address) as small, \
            small.run(warpline.arange(100_000, dtype="f8"), keep=True) as u:
        assert len(small.run(u[u < 1000])) == 1000
        with pytest.raises(warpline.InvalidArgument, match=r"outputs\[0\]: the result is f64 \[99999\], and takes 799992 bytes"):
            small.run(u[u > 0])
        with small.run(u[u > 0], keep=True) as kept:
            assert kept.shape == (99_999,)


def test_kept_results_need_their_memory_once():
    # The tensor has 4 MB and its mask 1 MB; of the 10 MB what is left has room for one result of 4 MB, but not for two.
    with Daemon("--resident-bytes=10M") as daemon, warpline.connect(daemon.address) as small:
        x = np.arange(1_000_000, dtype="f4")
        with small.put(x) as u:
            with small.run(u[u >= 0], keep=True) as everything:
                same(everything, x)
            with small.run(u[u < 0], keep=True) as nothing:
                assert nothing.shape == (0,)
            with small.run(u[u < 100], keep=True) as few:
                same(few, x[:100])
                assert daemon.total("warpline_resident_bytes") < 4.2e6, "the rest of the result has been given back"


def test_kept_results_that_never_fit_are_refused_at_once():
    with Daemon("--resident-bytes=6M") as daemon, warpline.connect(daemon.address) as small:
        x = np.ones(1_000_000, "f4")
        with small.put(x) as u:
            with pytest.raises(warpline.ResourceExhausted, match="results of 8000[0-9]* bytes together do not fit") as error:
                small.run(u[u > 0], (u + 1)[u > 0], keep=True)
            assert error.value.retry_after is None


def test_where_of_a_condition_alone(client, t):
    for got, want in zip(client.run(*np.where(t > 9)), np.where(A > 9), strict=True):
        same(got, want)
    with pytest.raises(ValueError, match="one axis or more"):
        np.nonzero(t[0, 0, 0])
    same(client.run(np.compress([1, 0, 1], t, axis=0)), np.compress([1, 0, 1], A, axis=0))


def test_tensors_of_one_element_are_numbers(client):
    with client.put(np.array([2.5])) as number:
        assert (number.item(), float(number), int(number)) == (2.5, 2.5, 2)
