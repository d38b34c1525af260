"""Where operands and results lie: arrays of `empty`, their views, and `out`."""

import re

import numpy as np
import pytest
from shared_arrays import filled, values

import warpline

pytestmark = pytest.mark.usefixtures("usual_sizes")


@pytest.fixture
def client(unix):
    with warpline.connect(unix, timeout=30, shared_memory="always") as connected:
        yield connected


def test_empty(client):
    a = client.empty((3, 5), "f4")
    assert a.shape == (3, 5) and a.dtype == np.float32 and a.flags.writeable and a.flags.c_contiguous
    assert client.empty(7).shape == (7,) and client.empty(7).dtype == np.float64
    assert client.empty((), "i2").shape == () and client.empty((0, 4)).shape == (0, 4)
    assert client.empty((2, 2), warpline.bfloat16).dtype == warpline.bfloat16 == client.empty(1, "bfloat16").dtype
    for wrong in ((-1,), (3, -2)):
        with pytest.raises(ValueError, match="shape"):
            client.empty(wrong)
    with pytest.raises(TypeError):
        client.empty(3, "M8[s]")
    for swapped in (">f4", np.dtype("f8").newbyteorder()):
        with pytest.raises(TypeError, match=f"dtype is {re.escape(repr(swapped))}: .* byte order"):
            client.empty(3, swapped)
    with pytest.raises(TypeError):
        client.empty(3.5)


def test_empty_arrays_are_operands_where_they_lie(regions, watched):
    x = values()
    a = filled(watched, x)
    # Exactly as large as the memory that it is in, so that what follows the last row of a view is not there.
    small = filled(watched, values((8, 4)))
    for view in (a, a.T, a[10:20], a[3], a[:, 7:100], a[::2], a[1::3, 5:], a[5:, 399:], a[:1, 10:20],
                 a.reshape(-1)[1:9], a.reshape(3, 100, 400)[:, 0], a.reshape(3, 100, 400)[:, :, :7],
                 small[1:, 1:], small[::2, 3:], small[7:, 1:]):
        regions.seen.clear()
        want = np.asarray(view).copy()
        assert np.array_equal(watched.transpose(view), want.T)
        assert regions.seen[0][1:3] == (0, 1), f"{view.shape} {view.strides} was copied"
    assert len(regions.opened) == 1


def test_views_that_no_tensor_describes_are_copied(regions, watched):
    x = values()
    a = filled(watched, x)
    for view in (a[::-1], a[:, ::2], a[:, ::-1], a.view("u1").reshape(300, -1)[:, 1:-7].view("V1").view("u1"),
                 a.astype(">f8"), a.reshape(3, 100, 400)[:, 4], a.reshape(3, 100, 400)[:, 5:, 3:],
                 np.broadcast_to(a[:1], (50, 400))):
        assert np.array_equal(watched.transpose(view), np.asarray(view).T)
    # Elements that lie across what they should: 8 bytes from the byte 1 on.
    odd = np.ndarray((299, 400), "f8", a, offset=1)
    assert watched.transpose(odd).tobytes() == odd.T.tobytes()


def test_results_are_operands_where_they_lie(regions, watched):
    y = watched.transpose(values())
    watched.reduce(y[5:], "sum", 0)
    assert regions.seen[1] == ("Run", 0, 1, 0) and len(regions.opened) == 1


def test_results_written_where_they_are_wanted(client):
    x, y = values(), values((400, 350))
    t, d, s = client.empty((400, 300)), client.empty((300, 350)), client.empty(400)
    assert client.transpose(x, out=t) is t and np.array_equal(t, x.T)
    assert client.gemm(x, y, out=d) is d and np.allclose(d, x @ y)
    assert client.reduce(x, "sum", 0, out=s) is s and np.allclose(s, x.sum(0))
    p = warpline.program()
    product = p.gemm(x, y)
    ordinary = np.zeros(350)
    first, second, third = client.run(product, product.sum(axis=0), product.max(), out=[d, ordinary, None])
    assert first is d and second is ordinary and np.allclose(ordinary, (x @ y).sum(0)) and third == d.max()
    part = client.empty((500, 350))
    assert np.allclose(client.gemm(x, y, out=part[100:400]), x @ y) and np.array_equal(part[100:400], d)


def test_where_results_go(regions, watched):
    x = values()
    out = watched.empty((400, 300))
    watched.transpose(x, out=out)
    assert regions.seen == [("Run", 0, 1, 1)] and regions.regions
    assert np.array_equal(out, x.T)
    # The server's view of the same memory.
    served = np.concatenate([region.memory for region in regions.regions.values()])
    assert served.tobytes().find(out.tobytes()) >= 0


def test_out_of_any_kind(client):
    x = values()
    wide = client.empty((400, 900))
    for out in (np.zeros((400, 300)), np.zeros((400, 300), order="F"), client.empty((300, 400)).T, wide[:, 5:305],
                wide[:, ::3]):
        assert client.transpose(x, out=out) is out and np.array_equal(out, x.T)
    reduced = client.empty((300, 200))
    wide = values((200, 3, 300))
    assert np.allclose(client.reduce(wide.T, "max", 1, out=reduced), wide.max(1).T)
    for wrong in (client.empty((300, 400)), client.empty((400, 300), "f4"), client.empty((400, 300, 1))):
        with pytest.raises(ValueError, match="out is"):
            client.transpose(x, out=wrong)


def test_out_that_overlaps_an_operand(client):
    x = values((400, 400))
    a = filled(client, x)
    assert client.transpose(a, out=a) is a and np.array_equal(a, x.T)
    big = client.empty((500, 400))
    big[:400] = x
    assert np.array_equal(client.transpose(big[:400], out=big[100:]), x.T)
    p = warpline.program()
    with pytest.raises(ValueError, match="share memory"):
        client.run(p.scale(x, 2.0), p.scale(x, 3.0), out=[a, a])
