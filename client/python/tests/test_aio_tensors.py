"""Resident tensors of the asynchronous client."""

import asyncio
import gc
import threading
import time

import grpc
import numpy as np
import pytest
from tensor_server import abort

import warpline
from warpline.aio.threads import copying

CODE = grpc.StatusCode
X = np.arange(3 << 20, dtype="u1")


async def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "this does not come true"
        await asyncio.sleep(0.01)


async def ids(client):
    return {info.id for info in await client.tensors()}


def test_every_method(address):
    async def check():
        x = np.random.default_rng(18).standard_normal((6, 4))
        async with warpline.aio.connect(address) as c:
            async with await c.put(x, ttl=60) as t:
                assert isinstance(t, warpline.aio.Tensor) and t.shape == x.shape
                assert np.array_equal(await t.numpy(), x)
                out = np.zeros(x.shape, order="F")
                assert await t.numpy(out=out, channels=2) is out and np.array_equal(out, x)
                assert np.allclose(await c.gemm(t, x.T), x @ x.T)
                assert np.allclose(await c.run((t @ t.T).sum(axis=1)), (x @ x.T).sum(1))
                p = warpline.program((warpline.placeholder("x") @ t).max())
                assert np.allclose(await c.run(p, x=x.T), (x.T @ x).max())
                y = await c.transpose(t, keep=True)
                d, s = await c.run(t @ y, y.sum(), keep=(True, False))
                assert np.array_equal(await y.numpy(), x.T) and np.allclose(await d.numpy(), x @ x.T)
                assert np.allclose(s, x.sum())
                assert {t.id, y.id, d.id} <= await ids(c)
                other = await c.tensor(y.id)
                assert (await other.renew(50)).ttl <= 50
                async with other:
                    pass
                assert y.id in await ids(c)
                with pytest.raises(TypeError, match="await"):
                    np.asarray(t)
                with pytest.raises(TypeError, match="run"):
                    np.asarray(t @ t.T)
                await y.drop()
                await y.drop()
                released = d.release()
            assert not {t.id, y.id} & await ids(c)
            with pytest.raises(warpline.NotFound):
                await t.numpy()
            left = await c.put(x)
        async with warpline.aio.connect(address) as c:
            # What was not dropped, closing did.
            assert released in await ids(c) and left.id not in await ids(c)
            await (await c.tensor(released)).drop()

    asyncio.run(check())


def test_what_nobody_closed_or_dropped_goes_when_asyncio_ends(address):
    kept = []

    async def make():
        c = warpline.aio.connect(address)
        kept.extend([await c.put(X), await c.put(X), await c.put(X)])
        kept[2].release()
        await kept[1].drop()

    asyncio.run(make())
    with warpline.connect(address) as c:
        left = {info.id for info in c.tensors()}
        assert {t.id for t in kept} & left == {kept[2].id}
        c.tensor(kept[2].id).drop()


def test_closed_clients(address):
    async def check():
        c = warpline.aio.connect(address)
        t = await c.put(X)
        await c.close()
        await t.drop()
        for use in (lambda: c.empty(3), c.__aenter__, c.info):
            with pytest.raises(warpline.Cancelled, match="the client is closed"):
                await use()

    asyncio.run(check())


def test_many_messages(address):
    async def check():
        async with warpline.aio.connect(address) as c:
            for channels in (None, 3):
                async with await c.put(X, channels=channels) as t:
                    assert np.array_equal(await t.numpy(channels=channels), X)
            # These copies are made in threads.
            big = X.reshape(-1, 4)
            assert np.array_equal(await c.transpose(big), big.T)
            out = np.zeros(big.T.shape, "u1")
            p = warpline.program()
            assert await c.run(p.transpose(big), out=out) is out and np.array_equal(out, big.T)

    asyncio.run(check())


def test_garbage_is_dropped(address):
    async def check():
        async with warpline.aio.connect(address) as c:
            t = await c.put(np.ones(3))
            assert t.id in await ids(c)
            id = t.id
            # In another thread, as a collection may be.
            held = [t]
            del t
            await asyncio.to_thread(held.clear)
            gc.collect()
            while id in await ids(c):
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(check(), 30))


def test_leases_are_renewed(fake):
    async def check():
        fake.slack = 30
        async with warpline.aio.connect(fake.address) as c:
            t, lost = await c.put(np.ones(3), ttl=0.4), await c.put(np.ones(3), ttl=0.4)
            del fake.stored[lost.id]
            fake.faults["Renew"] = [abort(CODE.UNAVAILABLE)]
            await until(lambda: fake.count("Renew") >= 6)
            assert (await t.numpy()).tolist() == [1, 1, 1]
            assert t.release() == t.id
            await asyncio.sleep(0)
        assert set(fake.stored) == {t.id}

    asyncio.run(check())


def test_the_with_block_of_a_tensor_may_outlast_its_client(fake):
    async def check():
        client = warpline.aio.connect(fake.address)
        async with await client.put(X) as t, await client.tensor(t.id):
            await client.close()
        assert not fake.stored
        await t.drop()

    asyncio.run(check())


def test_an_error_in_the_with_block_does_not_wait_for_the_server(fake):
    async def check():
        async with warpline.aio.connect(fake.address) as client:
            with pytest.raises(RuntimeError, match="mine"):
                async with await client.put(X):
                    fake.faults["Drop"] = [abort(CODE.UNAVAILABLE)] * 9
                    raise RuntimeError("mine")
            await until(lambda: fake.count("Drop") == 1)

    asyncio.run(check())


def test_failures_drop_and_retries_help(fake):
    async def check():
        async with warpline.aio.connect(fake.address, max_retries=0) as c:
            fake.faults["Put"] = ["midway"]
            with pytest.raises(warpline.Unavailable):
                await c.put(X, channels=3)
            await until(lambda: not fake.stored)
        async with warpline.aio.connect(fake.address, max_retries=2) as c:
            fake.faults["Put"], fake.faults["Get"] = ["counted"], ["midway"]
            t = await c.put(X)
            assert np.array_equal(await t.numpy(), X)

    asyncio.run(check())


@pytest.mark.parametrize("method", ["Put", "Get"])
def test_cancelling_the_task_cancels_the_transfer(fake, method):
    begun, ended = threading.Event(), threading.Event()

    def hang(context):
        context.add_callback(ended.set)
        begun.set()
        while context.is_active():
            time.sleep(0.01)

    async def check():
        async with warpline.aio.connect(fake.address) as c:
            t = await c.put(X)
            fake.faults[method] = [hang]
            task = asyncio.create_task(c.put(X) if method == "Put" else t.numpy())
            # The loop goes on meanwhile.
            await until(begun.is_set)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(ended.wait, 30)
            await until(lambda: set(fake.stored) == {t.id})

    asyncio.run(check())


def test_a_tensor_that_came_too_late_is_dropped(fake):
    async def check():
        async with warpline.aio.connect(fake.address) as c:
            task = asyncio.create_task(c.put(np.ones(3)))
            while fake.count("Create") == 0:
                await asyncio.sleep(0)
            # It is done while the loop does not look.
            time.sleep(0.3)
            assert len(fake.stored) == 1 and not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: not fake.stored)

    asyncio.run(check())


def test_closing_cancels_transfers(fake):
    begun = threading.Event()

    def hang(context):
        begun.set()
        while context.is_active():
            time.sleep(0.01)

    async def check():
        c = warpline.aio.connect(fake.address)
        t = await c.put(X)
        fake.faults["Get"] = [hang]
        task = asyncio.create_task(t.numpy())
        await until(begun.is_set)
        await c.close()
        with pytest.raises(warpline.Cancelled):
            await task
        for call in (t.numpy(), c.put(X), c.tensors(), c.tensor(t.id), t.renew()):
            with pytest.raises(warpline.Cancelled, match="closed"):
                await call

    asyncio.run(check())


def test_much_is_copied_in_threads():
    async def check():
        here = threading.get_ident()
        for arrays, same in (([np.zeros(1 << 20, "u1"), None, 5], True), ([np.zeros((1 << 20) + 1, "u1")], False),
                             ([[1, 2]], False)):
            assert (await copying(arrays, threading.get_ident) == here) is same
        with pytest.raises(ZeroDivisionError):
            await copying([X], lambda: 1 // 0)

    asyncio.run(check())


def test_a_run_drops_what_it_is_the_last_to_use(daemon):
    async def main():
        async with warpline.aio.connect(daemon.address) as c:
            t = await c.put(np.ones((2, 3)))
            assert (await c.run(t.sum(), free_after=[t])).item() == 6
            assert not await c.tensors()

    asyncio.run(main())
