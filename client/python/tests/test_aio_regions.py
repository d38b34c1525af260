import asyncio
import contextlib
import threading
import time

import numpy as np
import pytest
from shared_arrays import LARGE, MIB, filled, shared, values
from tensor_server import CODE, abort
from test_tensors import wait_until

import warpline
from warpline.aio import calls

pytestmark = pytest.mark.usefixtures("usual_sizes")


async def until(condition):
    await asyncio.to_thread(wait_until, condition)


async def empty_with(client, x):
    array = await client.empty(x.shape, x.dtype)
    array[...] = x
    return array


@contextlib.asynccontextmanager
async def ticking():
    """An event that is set when the loop has gone round again since it was cleared."""
    ticked = threading.Event()

    async def tick():
        while True:
            await asyncio.sleep(0.001)
            ticked.set()

    task = asyncio.create_task(tick())
    yield ticked
    task.cancel()


def test_every_method(unix):
    async def check():
        x, y = values(), values((400, 350))
        async with warpline.aio.connect(unix, shared_memory="always") as client:
            t = await client.transpose(x)
            assert np.array_equal(t, x.T) and shared(client, t)
            assert np.allclose(await client.gemm(x, y), x @ y)
            assert np.allclose(await client.reduce(x.T, "sum", axis=1), x.sum(axis=0))
            p = warpline.program()
            product = p.gemm(x, y)
            d, total = await client.run(product, product.sum())
            assert np.allclose(d, x @ y) and np.allclose(total, (x @ y).sum())
            a, out = await empty_with(client, x), await client.empty((400, 300))
            assert await client.transpose(a, out=out) is out and np.array_equal(out, x.T)
            ordinary = np.zeros((400, 300))
            assert await client.transpose(a[:, :], out=ordinary) is ordinary and np.array_equal(ordinary, x.T)
            assert (await client.transpose(np.ones((2, 3)))).shape == (3, 2)
            with pytest.raises(warpline.Error):
                await client.transpose(x, (0, 0))
        assert np.array_equal(t, x.T) and np.array_equal(out, x.T)
        async with warpline.aio.connect(unix, shared_memory="never") as client:
            assert np.array_equal(await client.transpose(await empty_with(client, x)), x.T)

    asyncio.run(check())


def test_elements_do_not_travel(regions):
    async def check():
        x = values()
        async with warpline.aio.connect(regions.address) as client:
            await client.transpose(x)
            await client.transpose(await empty_with(client, x), out=await client.empty((400, 300)))
        assert regions.seen == [("Run", 0, 1, 1)] * 2

    asyncio.run(check())


def test_many_at_once(unix):
    async def check():
        arrays = [np.full((200, 100 + i), float(i)) for i in range(40)]
        async with warpline.aio.connect(unix) as client:
            results = await asyncio.gather(*[client.transpose(x) for x in arrays])
        assert all(np.array_equal(y, x.T) for x, y in zip(arrays, results))

    asyncio.run(check())


def test_the_loop_goes_on_while_elements_are_copied_and_regions_opened(unix):
    """If any of it were done in the loop's thread, the loop would not go round between the begin and the end."""
    async def check():
        x, out = np.ones((4096, 4096)), np.zeros((4096, 4096))
        async with warpline.aio.connect(unix, pool_bytes=300 * MIB) as client:
            for _ in range(3):
                task, rounds = asyncio.create_task(client.transpose(x, out=out)), 0
                while not task.done():
                    await asyncio.sleep(0.001)
                    rounds += 1
                await task
                assert rounds > 3

    asyncio.run(check())


def test_small_operands_with_large_results_do_not_block_the_loop(unix, monkeypatch):
    """Memory for the result may have to be opened, which another thread does."""
    library, threads = calls.lib, []

    class Recorder:
        def __getattr__(self, name):
            return getattr(library, name)

        def warpline_submit(self, *arguments):
            threads.append(threading.current_thread())
            return library.warpline_submit(*arguments)

    async def check():
        x = np.ones((1000, 1))
        async with warpline.aio.connect(unix) as client:
            monkeypatch.setattr(calls, "lib", Recorder())
            assert (await client.gemm(x, x.T)).shape == (1000, 1000)
            await client.transpose(x)
            await client.gemm(x, x.T, keep=True)
        assert [thread is threading.main_thread() for thread in threads] == [False, True, True]

    asyncio.run(check())


def test_cancelled_calls_keep_their_memory_until_they_have_ended(regions):
    async def check():
        x = values((256, 512))
        async with warpline.aio.connect(regions.address, pool_bytes=16 * MIB) as client:
            await client.transpose(x)
            regions.gate.clear()
            regions.started = threading.Semaphore(0)
            task = asyncio.create_task(client.transpose(x))
            await asyncio.to_thread(regions.started.acquire)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # The server still reads and writes what the call had: other calls have other memory.
            pending = [asyncio.create_task(client.transpose(x * i)) for i in range(3)]
            await until(lambda: len(regions.seen) == 5)
            regions.gate.set()
            for i, each in enumerate(pending):
                assert np.array_equal(await each, (x * i).T)
            assert np.array_equal(await client.transpose(x), x.T)

    asyncio.run(check())


def test_cancelled_calls_end_when_nobody_writes_to_arrays_of_the_caller_s(regions):
    async def check():
        x = values()
        async with ticking() as ticked, warpline.aio.connect(regions.address) as client:
            out = await client.empty((400, 300))
            out[...] = 0
            regions.gate.clear()
            task = asyncio.create_task(client.transpose(x, out=out))
            await asyncio.to_thread(regions.started.acquire)
            task.cancel()
            await until(lambda: regions.withdrawals)
            ticked.clear()
            await asyncio.to_thread(ticked.wait)  # The loop goes on.
            assert not task.done()
            regions.gate.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert np.array_equal(out, x.T)

    asyncio.run(check())


def test_closing_leaves_the_memory_to_calls_in_flight(regions):
    async def check():
        x = values()
        async with ticking() as ticked:
            client = warpline.aio.connect(regions.address)
            out = await client.empty((400, 300))
            out[...] = 0
            regions.gate.clear()
            task = asyncio.create_task(client.transpose(x, out=out))
            await asyncio.to_thread(regions.started.acquire)
            await client.close()
            await until(lambda: regions.withdrawals or task.done())
            ticked.clear()
            await asyncio.to_thread(ticked.wait)
            assert not task.done() and regions.regions
            with pytest.raises(warpline.Cancelled, match="closed"):
                await client.transpose(x)
            regions.gate.set()
            with pytest.raises(warpline.Cancelled):
                await task
            assert np.array_equal(out, x.T)
            await until(lambda: not regions.regions)

    asyncio.run(check())


def test_calls_that_nobody_awaits_any_more_are_withdrawn(regions):
    async def check():
        async with warpline.aio.connect(regions.address) as client:
            regions.gate.clear()
            call = client.transpose(values(), out=await client.empty((400, 300)))
            end = time.monotonic() + 60
            while not regions.started.acquire(blocking=False):
                future = call.send(None)
                future._asyncio_future_blocking = False
                while not future.done() and not regions.started._value:
                    assert time.monotonic() < end, "the call did not start"
                    await asyncio.sleep(0.001)
            call.close()
            await until(lambda: regions.withdrawals)
            regions.gate.set()

    asyncio.run(check())


def test_timeouts(regions):
    async def check():
        x = values()
        async with warpline.aio.connect(regions.address) as client:
            await client.transpose(x)
            regions.gate.clear()
            # On a busy machine a deadline may pass before the server begins.
            for timeout in (0.5, 2, 8, 30):
                regions.started = threading.Semaphore(0)
                with pytest.raises(warpline.DeadlineExceeded):
                    await client.transpose(x, timeout=timeout)
                if regions.started.acquire(blocking=False):
                    break
            regions.gate.set()
            assert np.array_equal(await client.transpose(x), x.T)

    asyncio.run(check())


def test_regions_that_die(regions):
    def forget(context):
        for region in list(regions.regions.values()):
            region.socket.shutdown(2)
        context.abort(CODE.FAILED_PRECONDITION, "another server")

    async def check():
        x = values()
        async with warpline.aio.connect(regions.address, max_retries=2) as client:
            a = await empty_with(client, x)
            regions.faults["Run"] = [forget, abort(CODE.UNAVAILABLE)]
            assert np.array_equal(await client.transpose(a), x.T)
            assert not regions.faults["Run"] and not shared(client, a)

    asyncio.run(check())


def test_arrays_of_both_clients(unix):
    """What lies in the memory of one is ordinary memory for the other."""
    async def check():
        x = values()
        with warpline.connect(unix) as other:
            a = filled(other, x)
            async with warpline.aio.connect(unix) as client:
                b = await client.transpose(a)
                assert np.array_equal(b, x.T) and np.array_equal(other.transpose(b), x)

    asyncio.run(check())
    assert LARGE == values().shape
