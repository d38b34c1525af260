"""Expressions that go on after a mask, and programs that take several requests."""

import asyncio
import time

import numpy as np
import pytest

import warpline
import warpline.aio
from warpline import plans

X = np.array([[3.0, 1, 5, 2], [4, 7, -1, 2]])
NONE = np.full(X.shape, -1.0)


@pytest.fixture
def c(daemon):
    with warpline.connect(daemon.address) as connected:
        yield connected


def requests(c, *expressions, **options):
    """The results, and of how many requests each."""
    seen = []
    return c.run(*expressions, report=seen.append, **options), len(seen)


@pytest.mark.parametrize("x", [X, NONE, X.astype("u1"), X.astype("f2")], ids=["some", "none", "u1", "f2"])
def test_reductions_of_what_a_mask_takes_are_one_request(c, x):
    t = c.put(x)
    for function in (np.sum, np.prod, np.mean, np.any, np.all, np.var, np.std, np.count_nonzero, lambda y: y.std(ddof=1),
                     lambda y: y.sum(dtype="f4")):
        with np.errstate(all="ignore"), pytest.warns(RuntimeWarning) if x is NONE else np.errstate():
            want = np.asarray(function(x[x > 2]))
            np.mean(np.zeros(0))
        got, count = requests(c, function(t[t > 2]))
        assert count == 1 and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-3 if x.dtype == "f2" else 1e-12)
    rows = np.array([False, True])
    np.testing.assert_allclose(c.run(np.sum(t[rows])), x[rows].sum(), rtol=1e-3)


def test_what_goes_on_after_a_mask(c):
    t = c.put(X)
    for function in (lambda x: np.sort(x[x > 2]), lambda x: x[x > 2] * 2, lambda x: x[x > 2].max(), lambda x: x[x > 2].sum(keepdims=True),
                     lambda x: np.cumsum(x[x > 1]) / x[x > 1].mean(), lambda x: np.unique(x) + 1, lambda x: np.argmax(x[x < 5]),
                     lambda x: x[x > 0][x[x > 0] < 4], lambda x: (x[x > 2] > 3).any(), lambda x: x[np.nonzero(x > 4)]):
        got, count = requests(c, function(t))
        assert count > 1
        np.testing.assert_allclose(got, function(X))
    with pytest.raises(ValueError, match="no elements|has no element"):
        c.run(t[t > 100].max())


def test_results_of_several_requests(c):
    t = c.put(X)
    chosen = t[t > 2]
    (first, second, third), count = requests(c, chosen, chosen * 2, t + 1)
    assert count == 2
    for got, want in ((first, X[X > 2]), (second, X[X > 2] * 2), (third, X + 1)):
        np.testing.assert_array_equal(got, want)
    kept, sent = c.run(chosen * 2, chosen - 1, keep=[True, False])
    np.testing.assert_array_equal(kept, X[X > 2] * 2)
    np.testing.assert_array_equal(sent, X[X > 2] - 1)
    out = np.empty(4)
    assert c.run(np.sort(chosen), out=out) is out and out.tolist() == [3, 4, 5, 7]
    np.testing.assert_array_equal(np.sort(chosen), [3, 4, 5, 7])  # by np.asarray
    del kept
    before = len(c.tensors())
    for _ in range(5):
        c.run(chosen * 2)
    deadline = time.monotonic() + 30
    while len(c.tensors()) > before:  # what lay between the requests is dropped, in the background
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_placeholders_of_several_requests(c):
    x, y = warpline.placeholder("x", "f8", X.shape), warpline.placeholder("y", "f8")
    p = warpline.program(np.sort(x[x > 2]) + y)
    for shift in (1.0, 2.0):
        np.testing.assert_array_equal(c.run(p, x=X, y=np.array(shift)), np.sort(X[X > 2]) + shift)
    for inputs in ({"x": X}, {"x": X, "y": np.array(1.0), "z": X}):
        with pytest.raises(TypeError, match=r"the placeholders are \['x', 'y'\], given are"):
            c.run(p, **inputs)


def test_programs_of_many_steps(c):
    t = c.put(X)
    e, want = t, X
    for i in range(300):
        e, want = (e - e.mean(axis=0)) + t * (i % 3), (want - want.mean(axis=0)) + X * (i % 3)
    got, count = requests(c, e, e.sum(), t.sum())  # 602 steps, 200 of which an earlier request takes
    assert count == 3
    np.testing.assert_allclose(got[0], want)
    np.testing.assert_allclose(got[1:], [want.sum(), X.sum()])


@pytest.mark.parametrize("count", [198, 199, 200])
def test_a_second_result_goes_with_its_step(c, count):
    x = np.random.default_rng(1).random(20)
    e = c.put(x)
    for _ in range(count):
        e = np.sort(e)
    values, places = warpline.sort_with_indices(e)
    for _ in range(60):
        values = np.sort(values)
    got = c.run(values, places)
    np.testing.assert_array_equal(got[0], np.sort(x))
    np.testing.assert_array_equal(got[1], np.arange(20))


def test_programs_of_many_inputs(c):
    x = np.arange(3)
    np.testing.assert_array_equal(c.run(sum(c.put(x + i) for i in range(150))), sum(x + i for i in range(150)))
    t = c.put(x)
    np.testing.assert_array_equal(c.run(sum(np.cumsum(t + i) for i in range(255))), sum(np.cumsum(x + i) for i in range(255)))


def test_numbers_after_a_mask_are_numbers(c):
    t = c.put(np.arange(6))
    m = t > 2
    assert (t[m] > 1).any() and not (t[m] > 4).all() and np.allclose(t[m], [3, 4, 5]) and 4 in t[m]
    assert list(range(t[m].max()))[-1] == 4 and round(t[m].max()) == 5 and f"{t[m].max():d}" == "5"


def test_sizes_after_a_mask_are_not_known(c):
    t = c.put(np.arange(6))
    for x in (t[t > 2], np.sort(t[t > 2]) * 2):
        with pytest.raises(TypeError, match="keep=True"):
            x.size
    assert warpline.placeholder("x").size is None


def test_results_between_requests_do_not_stay_for_long(c):
    t = c.put(np.arange(6))
    seen = []
    for plan in plans.plan_stages([np.sort(t[t > 2])], {}, False, None, None, ()):
        seen.append(plan.call.keep.ttl)
        break
    assert seen == [60]


def test_asyncio(daemon):
    async def main():
        async with warpline.aio.connect(daemon.address) as c:
            t = await c.put(X)
            seen = []
            x = warpline.placeholder("x", "f8", X.shape)
            got = await c.run(np.sort(x[x > 2]), x=t, report=seen.append)
            assert got.tolist() == [3, 4, 5, 7] and len(seen) == 2
            with pytest.raises(warpline.InvalidArgument):
                await c.run(x[x > 100].max(), x=t)
    asyncio.run(main())


def test_masks_beside_other_indices(c):
    t, three = c.put(X), c.put(np.arange(24.0).reshape(2, 3, 4))
    n = np.arange(24.0).reshape(2, 3, 4)
    columns, rows, both = np.array([True, False, True, True]), np.array([False, True]), np.arange(12).reshape(3, 4) % 5 == 0
    for key in ((slice(None), columns), (rows, 0), (1, columns), (rows, slice(1, 3)), (Ellipsis, columns), (rows, None),
                (slice(None), columns.tolist())):
        np.testing.assert_array_equal(c.run(t[key]), X[key])
    for key in ((slice(None), both), (0, both), (rows, slice(None), columns), (None, rows, 1), (Ellipsis, np.zeros(4, bool))):
        np.testing.assert_array_equal(c.run(three[key]), n[key])
    with pytest.raises(IndexError, match=r"mask of shape \(3,\) for axes of sizes \(4,\)"):
        t[:, np.array([True, False, True])]
    with pytest.raises(TypeError, match="only index"):
        t[:, t[0] > 2]
