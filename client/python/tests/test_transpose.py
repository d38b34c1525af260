import asyncio
import itertools

import elements
import numpy as np
import pytest
from messages import run_request
import warpline
from warpline import calls


@pytest.mark.parametrize("name", elements.ALL)
def test_every_type(client, name):
    rng = np.random.default_rng(2)
    for shape in [(), (1,), (7,), (1, 1), (33, 65), (64, 128), (3, 4, 5), (0, 4), (2, 3, 4, 5, 2)]:
        x = elements.any_bits(name, shape, rng)
        y = client.transpose(x)
        assert y.dtype == x.dtype and y.shape == x.T.shape
        assert np.array_equal(elements.bits(y), elements.bits(x.T))


def test_every_permutation(client):
    x = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    for perm in itertools.permutations(range(4)):
        assert np.array_equal(client.transpose(x, perm), x.transpose(perm))
    assert np.array_equal(client.transpose(x, (-1, 0, -3, 2)), x.transpose(-1, 0, -3, 2))


def test_every_layout(client):
    base = np.random.default_rng(3).integers(0, 1 << 30, (6, 5, 8))
    views = [base.T, base.transpose(1, 2, 0), base[..., :7], base[..., 1:].swapaxes(1, 2), base[::2], base[:, ::-1],
             base.astype(">i8"), np.asfortranarray(base)]
    for view in views:
        for perm in [None, *itertools.permutations(range(3))]:
            assert np.array_equal(client.transpose(view, perm), view.transpose(perm))


@pytest.mark.parametrize("name", elements.ALL)
def test_every_type_gathered(client, name):
    x = elements.any_bits(name, (9, 10), np.random.default_rng(14))[::2, ::3]
    assert np.array_equal(elements.bits(client.transpose(x)), elements.bits(x.T))


def test_large(client):
    x = np.random.default_rng(4).standard_normal((3000, 2500), dtype="f4")
    assert np.array_equal(client.transpose(x), x.T)
    assert np.array_equal(client.transpose(x.T), x)


def test_permutations_of_any_kind(client):
    x = np.arange(24).reshape(2, 3, 4)
    for view in (x, x.T, x[..., ::2]):
        for make in (list, tuple, np.array, iter):
            assert np.array_equal(client.transpose(view, make([2, 0, -2])), view.transpose(2, 0, 1))
    scalar = np.array(3)
    assert client.transpose(scalar, np.array([], int)) == scalar


def test_every_way_reverses_all_axes(address):
    x = np.arange(24.0).reshape(2, 3, 4)
    p = warpline.program()
    with warpline.connect(address) as client, client.put(x) as t, client.put(x[0]) as matrix, \
            client.put(x[0, 0]) as vector:
        assert np.array_equal(client.transpose(t), x.T)
        for e in (t.transpose(), np.transpose(t), t.T, (t + t).transpose() * 0.5, np.transpose(t * 1.0), (t * 1.0).T,
                  p.transpose(x), p.transpose(t), p.input(x).transpose(), p.transpose(x.T).T):
            assert np.array_equal(client.run(e), x.T)
        assert np.array_equal(client.transpose(t * 2.0), 2 * x.T)
        assert np.array_equal(client.run(matrix.transpose()), x[0].T)
        assert np.array_equal(client.run(vector.transpose()), x[0, 0])
        for e in (t.mT, (t * 1.0).mT, p.input(x).mT):
            assert np.array_equal(client.run(e), x.swapaxes(-1, -2))

    async def main():
        async with warpline.aio.connect(address) as c:
            assert np.array_equal(await c.transpose(x), x.T)
            assert np.array_equal(await c.transpose(x[:, ::2].T), x[:, ::2])

    asyncio.run(main())


def test_axes_of_an_unknown_number_are_not_reversed(client):
    x = warpline.placeholder("x")
    for e in (x, x + x, np.ones((2, 2)) @ x):
        for attempt in (lambda: e.transpose(), lambda: e.T, lambda: client.transpose(e),
                        lambda: warpline.program().transpose(e)):
            with pytest.raises(TypeError, match="rank of .* is not known .* mT"):
                attempt()
        # NumPy then tries to make an array of it, so that our error is the context of another one.
        with pytest.raises(TypeError):
            np.transpose(e)
    given = np.arange(24.0).reshape(2, 3, 4)
    assert np.array_equal(client.run(x.mT, x=given), given.swapaxes(-1, -2))
    assert np.array_equal(client.run(x.transpose((2, 0, 1)), x=given), given.transpose(2, 0, 1))


def test_two_axes_are_reversed_by_no_permutation():
    def sent(x, axes=None):
        return list(run_request(calls.transpose(x, axes, "")).program.steps[0].transpose.perm)

    x = np.ones((2, 3, 4))
    assert sent(x[0]) == [] and sent(x) == [2, 1, 0] and sent(x[0, 0]) == [0] and sent(x[0, 0, 0]) == []
    assert sent(x.T) == [0, 1, 2] and sent(x[0].T) == [0, 1] and sent(x, (1, 0, -1)) == [1, 0, 2]
    p = warpline.program()
    steps = [e._operation.fields for e in (p.transpose(x[0]), p.transpose(x), p.input(x).mT, p.input(x[0]).T)]
    assert [list(step.get("perm", ())) for step in steps] == [[], [2, 1, 0], [], []]


@pytest.mark.parametrize("axes, error, text", [
    ((), ValueError, "axes is empty: expected an entry for each axis"),
    ((True, False), TypeError, r"axes\[0\] is True: expected an integer"),
    ((0, np.False_), TypeError, r"axes\[1\] is .*False_?\)?: expected an integer"),
    ((0, 1.0), TypeError, r"axes\[1\] is 1.0: expected an integer"),
    ((0, 1 << 40), ValueError, r"axes\[1\] is 1099511627776: expected an integer of 32 bits"),
    (1, TypeError, "axes is 1: expected an entry for each axis"),
])
def test_wrong_axes(client, axes, error, text):
    x = warpline.placeholder("x")
    for attempt in (lambda: client.transpose(np.ones((2, 3)), axes), lambda: x.transpose(axes),
                    lambda: warpline.program().transpose(np.ones((2, 3)), axes)):
        with pytest.raises(error, match=text):
            attempt()
