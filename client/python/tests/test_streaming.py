"""Arrays that are too large for messages travel in ranges; the call looks like any other."""

import asyncio
import time

import grpc
import numpy as np
import pytest

import warpline
from daemon import Daemon
from tensor_server import abort

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
    with Daemon("--upload-bytes=1048576") as running, warpline.connect(running.address, max_retries=0) as client:
        np.testing.assert_array_equal(client.transpose(x), x.T)


def test_a_server_that_shares_no_memory(x, tmp_path):
    with Daemon(f"--listen=unix:{tmp_path}/s", "--region-bytes=0", "--max-inline-bytes=16M"), \
            warpline.connect(f"unix:{tmp_path}/s") as client:
        np.testing.assert_array_equal(client.transpose(x), x.T)


def test_a_server_that_was_started_anew(x):
    with Daemon() as running, warpline.connect(running.address, timeout=60) as client:
        running.command[1] = f"--listen={running.address}"
        np.testing.assert_array_equal(client.transpose(x), x.T)
        running.stop()
        running.start()
        np.testing.assert_array_equal(client.transpose(x), x.T)


def test_what_is_put_for_a_call_is_gone_when_it_returns(x):
    """The next call needs the room."""
    with Daemon("--upload-bytes=150M") as running, warpline.connect(running.address, max_retries=0) as client:
        for _ in range(6):
            np.testing.assert_allclose(client.sum(x), x.sum(), rtol=1e-3)
            assert client.tensors() == []
        client.sum(np.concatenate([x, x[:1024]]))  # 80 MiB, beside which there is no room for another


def test_tensors_that_a_call_frees_are_freed_after_its_results_have_come(client, x):
    small = x[:700]  # 11 MiB
    t, u = client.put(small), client.put(small)
    np.testing.assert_array_equal(client.run(t + 1, free_after=[t]), small + 1)
    np.testing.assert_array_equal(client.run(u + x[0], free_after=[u]), small + x[0])
    assert client.tensors() == []


def test_an_operand_that_is_given_twice_is_sent_once(server, x):
    square = np.ascontiguousarray(x[:2400, :2400])
    with warpline.connect(server.address) as client:
        before = server.total("warpline_host_copy_bytes_total", 'site="put"')
        got = client.gemm(square, square)
        assert server.total("warpline_host_copy_bytes_total", 'site="put"') == before + square.nbytes
        np.testing.assert_allclose(got, square @ square, rtol=1e-2, atol=1e-2)


def test_calls_that_wait_for_others_end_in_time(server, x):
    async def run():
        async with warpline.aio.connect(server.address) as client:
            many = [asyncio.ensure_future(client.transpose(x)) for _ in range(12)]
            await asyncio.sleep(0)
            # At its end a call that the server has refused meanwhile says why.
            with pytest.raises((warpline.DeadlineExceeded, warpline.ResourceExhausted)):
                await client.transpose(x, timeout=0.05)
            assert not all(call.done() for call in many)
            for call in many[4:]:
                call.cancel()
            for y in await asyncio.gather(*many[:4]):
                np.testing.assert_array_equal(y, x.T)
            await asyncio.gather(*many[4:], return_exceptions=True)
    asyncio.run(run())


def test_a_result_over_its_operand_is_not_computed_again_from_what_it_has_become(fake):
    with warpline.connect(fake.address) as client:
        y = np.full(6 * MIB, 10, "f4")
        fake.faults["Get"] = [None, None, None, abort(grpc.StatusCode.NOT_FOUND, "gone")]
        with pytest.raises(warpline.NotFound):
            client.run(warpline.program().input(y) * 2, out=y)
        # Elsewhere the call is made again.
        y[:] = 10
        fake.faults["Get"] = [None, abort(grpc.StatusCode.NOT_FOUND, "gone")]
        assert (client.run(warpline.program().input(y) * 2) == 20).all()


def test_progress_counts_what_travels_in_ranges(client, x):
    told = []
    y = client.transpose(x, progress=lambda done, total: told.append((done, total)))
    np.testing.assert_array_equal(y, x.T)
    assert {total for _, total in told} == {2 * x.nbytes}
    assert told[-1] == (2 * x.nbytes,) * 2
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    told.clear()
    client.transpose(x[:10], progress=lambda *numbers: told.append(numbers))
    assert told == []  # it travels in messages

    def fail(done, total):
        raise KeyError(done)
    for call in (lambda: client.run(warpline.program().input(x).sum(), progress=fail),
                 lambda: client.reduce(x, "sum", progress=fail)):
        with pytest.raises(KeyError):
            call()
    with pytest.raises(TypeError, match="progress is a int"):
        client.transpose(x, progress=3)
    # An operand that is given twice travels once.
    told.clear()
    square = np.ascontiguousarray(x[:2400, :2400])
    client.gemm(square, square, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (2 * square.nbytes,) * 2


def test_progress_of_put_and_fetches(client, x):
    for array in (x, x[:2, :3]):
        told = []
        t = client.put(array, progress=lambda done, total: told.append((done, total)))
        assert told[-1] == (array.nbytes, array.nbytes) and {total for _, total in told} == {array.nbytes}
        assert len(told) > 1 or array is not x
        told.clear()
        assert np.array_equal(t.numpy(progress=lambda done, total: told.append((done, total))), array)
        assert told[-1] == (array.nbytes, array.nbytes)
        t.drop()

    def fail(done, total):
        raise ZeroDivisionError

    with client.put(x) as t:
        for call in (lambda: client.put(x, progress=fail), lambda: t.numpy(progress=fail)):
            with pytest.raises(ZeroDivisionError):
                call()
    with pytest.raises(TypeError, match="progress is a int"):
        client.put(x, progress=3)


def test_named_reductions_take_the_options_of_calls(client, x):
    seen, told = [], []
    assert np.isclose(client.sum(x, report=seen.append, progress=lambda *numbers: told.append(numbers)), x.sum())
    assert len(seen) == 1 and told
    with client.max(x, keep=True) as kept:
        assert kept.numpy() == x.max()
    with pytest.raises(TypeError, match="unexpected keyword argument 'outt'"):
        client.sum(x, outt=3)


def test_progress_with_asyncio(server, x):
    async def run():
        told = []
        async with warpline.aio.connect(server.address) as client:
            await client.reduce(x, "sum", progress=lambda done, total: told.append((done, total)))
        assert told[-1] == (x.nbytes, x.nbytes)
    asyncio.run(run())


def test_more_operands_than_a_request_may_have_uploads(client):
    p, arrays = warpline.program(), [np.full(1 << 18, i, "f4") for i in range(70)]
    parts = [p.input(array) for array in arrays]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    np.testing.assert_array_equal(client.run(total), np.full(1 << 18, sum(range(70)), "f4"))


def test_calls_wait_for_the_room_of_others(x):
    async def run():
        with Daemon("--upload-bytes=150M") as running:
            async with warpline.aio.connect(running.address, max_retries=0) as client:
                for y in await asyncio.gather(*[client.transpose(x) for _ in range(4)]):
                    np.testing.assert_array_equal(y, x.T)
    asyncio.run(run())
