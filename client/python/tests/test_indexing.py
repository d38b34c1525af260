"""Elements by indices: they give what NumPy gives."""

import numpy as np
import pytest
from comparison import same

import warpline
from warpline import products

A = np.arange(6 * 5 * 4, dtype="f4").reshape(6, 5, 4)
TYPES = ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"]
I = np.array([[0, -1, 2], [3, 3, -4]])  # noqa: E741
IDS = repr


@pytest.fixture(scope="module")
def t(client):
    with client.put(A) as tensor:
        yield tensor


@pytest.mark.parametrize("key", [
    I, [0, 2], (slice(None), I), (..., I), (slice(None), slice(1, 4), I), (I, slice(None, None, -1)), (0, I), (I, 0),
    (0, slice(None), I), (slice(None), 0, I), (None, I), (I, None), (slice(1, 3), I, ...), np.array([], int), [],
    np.array(2), (I.astype("i4"), 1), I.astype("u1") % 4], ids=repr)
def test_array_of_indices(client, t, key):
    same(t[key], A[key])
    parts = tuple(client.put(part) if isinstance(part, np.ndarray) else part for part in (
        key if isinstance(key, tuple) else (key,)))
    same(t[parts], A[key])


@pytest.mark.parametrize("dtype", TYPES)
def test_take(client, dtype):
    x = RANDOM.integers(0, 100, size=(7, 9)).astype(dtype)
    with client.put(x) as t:
        for axis in (0, 1, -1, None):
            same(np.take(t, I, axis), np.take(x, I, axis))
            same(t.take([1, 0], axis), x.take([1, 0], axis))
        same(np.take(t, [100, -100], 0, mode="wrap"), np.take(x, [100, -100], 0, mode="wrap"))
        same(np.take(t, [100, -100], 0, mode="clip"), np.take(x, [100, -100], 0, mode="clip"))
        same(np.take(t.T[::-1], I, 0), np.take(x.T[::-1], I, 0))
        same(np.take(t[:, ::2], I % 3, 1), np.take(x[:, ::2], I % 3, 1))


RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_along_an_axis(client, t, axis):
    order = np.argsort(-A, axis)
    same(np.take_along_axis(t, order, axis), np.take_along_axis(A, order, axis))
    with client.put(order) as places:
        same(np.take_along_axis(t, places, axis), np.take_along_axis(A, order, axis))
    few = np.take(order, [0, 2], axis)
    same(np.take_along_axis(t, few, axis), np.take_along_axis(A, few, axis))
    values = RANDOM.normal(size=few.shape).astype("f4")
    want = A.copy()
    np.put_along_axis(want, few, values, axis)
    same(warpline.put_along_axis(t, few, values, axis), want)
    np.put_along_axis(want, few, 7, axis)
    same(warpline.put_along_axis(t, few, 7, axis), want)


def test_the_last_of_equal_indices_stays(client):
    x = np.zeros(5, "i4")
    with client.put(x) as t:
        same(warpline.put_along_axis(t, [1, 3, 1, -2], np.array([1, 2, 3, 4], "i4"), 0), np.array([0, 3, 0, 4, 0], "i4"))
    many = RANDOM.integers(-500, 500, 100_000)
    values = np.arange(100_000)
    want = np.zeros(500, "i8")
    for i, value in zip(many, values):
        want[i] = value
    with client.put(np.zeros(500, "i8")) as t:
        same(warpline.put_along_axis(t, many, values, 0), want)


def test_indices_out_of_range(client, t):
    for key, text in ((np.array([0, 6, 7]), r"inputs\[1\]: element 1 is 6, which is outside of \[-6, 6\)"),
                      (np.array([0, 1, -7]), r"element 2 is -7, which is outside of \[-6, 6\)")):
        with pytest.raises(warpline.InvalidArgument, match=text):
            client.run(t[key])
        with client.put(key) as places, pytest.raises(warpline.InvalidArgument, match=text):
            client.run(t[places])
    with pytest.raises(warpline.InvalidArgument, match="element 1 is 9"):
        client.run(warpline.put_along_axis(t[:, 0, 0], [0, 9], 0, 0))
    with pytest.raises(warpline.InvalidArgument, match="has no elements that an index could name"):
        client.run(t[:0][[0]])
    # The error is that of the first step, and the same call with good indices works.
    index = warpline.placeholder("index", "i8")
    e = np.take(t, index, 0)
    with pytest.raises(warpline.InvalidArgument, match="element 0 is 60"):
        client.run(np.take(e, index, 1), index=np.array([60]))
    same(client.run(e, index=np.array([2])), A[[2]])


@pytest.mark.parametrize("key", [(I, I), ([0, 1], [[2], [-1]]), (I, slice(None), I), (slice(1, 3), I, [3, 0, -4]),
                                 (0, I, I), (I, 0, I), (I, None, I), ([0, -6], [1, 2], [3, 3]), (..., [1, 2], [0, 1]),
                                 (np.zeros((0, 2), "i4"), [1, 2])], ids=IDS)
def test_several_arrays(client, t, key):
    same(t[key], A[key])
    held = [client.put(np.asarray(part)) if isinstance(part, (list, np.ndarray)) else part for part in key]
    same(t[tuple(held)], A[key])


def test_several_arrays_out_of_range(client, t):
    for key, text in ((([0, 6], [1, 1]), "index 6 is out of bounds for axis 0 with size 6"),
                      (([0, -7], [1, 1]), "index -7 is out of bounds for axis 0"),
                      ((0, [0, 4], [1, 4]), "index 4 is out of bounds for axis 2 with size 4"),
                      (([0, 0], [1, -6]), "index -6 is out of bounds for axis 1 with size 5")):
        with pytest.raises(IndexError, match=text):
            t[key]
        with pytest.raises(warpline.InvalidArgument, match=r"element 1 is \d+, which is outside of \[-\d+, \d+\)"):
            client.run(t[tuple(client.put(np.asarray(part)) if isinstance(part, list) else part for part in key)])


def test_several_arrays_of_small_integers(client):
    x = np.arange(80_000).reshape(200, 400)
    with client.put(x) as t:
        for dtypes in (("u1", "i2"), ("i2", "i2"), ("i1", "u8"), ("i4", "u4")):
            key = tuple(np.array(places, dtype) for places, dtype in zip(([100, 127], [99, 127]), dtypes))
            same(t[key], x[key])
            same(t[tuple(client.put(part) for part in key)], x[key])


def test_every_byte_but_zero_is_true(client):
    x = np.frombuffer(b"\x02\x01\x00\x07", "?")
    with client.put(x) as t:
        same(np.argsort(t), np.array([2, 0, 1, 3]))
        assert np.asarray(np.sort(t)).tobytes() == b"\x00\x01\x01\x01"
        same(np.searchsorted(np.sort(t), np.array([False, True]), side="right"), np.array([1, 4]))


def test_indices_that_are_wrong(t):
    for key, error, text in ((np.array([0.5]), TypeError, "indices are integers, not float64"),
                             ((A[0] > 0, 0), IndexError, "a mask of shape"),
                             ((I, [0.5]), TypeError, "indices are integers")):
        with pytest.raises(error, match=text):
            t[key]
    with pytest.raises(ValueError, match="mode is 'x'"):
        np.take(t, I, 0, mode="x")


def test_pads_of_pairs(t):
    for width, values in ((1, (7, 9)), (((1, 2), (0, 0), (2, 1)), ((1, 2), (3, 4), (5, 6))), (2, ((8,),))):
        same(np.pad(t, width, constant_values=values), np.pad(A, width, constant_values=values))
    with pytest.raises(ValueError, match="broadcast"):
        np.pad(t, 1, constant_values=np.arange(6.0))


def test_diff_of_what_is_none(t):
    for axis, n, text in ((5, 1, "axis 5"), (-4, 1, "axis -4"), (0, -1, "n is -1")):
        with pytest.raises(ValueError, match=text):
            np.diff(t, n, axis)
    with pytest.raises(ValueError, match="one axis or more"):
        np.diff(t[0, 0, 0])


def test_a_set_slice_of_indices_is_refused(t):
    for key in ([0, 1], (0, np.array([1])), A > 0):
        with pytest.raises(TypeError, match="put_along_axis takes indices, and np.where a mask"):
            warpline.set_slice(t, key, 0)


def test_what_repeats_views_and_nothing(client, t):
    for x, a in ((t.T, A.T), (t[::-1, :, 1:], A[::-1, :, 1:]), (t[:0], A[:0]), (t[:, 0, 0], A[:, 0, 0])):
        same(np.roll(x, 2, 0), np.roll(a, 2, 0))
        same(np.roll(x, 3), np.roll(a, 3))
        same(np.tile(x, (2, 3)), np.tile(a, (2, 3)))
        same(np.repeat(x, 3, 0), np.repeat(a, 3, 0))
        same(np.repeat(x, 0), np.repeat(a, 0))
        same(np.pad(x, 1, constant_values=-0.0), np.pad(a, 1, constant_values=-0.0))
    assert np.signbit(np.asarray(np.pad(t, 1, constant_values=-0.0))[0, 0, 0])
    with client.put(np.float32(7)) as number:
        same(np.tile(number, (2, 2)), np.tile(np.float32(7), (2, 2)))
        same(np.repeat(number, 3), np.repeat(np.float32(7), 3))
    with client.put(np.zeros((1,) * 8, "u1")) as eight:
        same(np.tile(eight, (1, 2, 1, 3, 1, 1, 1, 2)), np.zeros((1, 2, 1, 3, 1, 1, 1, 2), "u1"))
    for wrong in (lambda: np.tile(t, -1), lambda: np.repeat(t, -2, 0), lambda: np.tile(t, (1,) * 9)):
        with pytest.raises((ValueError, warpline.InvalidArgument), match="counts?"):
            client.run(wrong())


def test_what_repeats(t):
    for shift, axis in ((1, None), (-2, 0), (7, 1), ((1, 2), (0, 2)), (0, 0), (3, (0, 1)), ((1, 2), (0, -3))):
        same(np.roll(t, shift, axis), np.roll(A, shift, axis))
    for reps in (2, (2, 1, 3), (2, 1, 1, 1), (1, 0)):
        same(np.tile(t, reps), np.tile(A, reps))
    for repeats, axis in ((2, None), (3, 1), ([1, 0, 2, 1], 2)):
        same(np.repeat(t, repeats, axis), np.repeat(A, repeats, axis))
        same(t.repeat(repeats, axis), A.repeat(repeats, axis))
    for width in (1, (1, 2), ((0, 1), (2, 0), (1, 1))):
        same(np.pad(t, width), np.pad(A, width))
        same(np.pad(t, width, constant_values=-3), np.pad(A, width, constant_values=-3))
        for mode in ("edge", "reflect", "symmetric", "wrap"):
            same(np.pad(t, width, mode), np.pad(A, width, mode))


@pytest.mark.parametrize("key", [0, (0, 1), (slice(None), slice(1, 3)), (..., -1), slice(None, None, -2), slice(3, 3)],
                         ids=repr)
def test_set_slice(client, t, key):
    for values in (9, np.float32(2.5), RANDOM.normal(size=A[key].shape).astype("f4"), np.zeros(1, "f4")):
        want = A.copy()
        want[key] = values
        same(warpline.set_slice(t, key, values), want)
    with pytest.raises((warpline.InvalidArgument, ValueError), match="broadcast"):
        client.run(warpline.set_slice(t, key, np.ones((3, 77), "f4")))


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "u8", "c8", "c16"])
def test_products_of_integers_and_complex_numbers(client, dtype):
    x, y = (RANDOM.integers(0, 200, size=(6, 4)).astype(dtype) for _ in range(2))
    if dtype[0] == "c":  # whole numbers, exact in c8
        x, y = x * (1 + 2j), y - 1j * y[::-1]
    x, y = x.astype(dtype), y.astype(dtype)
    with client.put(x) as a, client.put(y) as b:
        for got, want in ((a @ b.T, x @ y.T), (np.tensordot(a, b, ([0], [0])), np.tensordot(x, y, ([0], [0]))),
                          (np.outer(a, b), np.outer(x, y)),
                          (products.vecdot(a, b), (x.conj() * y).sum(-1, dtype=dtype))):
            got = np.asarray(got)
            assert got.dtype == want.dtype
            assert np.array_equal(got, want)


def test_products_of_all_ranks(client):
    shapes = [(), (4,), (3, 4), (2, 3, 4)]
    for left in shapes:
        for right in shapes:
            x, y = RANDOM.integers(-9, 9, left), RANDOM.integers(-9, 9, right)
            with client.put(x) as a, client.put(y) as b, client.put(y.swapaxes(-1, -2) if y.ndim > 1 else y) as c:
                same(np.inner(a, b), np.asarray(np.inner(x, y)))
                same(np.dot(a, c), np.asarray(np.dot(x, y.swapaxes(-1, -2) if y.ndim > 1 else y)))
    with client.put(RANDOM.integers(-9, 9, (3, 4, 5))) as a:
        same(np.trace(a), np.trace(np.asarray(a)))
        same(np.trace(a, -1, 2, 0), np.trace(np.asarray(a), -1, 2, 0))
        with pytest.raises(ValueError, match="axes is 4"):
            np.tensordot(a, a, 4)


def test_vecdot(client):
    u, v = np.full(2, 300, "f2"), np.array([300, -300], "f2")
    with client.put(u) as a, client.put(v) as b:  # each product is beyond f16
        same(products.vecdot(a, b), np.asarray(np.float16(0)))
    x, y = RANDOM.integers(0, 9, (3, 3)), np.array([1, 10, 100])
    with client.put(x) as a, client.put(y) as b, client.put(y[:1]) as c:
        same(products.vecdot(a, b, 0), (x * y[:, None]).sum(0))
        with pytest.raises(ValueError, match="3 and 1 elements"):
            products.vecdot(a, c)


def test_products(client):
    x, y = RANDOM.normal(size=(4, 6)), RANDOM.normal(size=(6, 4))
    with client.put(x) as a, client.put(y) as b:
        np.testing.assert_allclose(np.asarray(np.outer(a, b)), np.outer(x, y))
        for axes in (1, 2, ([0], [1]), ([1, 0], [0, 1])):
            np.testing.assert_allclose(np.asarray(np.tensordot(a, b.T if axes == 2 else b, axes)),
                                       np.tensordot(x, y.T if axes == 2 else y, axes), rtol=1e-12)
        if hasattr(np, "vecdot"):
            np.testing.assert_allclose(np.asarray(np.vecdot(a, b.T)), np.vecdot(x, y.T), rtol=1e-12)


def test_placeholders_of_a_known_shape(client):
    x = RANDOM.normal(size=(6, 5))
    p = warpline.placeholder("p", "f8", (6, 5))
    for compute in (lambda a: a[1], lambda a: a[:, ::-2], lambda a: np.median(a, axis=0), lambda a: np.pad(a, 1),
                    lambda a: np.diff(a), lambda a: a.T, lambda a: np.round(a, 1), lambda a: np.round(a * 100, -1)):
        same(client.run(compute(p), p=x), compute(x))
    same(client.run(np.count_nonzero(p > 0, axis=1), p=x), np.count_nonzero(x > 0, axis=1))
    with pytest.raises(ValueError, match=r"placeholder 'p' takes an array of shape \(6, 5\), not \(5, 6\)"):
        client.run(p[1], p=x.T)
