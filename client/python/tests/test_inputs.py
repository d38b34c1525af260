"""Each row of docs/arrays.md#what-comes-in. Packages that are not here are skipped."""

import asyncio
import collections
import importlib

import numpy as np
import pytest

import warpline
import warpline.aio
from warpline.arrays import Operand, as_array

VALUES = np.arange(6.0).reshape(2, 3)


def package(name):
    return pytest.importorskip(name)


def h5py_dataset(tmp_path):
    return package("h5py").File(tmp_path / "a.h5", "w").create_dataset("a", data=VALUES)


def netcdf_variable(tmp_path, masked=False):
    file = package("netCDF4").Dataset(tmp_path / "a.nc", "w")
    file.createDimension("x", 3)
    variable = file.createVariable("a", "f8", ("x",))
    variable[:] = np.ma.array([1, 2, 3], mask=[False, masked, False])
    return variable


TAKEN = {  # name: (how it is made, what comes in)
    "list": (lambda _: VALUES.tolist(), VALUES),
    "range": (lambda _: range(3), np.arange(3)),
    "bytearray": (lambda _: bytearray(b"abc"), np.frombuffer(b"abc", "u1")),
    "np.matrix": (lambda _: np.asmatrix(VALUES), VALUES),
    "masked array, none of which is masked": (lambda _: np.ma.array(VALUES, mask=False), VALUES),
    "dask": (lambda _: package("dask.array").from_array(VALUES), VALUES),
    "pyarrow": (lambda _: package("pyarrow").array([1.5, 2.5]), [1.5, 2.5]),
    "pyarrow, bool": (lambda _: package("pyarrow").array([True, False]), [True, False]),
    "pyarrow, with nulls": (lambda _: package("pyarrow").array([1.5, None]), [1.5, np.nan]),
    "pyarrow, chunked": (lambda _: package("pyarrow").chunked_array([[1], [2, 3]]), [1, 2, 3]),
    "pyarrow.Tensor": (lambda _: package("pyarrow").Tensor.from_numpy(VALUES), VALUES),
    "xarray": (lambda _: package("xarray").DataArray(VALUES), VALUES),
    "xarray of dask": (lambda _: package("xarray").DataArray(package("dask.array").from_array(VALUES)), VALUES),
    "pandas": (lambda _: package("pandas").DataFrame(VALUES), VALUES),
    "pandas, Int64 without NA": (lambda _: package("pandas").Series([1, 2], dtype="Int64"), [1, 2]),
    "polars": (lambda _: package("polars").Series([1, None]), [1, np.nan]),
    "h5py": (h5py_dataset, VALUES),
    "zarr": (lambda _: package("zarr").array(VALUES), VALUES),
    "netCDF4, none of which is masked": (netcdf_variable, [1, 2, 3]),
    "jax": (lambda _: package("jax").numpy.asarray(VALUES), VALUES),
    "PIL": (lambda _: package("PIL.Image").new("L", (3, 2), 7), np.full((2, 3), 7)),
    "astropy Quantity": (lambda _: VALUES * package("astropy.units").m, VALUES),
    "torch": (lambda _: package("torch").from_numpy(VALUES).expand(2, 2, 3), [VALUES, VALUES]),
    "torch, negative bit": (lambda _: package("torch")._neg_view(package("torch").from_numpy(VALUES)), -VALUES),
    "torch, conjugate bit": (lambda _: package("torch").tensor([1 + 2j]).conj(), [1 - 2j]),
    "torch, imaginary part of ifft": (lambda _: package("torch").fft.ifft(package("torch").arange(1, 5.0)).imag,
                                      [0, -0.5, 0, 0.5]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken(name, tmp_path):
    make, want = TAKEN[name]
    np.testing.assert_array_equal(as_array(make(tmp_path)), want)


class Gives:
    """An object of a library that is not here, with the `__array__` of one."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        if isinstance(self.array, Exception):
            raise self.array
        return self.array


class Sparse:
    def toarray(self):
        raise AssertionError("is not called")


class OnAGpu:
    __cuda_array_interface__ = {}


MASKED = np.ma.array([1, -9999, 3], mask=[False, True, False])

REFUSED = {  # name: (how it is made, words of the error)
    "masked array": (lambda _: MASKED, "MaskedArray are masked.*fill it first"),
    "np.ma.masked": (lambda _: np.ma.masked, "masked"),
    "other sequence of masked arrays": (lambda _: collections.deque([MASKED]), "masked"),
    "dask of masked arrays": (lambda _: package("dask.array").ma.masked_equal(package("dask.array").arange(3), 1), "masked"),
    "__array__ that gives a masked array": (lambda _: Gives(MASKED), "Gives are masked|MaskedArray are masked"),
    "list of masked arrays": (lambda _: [[MASKED], [MASKED]], "masked"),
    "list with np.ma.masked": (lambda _: [1.0, np.ma.masked], "masked"),
    "list of objects that give masked arrays": (lambda _: (Gives(MASKED),), "masked"),
    "netCDF4": (lambda path: netcdf_variable(path, masked=True), "Variable are masked"),
    "astropy Masked": (lambda _: importlib.import_module("astropy.utils.masked").Masked(
        package("astropy") and np.arange(3.0), mask=[True, False, False]), "masked"),
    "None": (lambda _: None, "None is no array"),
    "sparse": (lambda _: Sparse(), r"Sparse is sparse.*toarray\(\)"),
    "scipy.sparse": (lambda _: package("scipy.sparse").csr_array(VALUES), r"csr_array is sparse.*toarray\(\)"),
    "memory of a GPU": (lambda _: OnAGpu(), "OnAGpu is in the memory of a GPU"),
    "dict": (lambda _: {"a": 1}, "dict is no array"),
    "strings": (lambda _: Gives(np.array(["a", 1], dtype=object)), "Python objects such as 'a'"),
    "arrays of objects": (lambda _: np.array([1, None]), "no element type for NumPy's object"),
    "pandas with strings": (lambda _: package("pandas").DataFrame({"a": [1], "b": ["x"]}), "such as 'x'"),
    "torch that requires grad": (lambda _: package("torch").ones(2, requires_grad=True), "detach"),
    "torch, sparse": (lambda _: package("torch").ones(2, 2).to_sparse(), "to_dense"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name, tmp_path):
    make, words = REFUSED[name]
    if name.startswith("astropy"):
        package("astropy")
    with pytest.raises(TypeError, match=words):
        Operand(make(tmp_path))


def test_awaitables_that_are_no_arrays():
    class Lazy(Gives):
        def __await__(self):
            raise AssertionError("is not called")

    assert as_array(Lazy(VALUES)) is VALUES

    async def compute():
        return VALUES

    made = compute()
    with pytest.raises(TypeError, match="coroutine is no array: await it"):
        as_array(made)
    made.close()


class LikeTorch(Gives):
    """Negates when the elements are read, as PyTorch does, but not in DLPack."""

    def __init__(self, array, negative=True):
        super().__init__(RuntimeError("has the negative bit set") if negative else array)
        self.memory, self.negative = array, negative

    def resolve_neg(self):
        return LikeTorch(-self.memory, negative=False) if self.negative else self

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return self.memory.__dlpack__()


def test_bits_that_memory_does_not_show_are_resolved():
    np.testing.assert_array_equal(as_array(LikeTorch(VALUES)), -VALUES)


def test_dlpack_is_asked_where_numpy_cannot_read():
    class WithoutNumpy(LikeTorch):
        def __array__(self, dtype=None, copy=None):
            raise TypeError("Got unsupported ScalarType")

    assert np.shares_memory(as_array(WithoutNumpy(VALUES, negative=False)), VALUES)

    class WithNeither(WithoutNumpy):
        def __dlpack__(self, **_):
            raise BufferError("requires grad")

    with pytest.raises(TypeError, match="cannot read this WithNeither: Got unsupported ScalarType"):
        as_array(WithNeither(VALUES, negative=False))


def test_keys_of_other_libraries(client):
    t = client.put(VALUES)
    np.testing.assert_array_equal(t[Gives(np.array([1, 0, 1]))], VALUES[[1, 0, 1]])
    np.testing.assert_array_equal(t[:, Gives(np.array([2]))], VALUES[:, [2]])
    np.testing.assert_array_equal(client.run(t[Gives(np.array([True, False]))]), VALUES[:1])
    with pytest.raises(TypeError, match="masked"):
        t[np.ma.array([0, 1], mask=[True, False])]


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_matrix_is_no_factor_of_elements(client):
    t, m = client.put(VALUES), np.asmatrix(VALUES)
    for product in (lambda: t * m, lambda: m * t, lambda: np.multiply(t, m), lambda: t ** m):
        with pytest.raises(TypeError, match=r"np\.matrix.*@"):
            product()
    np.testing.assert_array_equal(t + m, VALUES + VALUES)
    np.testing.assert_array_equal(t @ m.T, VALUES @ VALUES.T)


def test_other_libraries_take_tensors_by_dlpack(client):
    t = client.put(VALUES)
    for x, want in ((t, VALUES), (t + 1, VALUES + 1)):
        np.testing.assert_array_equal(np.from_dlpack(x), want)
        assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="copy in host memory"):
        t.__dlpack__(copy=False)
    torch = package("torch")
    for make in (torch.as_tensor, torch.from_dlpack, torch.tensor):
        np.testing.assert_array_equal(make(t).numpy(), VALUES)


def test_outs_that_share_memory(client):
    t, memory = client.put(VALUES), np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"out\[0\] and out\[2\] share memory"):
        client.run(t.sum(0), t.sum(0) * 2, t.sum(0) * 3, out=(memory[:, 0], None, memory[:, 0]))
    client.run(t.sum(0), t.sum(0) * 2, out=(memory[:, 0], memory[:, 1]))
    np.testing.assert_array_equal(memory, np.stack([VALUES.sum(0), VALUES.sum(0) * 2], 1))


def test_out_of_another_library(client):
    for out, words in ((Gives(VALUES), r"test_inputs\.Gives.*np\.asarray"), ([0.0], "out is a list"),
                       (np.ma.zeros(3), "MaskedArray")):
        with pytest.raises(TypeError, match=words):
            client.sum(VALUES, axis=0, out=out)


def test_a_client_in_a_second_event_loop(daemon):
    clients = []

    async def first():
        clients.append(warpline.aio.connect(daemon.address))
        return await clients[0].sum(VALUES)

    assert asyncio.run(first()) == 15

    async def call(name, *arguments):
        return await getattr(clients[0], name)(*arguments)

    for name, *arguments in (("sum", VALUES), ("put", VALUES), ("info",)):
        with pytest.raises(RuntimeError, match="another event loop"):
            asyncio.run(call(name, *arguments))


@pytest.mark.parametrize("use", [
    lambda t: np.repeat(t, MASKED), lambda t: np.pad(t, MASKED[:2]), lambda t: np.pad(t, 1, constant_values=np.ma.masked),
    lambda t: np.quantile(t, MASKED), lambda t: np.roll(t, MASKED[1:2], 0), lambda t: np.full_like(t, np.ma.masked),
    lambda t: np.histogram(t, MASKED)])
def test_masks_of_arguments_are_not_lost(client, use):
    with pytest.raises(TypeError, match="masked"):
        use(client.put(np.arange(3)))


def test_bits_that_memory_does_not_show_are_resolved_in_lists():
    torch = package("torch")
    x = torch.tensor([1 + 2j, 3j]).conj().imag
    assert x.is_neg() and as_array([x]).tolist() == [[-2, -3]]
