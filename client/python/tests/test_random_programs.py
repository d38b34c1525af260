"""Programs of many random steps: they give what NumPy gives. Numbers are whole and small, so that all results are exact."""

import random

import numpy as np
import pytest

import warpline

SHAPE = (6, 5)


def put_along(x, indices, values, axis):
    """What warpline.put_along_axis does, for arrays."""
    if not isinstance(x, np.ndarray):
        return warpline.put_along_axis(x, indices, values, axis)
    y = x.copy()
    np.put_along_axis(y, indices, values, axis)
    return y


def set_part(x, key, values):
    if not isinstance(x, np.ndarray):
        return warpline.set_slice(x, key, values)
    y = x.copy()
    y[key] = values
    return y


def step(rng):
    """A function of two arrays, either of NumPy or on the server, whose result has their shape."""
    axis, key = rng.randrange(2), rng.choice([0, (slice(None), -1), (slice(None, None, -2), slice(1, 3))])
    rows = [rng.randrange(-6, 6) for _ in range(6)]
    columns = np.array([[rng.randrange(-5, 5) for _ in range(5)]])
    shift = rng.randrange(-7, 8)
    return rng.choice([
        lambda x, y: x + y, lambda x, y: x - 2 * y, lambda x, y: np.where(x > y, x, y * 3),
        lambda x, y: np.cumsum(x, axis), lambda x, y: np.maximum.accumulate(x, axis), lambda x, y: np.sort(x, axis),
        lambda x, y: np.take_along_axis(y, np.argsort(x, axis, kind="stable"), axis),
        lambda x, y: np.argsort(x, axis, kind="stable").astype("f8") + y, lambda x, y: x[rows],
        lambda x, y: np.take_along_axis(x, columns, 1), lambda x, y: np.roll(x, shift, axis),
        lambda x, y: put_along(x, columns, y, 1), lambda x, y: set_part(x, key, y[key]),
        lambda x, y: np.repeat(x[:3], 2, 0), lambda x, y: np.tile(x[:2], (3, 1)), lambda x, y: np.pad(x[1:-1], ((1, 1), (0, 0))),
        lambda x, y: np.searchsorted(np.sort(x[0]), y).astype("f8"), lambda x, y: x.T.reshape(SHAPE), lambda x, y: x[::-1, ::-1],
        lambda x, y: np.concatenate([x[:2], y[2:]]), lambda x, y: np.median(x, axis, keepdims=True) + y])


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(client, seed):
    rng = random.Random(seed)
    arrays = [np.array([[rng.randrange(-4, 5) for _ in range(5)] for _ in range(6)], "f8") for _ in range(3)]
    wanted, program = list(arrays), warpline.program()
    given = [program.input(x) for x in arrays]
    for _ in range(40):
        i, k = rng.randrange(len(wanted)), rng.randrange(len(wanted))
        function = step(rng)
        # Halves of medians become whole, and sums stay small.
        wanted.append(np.floor(function(wanted[i], wanted[k])) % 16)
        given.append(np.floor(function(given[i], given[k])) % 16)
    for got, want in zip(client.run(*given[-3:]), wanted[-3:], strict=True):
        np.testing.assert_array_equal(got, want)
