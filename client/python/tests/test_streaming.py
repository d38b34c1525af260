"""Arrays that are too large for messages travel in ranges; the call looks like any other."""

import asyncio
import time

import numpy as np
import pytest

import warpline
from daemon import Daemon

MIB = 1 << 20
# 64 MiB, and larger than a message of this daemon's may be.
SHAPE = (4096, 4096)


@pytest.fixture(scope="module")
def server():
    with Daemon("--max-inline-bytes=16777216") as running:
        yield running


@pytest.fixture
def client(server):
    with warpline.connect(server.address) as connected:
        yield connected
        # Nothing stays behind.
        end = time.monotonic() + 10
        while connected.tensors() and time.monotonic() < end:
            time.sleep(0.02)
        assert connected.tensors() == []


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(1).standard_normal(SHAPE, dtype="f4")


def test_one_call_of_large_arrays(client, x):
    np.testing.assert_array_equal(client.transpose(x), x.T)
    out = np.empty_like(x)
    assert client.transpose(x.T, out=out) is out
    np.testing.assert_array_equal(out, x)
    # Rows that lie apart; a large operand with a small result, and the reverse.
    np.testing.assert_allclose(client.sum(x[:, :3000], axis=1), x[:, :3000].sum(axis=1), rtol=1e-4, atol=1e-3)
    row = np.arange(4096, dtype="f4")
    spread = client.run(np.broadcast_to(warpline.program().input(row), SHAPE) + 1)
    assert spread.shape == SHAPE and (spread == row + 1).all()


def test_programs_of_large_and_small_arrays(client, x):
    p = warpline.program()
    t, u, row = p.input(x), p.input(x[::-1].copy()), p.input(x[0])
    total, moved, kept = client.run((t + u).sum(), t + row, t - u, keep=[False, False, True])
    np.testing.assert_allclose(total, (x + x[::-1]).sum(), rtol=1e-3)
    np.testing.assert_array_equal(moved, x + x[0])
    np.testing.assert_array_equal(kept.numpy(), x - x[::-1])
    np.testing.assert_array_equal(client.run(kept + x), x - x[::-1] + x)  # a tensor beside a large array
    kept.drop()


def test_reports_and_request_ids_are_those_of_the_call(client, x):
    reports = []
    client.transpose(x, request_id="mine", report=reports.append)
    assert reports[0].request_id == "mine" and len(reports) == 1 and len(reports[0].variants) == 1


@pytest.mark.parametrize("channels", [1, 3, 64])
def test_channels(server, x, channels, monkeypatch):
    with warpline.connect(server.address, channels=channels) as client:
        np.testing.assert_array_equal(client.transpose(x), x.T)
    monkeypatch.setenv("WARPLINE_CHANNELS", str(channels))
    with warpline.connect(server.address) as client:
        np.testing.assert_array_equal(client.transpose(x), x.T)


def test_channels_that_cannot_be(monkeypatch):
    for wrong in (0, 65, -1):
        with pytest.raises(ValueError, match=f"channels is {wrong}: 1 to 64"):
            warpline.connect("localhost", channels=wrong)
    monkeypatch.setenv("WARPLINE_CHANNELS", "many")
    with pytest.raises(ValueError, match=r"\$WARPLINE_CHANNELS is 'many': 1 to 64"):
        warpline.connect("localhost")


def test_errors_are_those_of_the_call(client, x):
    with pytest.raises(warpline.InvalidArgument, match="perm: has 3 entries; x has rank 2"):
        client.transpose(x, (0, 1, 2))
    with pytest.raises(warpline.InvalidArgument, match="variant"):
        client.transpose(x, variant="none")
    with pytest.raises(warpline.DeadlineExceeded):
        client.transpose(x, timeout=0.005)
    np.testing.assert_array_equal(client.transpose(x), x.T)  # the client goes on


def test_asyncio(server, x):
    async def run():
        async with warpline.aio.connect(server.address) as client:
            y, total = await asyncio.gather(client.transpose(x), client.sum(x))
            np.testing.assert_array_equal(y, x.T)
            np.testing.assert_allclose(total, x.sum(), rtol=1e-3)
            call = asyncio.ensure_future(client.transpose(x))
            await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            np.testing.assert_array_equal(await client.transpose(x), x.T)
    asyncio.run(run())


def test_without_room_for_tensors_messages_carry_what_they_can(x):
    with Daemon("--resident-bytes=1048576") as running, warpline.connect(running.address, max_retries=0) as client:
        np.testing.assert_array_equal(client.transpose(x), x.T)


def test_a_server_that_was_started_anew(x):
    with Daemon() as running, warpline.connect(running.address, timeout=60) as client:
        running.command[1] = f"--listen={running.address}"
        np.testing.assert_array_equal(client.transpose(x), x.T)
        running.stop()
        running.start()
        np.testing.assert_array_equal(client.transpose(x), x.T)
