"""The examples of the README are run as they stand, but for the address."""

import pathlib
import re

import numpy as np

README = pathlib.Path(__file__).parent.parent / "README.md"
FIRST, SECOND, THIRD = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)


def run(example, address):
    """The names that it leaves."""
    names = {}
    exec(example.replace("127.0.0.1:50051", address).replace("unix:/tmp/warpline.sock", address), names)
    return names


def test_arrays(daemon):
    left = run(FIRST, daemon.address)
    x = left["x"]
    assert np.array_equal(left["y"], x.T) and np.allclose(left["d"], np.maximum(x @ x.T, 0), rtol=1e-4)
    assert np.allclose(left["t"], (x @ x.T).sum(0), rtol=1e-4) and np.allclose(left["top"], (x @ x.T).max(), rtol=1e-4)


def test_resident_tensors(address):
    left = run(SECOND, address)
    x, w = left["x"], left["weights"]
    y = x @ w
    assert np.allclose(left["total"], (y @ w.T).sum(1), rtol=1e-3) and np.allclose(left["top"], y.max(0), rtol=1e-4)
    assert np.allclose(left["half"], y / 2, rtol=1e-4)
    assert np.allclose(left["best"], y[:20].max(1), rtol=1e-4)
    assert {left["w"].id, left["y"].id, left["kept"].id} <= {info.id for info in left["mine"]}


def test_shared_memory(unix):
    left = run(THIRD, unix)
    x = left["x"]
    assert np.array_equal(left["y"], x.T) and np.array_equal(left["out"], x.T)
    assert np.allclose(left["rows"], x[100:200].sum(1))
