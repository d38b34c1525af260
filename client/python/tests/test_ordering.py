"""Running sums, sorts and searches: they give what NumPy gives."""

import numpy as np
import pytest
from comparison import same

import warpline

RANDOM = np.random.default_rng(7)
TYPES = ["?", "i1", "u1", "i2", "u4", "i8", "u8", "f2", "f4", "f8"]


def array(dtype, *shape):
    x = RANDOM.normal(scale=3, size=shape)
    if np.dtype(dtype).kind == "f":
        x.ravel()[::7] = np.nan
        x.ravel()[1::5] = 0
        x.ravel()[2::5] = -0.0
    return np.abs(x).astype(dtype) if np.dtype(dtype).kind == "u" else np.nan_to_num(x).astype(dtype) if (
        np.dtype(dtype).kind == "i") else x.astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_sorts(client, dtype, axis):
    x = array(dtype, 9, 33, 5)
    with client.put(x) as t:
        same(np.sort(t, axis), np.sort(x, axis))
        same(np.argsort(t, axis, stable=True) if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else np.argsort(t, axis),
             np.argsort(x, axis, kind="stable"))


def test_topk_of_a_shape_that_is_not_known(client):
    x = RANDOM.normal(size=(5, 40)).astype("f4")
    queries = warpline.placeholder("queries", "f4")
    with client.put(RANDOM.normal(size=(8, 40)).astype("f4")) as t:
        values, places = client.run(*warpline.topk(queries @ t.T, 3), queries=x)
        want = x @ np.asarray(t).T
        np.testing.assert_allclose(values, np.sort(want)[:, :-4:-1], rtol=1e-5, atol=1e-5)
        same(places, np.argsort(-want, kind="stable")[:, :3])
        with pytest.raises(TypeError, match="shape"):
            warpline.topk(queries, 3, axis=0)


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u8"])
def test_an_exclusive_extreme_begins_with_the_limit_of_the_type(client, dtype):
    x = array(dtype, 9)
    least, greatest = (False, True) if dtype == "?" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    with client.put(x) as t:
        for op, ufunc, first in (("min", np.minimum, greatest), ("max", np.maximum, least)):
            want = np.concatenate([np.array([first], dtype), ufunc.accumulate(x)[:-1]])
            same(warpline.scan(t, op, 0, exclusive=True), want)


def test_numbers_are_not_cut_to_the_type_that_is_searched(client):
    for x, numbers in ((np.array([1, 2, 3]), (2.5, 2, np.inf, 1e30)), (np.array([0, 0.1, 0.2], "f4"), (0.1,)),
                       (np.array([False, True]), (2, 0.5)), (np.array([1, 200], "u1"), (300, -1))):
        with client.put(x) as t:
            for number in numbers:
                for side in ("left", "right"):
                    same(np.searchsorted(t, number, side), np.asarray(np.searchsorted(x, number, side)))


def is_partitioned(got, want, kth, axis):
    """Checks that got has the elements of the sorted array want, those of each kth in place, and the others on their side."""
    got, want = (np.moveaxis(np.asarray(a), axis, -1) for a in (got, want))
    same(np.sort(got, -1), want)
    for k in np.atleast_1d(kth):
        same(got[..., k], want[..., k])
        same(np.sort(got[..., :k], -1), want[..., :k])


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u8", "f2", "?"])
@pytest.mark.parametrize(("kth", "axis"), [(3, -1), ((0, -1), 0), (200, None), ((4, 4, 2), 1), (range(20), 1)])
def test_partitions(client, dtype, kth, axis):
    x = array(dtype, 9, 33)
    rows, along = (x.ravel(), 0) if axis is None else (x, axis)
    with client.put(x) as t:
        is_partitioned(client.run(np.partition(t, kth, axis)), np.sort(rows, along), kth, along)
        places = np.asarray(client.run(np.argpartition(t, kth, axis)))
        is_partitioned(places, np.sort(places, along), (), along)
        is_partitioned(np.take_along_axis(rows, places, along), np.sort(rows, along), kth, along)
        # The order of equal elements does not depend on the method.
        order = np.argsort(rows, along, kind="stable")
        for k in np.atleast_1d(kth):
            same(np.take(places, k, along), np.take(order, k, along))


def test_partitions_are_checked(client):
    x = array("f4", 9, 33)
    with client.put(x) as t:
        with pytest.raises(ValueError, match=r"kth is 33, which is outside of \[-33, 33\)"):
            np.partition(t, 33)
        with pytest.raises(ValueError, match="axis 2"):
            np.partition(t, 3, 2)
        with pytest.raises(ValueError, match="q is 101: percentiles"):
            np.percentile(t, 101)


@pytest.mark.parametrize("dtype", TYPES)
def test_descending_is_stable_with_nan_last(client, dtype):
    x = array(dtype, 50)
    key = x.astype("f8")
    order = sorted(range(50), key=lambda i: (np.isnan(key[i]), 0 if np.isnan(key[i]) else -key[i]))
    with client.put(x) as t:
        values, places = client.run(*warpline.sort_with_indices(t, descending=True))
        same(places, np.array(order))
        same(values, x[order])
        same(t.argsort(descending=True), np.array(order))


@pytest.mark.parametrize("largest", [True, False])
def test_top_k(client, largest):
    x = array("f4", 6, 100)
    x[:, 20:40] = x[:, 60:80]  # ties
    key = np.where(np.isnan(x), np.inf, x)
    order = np.argsort(-key if largest else key, axis=1, kind="stable")[:, :9]
    # NaN is above infinity, of which there is none here.
    with client.put(x) as t:
        values, places = client.run(*warpline.topk(t, 9, largest=largest))
        same(places, order)
        same(values, np.take_along_axis(x, order, 1))
        values, places = warpline.topk(t, 2, axis=0, largest=largest)
        same(values, np.take_along_axis(x, np.argsort(-key if largest else key, axis=0, kind="stable")[:2], 0))
        assert np.asarray(places).shape == (2, 100)
        for k in (0, 101):
            with pytest.raises(warpline.InvalidArgument, match=rf"\.k: .*: {k} is outside of \[1, 100\]"):
                client.run(warpline.topk(t, k)[0])


def test_places_alone_and_twice(client):
    x = array("f8", 4, 30)
    with client.put(x) as t:
        _, places = warpline.topk(t, 3)
        same(places, np.argsort(np.where(np.isnan(x), -np.inf, -x), axis=1, kind="stable")[:, :3])
        kept, sent = client.run(places, places, keep=[True, False])
        with kept:
            same(kept, sent)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "f4", "f8"])
def test_searches(client, dtype):
    x, v = np.sort(array(dtype, 40)), array(dtype, 3, 11)
    order = RANDOM.permutation(40)
    sorter = np.argsort(x[order], kind="stable")
    with client.put(x) as t, client.put(x[order]) as shuffled:
        for side in ("left", "right"):
            same(np.searchsorted(t, v, side), np.searchsorted(x, v, side))
            same(np.searchsorted(shuffled, v, side, sorter), np.searchsorted(x[order], v, side, sorter))
        same(t.searchsorted(1), np.array(np.searchsorted(x, 1)))
        with pytest.raises(warpline.InvalidArgument, match=r"inputs\[2\]: element 3 is 40, which is outside of \[-40, 40\)"):
            sorter[3] = 40
            client.run(np.searchsorted(t, v, "left", sorter))


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_running_sums(client, dtype, axis):
    x = RANDOM.integers(-4 if np.dtype(dtype).kind != "u" else 0, 5, size=(7, 20, 3)).astype(dtype)
    with client.put(x) as t:
        same(np.cumsum(t, axis), np.cumsum(x, axis))
        if x.dtype.kind != "c":
            same(np.cumprod(t[:, :5], axis), np.cumprod(x[:, :5], axis))
            for ufunc in (np.minimum, np.maximum):
                same(ufunc.accumulate(t, 1 if axis is None else axis), ufunc.accumulate(x, 1 if axis is None else axis))


def test_running_options(client):
    x = np.arange(1, 25, dtype="f4").reshape(4, 6)
    with client.put(x) as t:
        same(warpline.scan(t, "sum", 1, exclusive=True), np.cumsum(x, 1) - x)
        same(warpline.scan(t, "sum", 0, reverse=True), np.cumsum(x[::-1], 0)[::-1])
        same(warpline.scan(t, "prod", 1, exclusive=True, reverse=True)[:, -1], np.ones(4, "f4"))
        same(warpline.scan(t, "max", 1, exclusive=True)[:, 0], np.full(4, -np.inf, "f4"))
        same(np.cumsum(t, 1, dtype="f8"), np.cumsum(x, 1, dtype="f8"))
        same(np.add.accumulate(t), np.add.accumulate(x))
        same(np.diff(t, axis=0), np.diff(x, axis=0))
        if hasattr(np, "cumulative_sum"):
            same(np.cumulative_sum(t, axis=1, include_initial=True), np.cumulative_sum(x, axis=1, include_initial=True))
        with pytest.raises(warpline.InvalidArgument, match="out_data_type: .*i32: .* is a floating-point number"):
            client.run(np.cumsum(t, 0, dtype="i4"))
    with client.put(x.astype("f2")) as half:  # added in f32
        same(np.cumsum(half), np.cumsum(x, dtype="f4").astype("f2"))
    with client.put(x.astype("c8")) as pairs:
        with pytest.raises(warpline.Unimplemented, match="running products of complex numbers"):
            client.run(np.cumprod(pairs))
        with pytest.raises(warpline.InvalidArgument, match="have no order"):
            client.run(warpline.scan(pairs, "min"))


@pytest.mark.parametrize("axis", [0, 1, None, (0, 2)])
@pytest.mark.parametrize("dtype", ["i4", "f4", "f8"])
def test_quantiles(client, dtype, axis):
    x = RANDOM.normal(scale=9, size=(5, 8, 3)).astype(dtype)
    with client.put(x) as t:
        for got, want in ((np.median(t, axis), np.median(x, axis)), (np.quantile(t, 0.3, axis), np.quantile(x, 0.3, axis)),
                          (np.quantile(t, [0, 0.5, 0.9, 1], axis, keepdims=True),
                           np.quantile(x, [0, 0.5, 0.9, 1], axis, keepdims=True)),
                          (np.percentile(t, 25, axis), np.percentile(x, 25, axis))):
            # A few roundings of the neighbours, which may cancel.
            bound = 4 * np.finfo("f4" if dtype == "f4" else "f8").eps * np.abs(x).max()
            np.testing.assert_allclose(np.asarray(got), want, rtol=0, atol=bound)
            assert np.asarray(got).shape == np.shape(want)
    if dtype != "i4":
        x[2, 3, 1] = np.nan
        with client.put(x) as t:
            same(np.isnan(np.median(t, axis)), np.isnan(np.median(x, axis)))
            same(np.isnan(np.quantile(t, 0.5, axis)), np.isnan(np.quantile(x, 0.5, axis)))
