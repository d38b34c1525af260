"""Inputs through DLPack: NumPy's own, a made-up bfloat16, and the libraries that are here."""

import ctypes
import gc

import numpy as np
import pytest

import warpline
from warpline import dlpack
from warpline.arrays import as_array


class Exporter:
    """An array that offers nothing but DLPack, of another type than NumPy's if `code` is given."""

    def __init__(self, array, device=1, code=None):
        self.array, self.device, self.code = array, device, code

    def __dlpack_device__(self):
        return (self.device, 0)

    def __dlpack__(self, **_):
        capsule = self.array.__dlpack__()
        if self.code is not None:
            dlpack._DLTensor.from_address(dlpack._pointer_of(capsule, b"dltensor")).type_code = self.code
        return capsule


def test_no_copy():
    array = np.arange(12, dtype="i4").reshape(3, 4)
    assert np.shares_memory(as_array(Exporter(array)), array)


@pytest.mark.parametrize("code, bits, dtype", [(4, "u2", warpline.bfloat16), (10, "u1", warpline.float8_e4m3fn),
                                               (12, "u1", warpline.float8_e5m2)])
def test_types_that_numpy_lacks(code, bits, dtype):
    array = np.arange(12).astype(bits).reshape(3, 4).T
    view = as_array(Exporter(array, code=code))
    assert view.dtype == dtype
    assert np.array_equal(view.view(bits), array)
    assert np.shares_memory(view.view(bits), array)
    del array
    gc.collect()
    assert view.copy().view(bits)[1, 2] == 9
    assert as_array(Exporter(np.zeros((0, 3), bits), code=code)).shape == (0, 3)


def test_what_cannot_be_read():
    with pytest.raises(TypeError, match="not in host memory"):
        as_array(Exporter(np.zeros(3), device=2))
    with pytest.raises(TypeError, match="cannot read"):
        as_array(Exporter(np.zeros(3, "u1"), code=77))


def test_structure_is_as_dlpack_says():
    assert ctypes.sizeof(dlpack._DLTensor) == 48
    assert dlpack._DLTensor.byte_offset.offset == 40


def test_torch(client):
    torch = pytest.importorskip("torch")
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    assert np.array_equal(client.transpose(x), x.numpy().T)
    b = x.to(torch.bfloat16)
    assert as_array(b).view("u2").tolist() == b.view(torch.int16).numpy().view("u2").tolist()
    assert np.array_equal(client.transpose(b).view("u2"), b.view(torch.int16).numpy().view("u2").T)
    if torch.cuda.is_available():
        with pytest.raises(TypeError, match="not in host memory"):
            client.transpose(x.cuda())
        assert np.array_equal(client.transpose(x.pin_memory()), x.numpy().T)


def test_jax(client):
    jax = pytest.importorskip("jax")
    with jax.default_device(jax.devices("cpu")[0]):
        x = jax.numpy.arange(12, dtype="bfloat16").reshape(3, 4)
        assert np.array_equal(client.transpose(x), np.asarray(x).T)


def test_cupy(client):
    cupy = pytest.importorskip("cupy")
    if not cupy.cuda.is_available():
        pytest.skip("no GPU")
    with pytest.raises(TypeError, match="not in host memory"):
        client.transpose(cupy.zeros((2, 3)))
