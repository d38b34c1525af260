import itertools

import elements
import numpy as np
import pytest


@pytest.mark.parametrize("name", elements.ALL)
def test_every_type(client, name):
    rng = np.random.default_rng(2)
    for shape in [(), (1,), (7,), (1, 1), (33, 65), (64, 128), (3, 4, 5), (0, 4), (2, 3, 4, 5, 2)]:
        x = elements.any_bits(name, shape, rng)
        y = client.transpose(x)
        want = x if x.ndim < 2 else x.swapaxes(-1, -2)
        assert y.dtype == x.dtype and y.shape == want.shape
        assert np.array_equal(elements.bits(y), elements.bits(want))


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
            want = view.swapaxes(-1, -2) if perm is None else view.transpose(perm)
            assert np.array_equal(client.transpose(view, perm), want)


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
