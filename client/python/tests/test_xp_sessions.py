"""Sessions of warpline.xp: several servers, what a request has room for, and what one array's error is to another."""

import time

import numpy as np
import pytest
from daemon import Daemon

import warpline
import warpline.xp as xp
from warpline.xp import _sessions

RANDOM = np.random.default_rng(12)


@pytest.fixture(scope="module")
def session(daemon):
    return xp.connect(daemon.address)


@pytest.fixture(scope="module")
def other(session):
    with Daemon() as daemon:
        found = xp.connect(daemon.address)
        xp.connect(session.address)
        yield found


def test_a_new_tensor_is_not_taken_for_one_that_has_gone(session):
    for i in range(200):  # the later ones get the addresses of earlier ones, whose elements have come here
        first = xp.asarray(np.full(100, float(i)))
        np.asarray(first)
        second = xp.asarray(np.arange(7.0 * i + 50))
        assert second.shape == (7 * i + 50,) and float(second[3]) == 3


def test_several_servers(session, other):
    here, there = xp.asarray(np.arange(100.0)), xp.asarray(np.arange(100.0), device=other)
    assert there.device.server == other.address != here.device.server
    assert xp.zeros(3, device=there.device).device.server == other.address
    for moved in (xp.asarray(here, device=other), here.to_device(there.device), xp.astype(here, xp.float64, device=other)):
        np.testing.assert_array_equal(np.asarray(moved + there), np.arange(100.0) * 2)
    places = xp.asarray(np.arange(3), device=other)
    for use in (lambda: here + there, lambda: xp.take(here, places), lambda: xp.diff(here, prepend=there), lambda: xp.stack([here, there])):
        with pytest.raises(ValueError, match="to_device brings them to one"):
            use()
    with pytest.raises(ValueError, match="to_device brings them to one"):
        here[:] = there
    with pytest.raises(ValueError, match="an array on another server is a copy"):
        xp.asarray(here, device=other, copy=False)
    with pytest.raises(ValueError, match="device is 'gpu'"):
        here.to_device("gpu")


def test_devices_of_one_server_are_equal():
    one, two, other = xp.Device("a:1", 0), xp.Device("a:1", 1), xp.Device("b:1", 0)
    assert one == two and not one != two and len({one, two, other}) == 2 and one != other and one != ("a:1", 0)
    assert (str(one), str(two)) == ("a:1/0", "a:1/1")


def test_one_server_is_one_session(session):
    x = xp.asarray([1.0, 2.0])
    assert xp.connect(session.address) is session
    assert float(xp.sum(x + xp.asarray([1.0, 1.0]))) == 5


def test_graphs_of_more_than_one_request(session):
    x = xp.asarray(RANDOM.normal(size=1000))
    np.testing.assert_array_equal(np.asarray(xp.concat([xp.asarray([float(i)]) for i in range(300)])), np.arange(300.0))
    np.testing.assert_array_equal(np.asarray(xp.stack([x[i] for i in range(130)])), np.asarray(x[:130]))
    sums = [xp.sum(x * float(i)) for i in range(260)]
    xp.compute(*sums)
    np.testing.assert_allclose([float(y) for y in sums], np.asarray(x).sum() * np.arange(260), rtol=1e-9, atol=1e-9)


def test_an_error_is_that_of_its_own_array(session, monkeypatch):
    monkeypatch.setattr(_sessions, "_MOST_ORPHANED", 1 << 20)
    x = xp.asarray(RANDOM.normal(size=100_000))
    wrong = xp.sum(xp.take(x, xp.asarray(np.full(100, 1 << 40))))
    del x
    sums = [xp.sum(xp.asarray(np.ones(100_000))) for _ in range(5)]
    assert [float(y) for y in sums] == [100_000.0] * 5
    with pytest.raises(warpline.InvalidArgument, match="outside of"):
        float(wrong)


def test_pending_steps_do_not_keep_what_the_caller_dropped(session, monkeypatch):
    monkeypatch.setattr(_sessions, "_MOST_ORPHANED", 1 << 20)

    def resident():
        return sum(info.nbytes for info in session.client.tensors())

    before = resident()
    total, want = xp.asarray(0.0), 0.0
    for _ in range(20):
        chunk = RANDOM.normal(size=40_000)
        total, want = total + xp.sum(xp.asarray(chunk)), want + chunk.sum()
        end = time.monotonic() + 30
        while resident() - before > 2 << 20:  # the client drops tensors a little later
            assert time.monotonic() < end
            time.sleep(0.01)
    np.testing.assert_allclose(float(total), want)
    # Results as large as what they are made of free nothing, so they stay pending.
    doubled = [xp.asarray(RANDOM.normal(size=40_000)) * 2 for _ in range(20)]
    assert all(_sessions.pending(y._x) > 0 for y in doubled)
