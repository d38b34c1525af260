"""Errors of warpline.xp say what to do: names of NumPy's, arguments that the server has not, shapes and types."""

import pickle

import numpy as np
import pytest

import warpline
import warpline.xp as xp
from warpline.xp import _hints


@pytest.fixture(scope="module")
def x(daemon):
    xp.connect(daemon.address)
    return xp.asarray(np.arange(12.0).reshape(3, 4))


def test_names_that_numpy_has(x):
    with pytest.raises(AttributeError, match=r"'concatenate': xp\.concat is the standard's"):
        xp.concatenate
    with pytest.raises(AttributeError, match=r"'median': np\.median\(x\) computes on the server"):
        xp.median
    with pytest.raises(AttributeError, match=r"'mean': xp\.mean\(x\) is the standard's"):
        x.mean
    for module in (xp, x):
        with pytest.raises(AttributeError, match="'nonsense'$"):
            module.nonsense


def test_every_hint_is_true(x):
    for name, instead in _hints._OF_NAMESPACE.items():
        assert hasattr(np, name) and not hasattr(xp, name) and (hasattr(xp, instead) if instead else True), name
    for name in _hints._OF_ARRAYS:
        assert hasattr(np.ndarray, name) or name == "astype", name


def test_formats(x):
    assert f"{x[1, 1]:.2f} {xp.sum(x):.0f} {x[0, 1]}" == f"5.00 66 {x[0, 1]!r}"
    with pytest.raises(TypeError, match="a format takes an array of no axes"):
        f"{x:.2f}"


def test_arrays_are_not_written_by_numpy(x):
    here = np.zeros((3, 4))
    for use in (lambda: np.sin(x, out=here), lambda: np.sum(x, axis=0, out=np.zeros(4)), lambda: here.__iadd__(x)):
        with pytest.raises(TypeError, match=r"has no out="):
            use()
    with pytest.raises(TypeError, match=r"x\[\.\.\.\] = y"):
        np.fill_diagonal(x, 0.0)
    assert not here.any()


def test_refusals_name_the_whole_function(x):
    with pytest.raises(xp.Refused, match=r"the server has no numpy\.linalg\.inv with these arguments|no linalg\.inv"):
        np.linalg.inv(x[:, :3])
    with pytest.raises(xp.Refused, match=r"no numpy\.add\.at with these arguments"):
        np.add.at(x, 0, 1)
    z = xp.astype(x, xp.complex128)
    with pytest.raises(xp.Refused, match=r"no numpy\.exp2 with these arguments"):
        np.exp2(z)
    with xp.config(fallback="numpy"):
        np.testing.assert_allclose(np.asarray(np.exp2(z)), np.exp2(np.asarray(z)))


def test_shapes_and_types(x):
    with pytest.raises(ValueError, match=r"add: the shapes \(3, 4\) and \(5,\) are not broadcast"):
        x + xp.ones(5)
    with pytest.raises(TypeError, match="count_nonzero"):
        xp.sum(x > 1)
    with pytest.raises(TypeError, match="astype converts"):
        xp.sqrt(xp.asarray([1, 2]))
    with pytest.raises(TypeError, match="np.asarray"):
        pickle.dumps(x)


def test_a_closed_session(daemon):
    session = xp.connect(daemon.address, max_retries=0)
    y = xp.asarray(np.ones(1000), device=session)
    session.close()
    with pytest.raises(warpline.Cancelled):
        float(xp.sum(y))
    assert xp.connect(daemon.address).client is not session.client
