"""Layouts, without a server: what is sent must mean the same as the array, and not be copied needlessly."""

import numpy as np
import pytest

from warpline import core
from warpline.arrays import Operand, as_array


def meaning(operand):
    """Returns the elements that are sent, with the axes in the array's own order again."""
    sent = core.in_elements(operand.stored)
    assert sent.dtype.isnative and all(stride % sent.itemsize == 0 for stride in sent.strides)
    return sent.transpose(operand.perm)


def sent_in_place(operand):
    """The library neither copies the array nor sends padding."""
    sent = core.in_elements(operand.stored)
    return sent.flags.c_contiguous and np.may_share_memory(sent, operand.array) or not sent.size


BASE = np.arange(2 * 6 * 5 * 8, dtype="i4").reshape(2, 6, 5, 8)

VIEWS = {  # name: (array, perm, whether its own memory is sent)
    "dense": (BASE, (0, 1, 2, 3), True),
    "reversed axes": (BASE.T, (3, 2, 1, 0), True),
    "permuted": (BASE.transpose(2, 0, 3, 1), (2, 0, 3, 1), True),
    "padded rows": (BASE[..., :7], (0, 1, 2, 3), False),
    "padded rows, swapped": (BASE[..., 1:].swapaxes(-1, -2), (0, 1, 3, 2), False),
    "outer axis not dense": (BASE[:, :3], (0, 1, 2, 3), False),
    "every other row": (BASE[0, 0, ::2], (0, 1), False),
    "every other column": (BASE[0, 0, :, ::2], (0, 1), False),
    "backwards": (BASE[0, 0, ::-1], (0, 1), False),
    "backwards, swapped": (BASE[0, 0, ::-1].T, (1, 0), False),
    "broadcast": (np.broadcast_to(BASE[0, 0, 0], (3, 8)), (0, 1), False),
    "one column": (BASE[0, 0, :, :1], (0, 1), False),
    "one row": (BASE[0, 0, :1, ::-1][:, ::-1], (0, 1), True),
    "axes of one": (BASE[:1, :1, :, :].transpose(0, 2, 1, 3), (0, 1, 2, 3), True),
    "one axis": (BASE[0, 0, 0], (0,), True),
    "strided axis": (BASE[0, 0, 0, ::2], (0,), False),
    "scalar": (np.array(7.0), (), True),
    "empty": (BASE[:0].transpose(3, 0, 1, 2), None, True),
    "empty, strided": (BASE[::2, :, :0], None, True),
    "other byte order": (BASE.astype(">i4"), (0, 1, 2, 3), False),
    "other byte order, swapped": (BASE.astype(">i4").T, (3, 2, 1, 0), False),
}


@pytest.mark.parametrize("name", VIEWS)
def test_layouts(name):
    array, perm, own_memory = VIEWS[name]
    operand = Operand(array)
    if perm is not None:
        assert operand.perm == perm
    assert sent_in_place(operand) == own_memory
    assert np.array_equal(meaning(operand), array)
    in_order = Operand(array, any_order=False)
    assert in_order.in_order
    assert np.array_equal(meaning(in_order), array)


def test_random_views():
    rng = np.random.default_rng(1)
    for _ in range(300):
        rank = rng.integers(0, 5)
        base = rng.integers(0, 100, rng.integers(1, 5, rank)).astype(rng.choice(["u1", "<f8", "<c16"]))
        view = base.transpose(rng.permutation(rank))
        if rank and rng.random() < 0.7:
            at = [slice(None)] * rank
            at[rng.integers(rank)] = slice(rng.integers(2), None, int(rng.choice([1, 1, 2, -1])))
            view = view[tuple(at)]
        for any_order in (True, False):
            assert np.array_equal(meaning(Operand(view, any_order)), view)


def test_an_object_with_array_interface():
    class Wrapped:
        def __init__(self, array):
            self.array = array
            self.__array_interface__ = array.__array_interface__

    array = np.arange(6.0).reshape(2, 3)
    assert np.shares_memory(as_array(Wrapped(array)), array)
    assert as_array([[1, 2], [3, 4]]).dtype == np.int64


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_subclasses_are_sent_as_arrays():
    matrix = np.matrix(BASE[0, 0])
    assert type(as_array(matrix)) is np.ndarray and np.shares_memory(as_array(matrix), matrix)
    for view in (matrix, matrix.T, matrix[:, ::2], matrix[0]):
        assert np.array_equal(meaning(Operand(view)), np.asarray(view))


def test_what_cannot_be_sent():
    for x in (np.array(["a"]), np.array([None]), np.zeros(2, np.longdouble), np.zeros(2, "M8[s]"),
              np.zeros(2, "V2"), np.zeros(2, [("a", "f4")])):
        with pytest.raises(TypeError, match="no element type"):
            Operand(x)
    with pytest.raises(TypeError, match="masked"):
        Operand(np.ma.array([1, 2], mask=[0, 1]))


def test_strides_that_are_no_whole_elements(client):
    records = np.zeros((4, 5), [("a", "f4"), ("b", "u1")])
    records["a"] = np.arange(20).reshape(4, 5)
    assert np.array_equal(client.transpose(records["a"]), records["a"].T)
    out = np.zeros((5, 4), [("a", "f4"), ("b", "u1")])
    client.transpose(records["a"], out=out["a"])
    assert np.array_equal(out["a"], records["a"].T)


def test_results_belong_to_the_caller(client):
    for shape in ((2, 3), (), (0, 3), (300, 400)):
        y = client.transpose(np.ones(shape))
        assert y.flags.writeable and y.flags.aligned
        y += 1
        assert y.shape == shape[::-1] and (y == 2).all()
