"""The programs of docs/xp.md give the same with NumPy, with CuPy where there is one, and with xp, in as few requests as it says."""

import pathlib
import re

import numpy as np
import pytest

import warpline.xp as xp

PAGE = pathlib.Path(__file__).parents[3] / "docs/xp.md"
PROGRAMS = {}
for block in re.findall(r"```python\n(from typing import Any\n.*?)```", PAGE.read_text(), re.S):
    exec(block, PROGRAMS)
RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(2000, 8))
GIVEN = {"softmax": (X,), "k_means": (X, X[:5]), "neighbours": (X, RANDOM.normal(size=(20, 8))),
         "series": (RANDOM.normal(size=3000), np.linspace(-3, 3, 31)), "ridge": (X, X @ np.arange(8.0))}
REQUESTS = {"softmax": 2, "k_means": 21, "neighbours": 1, "series": 1, "ridge": 2}


@pytest.fixture(scope="module")
def session(daemon):
    return xp.connect(daemon.address)


def tuple_of(results):
    return results if isinstance(results, tuple) else (results,)


def check(got, want):
    assert len(got) == len(want) > 0
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", GIVEN)
def test_on_a_server(session, name):
    arrays = [xp.asarray(x) for x in GIVEN[name]]
    with xp.profile() as p, xp.config(fallback="numpy"):
        got = tuple_of(PROGRAMS[f"{name}_xp"](xp, *arrays))
        xp.compute(*got)
    assert p.total.requests <= REQUESTS[name]
    check([np.asarray(x) for x in got], tuple_of(PROGRAMS[f"{name}_numpy"](np, *GIVEN[name])))


@pytest.mark.parametrize("name", GIVEN)
def test_the_standard_of_numpy(name):
    if not hasattr(np, "cumulative_sum"):
        pytest.skip("this NumPy is none of the standard")
    check(tuple_of(PROGRAMS[f"{name}_xp"](np, *GIVEN[name])), tuple_of(PROGRAMS[f"{name}_numpy"](np, *GIVEN[name])))


@pytest.mark.parametrize("name", GIVEN)
def test_on_cupy(name):
    cp = pytest.importorskip("cupy")
    if cp.cuda.runtime.getDeviceCount() == 0:
        pytest.skip("no GPU")
    got = PROGRAMS[f"{name}_numpy"](cp, *map(cp.asarray, GIVEN[name]))
    check([cp.asnumpy(x) for x in tuple_of(got)], tuple_of(PROGRAMS[f"{name}_numpy"](np, *GIVEN[name])))
