import asyncio
import threading

import numpy as np
import pytest
from daemon import slow_program

import warpline


def test_every_method(daemon):
    async def check():
        x = np.random.default_rng(12).standard_normal((20, 30))
        async with warpline.aio.connect(daemon.address) as client:
            assert np.array_equal(await client.transpose(x), x.T)
            assert np.allclose(await client.gemm(x, x.T), x @ x.T)
            assert np.allclose(await client.reduce(x.T, "sum", axis=1), x.sum(axis=0))
            out, executions = np.zeros((30, 20)), []
            assert await client.transpose(x, out=out, report=executions.append, request_id="mine") is out
            assert np.array_equal(out, x.T) and executions[0].request_id == "mine"
            assert (await client.info()).backend == daemon.backend
            assert await client.is_serving()

    asyncio.run(check())


def test_programs(daemon):
    async def check():
        x = np.random.default_rng(13).standard_normal((20, 30))
        p = warpline.program()
        c = p.gemm(x, x.T)
        async with warpline.aio.connect(daemon.address) as client:
            assert np.allclose(await client.run(c.sum(axis=1)), (x @ x.T).sum(1))
            product, total = await client.run(c, c.sum())
            assert np.allclose(product, x @ x.T) and np.allclose(total, (x @ x.T).sum())

    asyncio.run(check())


def test_outputs_given_twice(daemon):
    x = np.arange(6.0).reshape(2, 3)

    async def check():
        async with warpline.aio.connect(daemon.address) as client, await client.put(x) as t:
            a, b = await client.run(t.T, t.T)
            assert a is b and np.array_equal(a, x.T)
            outs = np.zeros((3, 2)), np.zeros((3, 2))
            assert (await client.run(t.T, t.T, out=outs))[1] is outs[1]
            assert np.array_equal(outs[0], x.T) and np.array_equal(outs[1], x.T)
            a, b = await client.run(t.T, t.T, keep=True)
            assert a is b and repr(a) == f"<warpline.aio.Tensor ...{a.id[-8:]} float64[3, 2] on device {a.device}>"
            await a.drop()

    asyncio.run(check())


def test_many_at_once(daemon):
    async def check():
        arrays = [np.full((10, i), i) for i in range(1, 101)]
        async with warpline.aio.connect(daemon.address) as client:
            results = await asyncio.gather(*[client.transpose(x) for x in arrays])
        assert all(np.array_equal(y, x.T) for x, y in zip(arrays, results))

    asyncio.run(check())


def test_errors(daemon):
    async def check():
        slow = slow_program(daemon.backend)
        async with warpline.aio.connect(daemon.address) as client:
            with pytest.raises(warpline.InvalidArgument) as caught:
                await client.transpose(np.ones((2, 3)), variant="nonesuch", request_id="mine")
            assert caught.value.violations[0].field == "variant" and caught.value.request_id == "mine"
            with pytest.raises(warpline.DeadlineExceeded):
                await client.run(slow, timeout=0.05)
            with pytest.raises(ValueError):
                await client.run(slow, timeout=0)

    asyncio.run(check())


def test_cancelling_the_task_cancels_the_call(fake):
    begun, ended, over = threading.Event(), threading.Event(), threading.Event()

    def hang(context):
        context.add_callback(ended.set)
        begun.set()
        over.wait()

    async def check():
        async with warpline.aio.connect(fake.address) as client:
            fake.faults["Run"] = [hang]
            task = asyncio.create_task(client.transpose(np.ones(3)))
            await asyncio.to_thread(begun.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # The server sees it, as it answers nothing until then.
            assert await asyncio.to_thread(ended.wait, 30)
            over.set()
            assert np.array_equal(await client.transpose(np.ones(3)), np.ones(3))

    asyncio.run(check())


def test_closing_cancels(daemon):
    async def check():
        client = warpline.aio.connect(daemon.address)
        await asyncio.to_thread(daemon.wait_for_requests, 0)
        task = asyncio.create_task(client.run(slow_program(daemon.backend)))
        await asyncio.to_thread(daemon.wait_for_requests, 1)
        await client.close()
        with pytest.raises(warpline.Cancelled):
            await task
        for call in (client.transpose(np.ones(3)), client.info(), client.is_serving()):
            with pytest.raises(warpline.Cancelled, match="closed"):
                await call

    asyncio.run(check())
