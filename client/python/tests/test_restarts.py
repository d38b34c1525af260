"""Servers that go and come back, while one client goes on calling."""

import asyncio
import contextlib
import threading

import numpy as np
import pytest
from daemon import Daemon
from shared_arrays import LARGE, shared, values
from tensor_server import CODE, abort
from test_tensors import wait_until

import warpline

pytestmark = pytest.mark.usefixtures("usual_sizes")

MODES = ["auto", "always", "never"]

# More than usual, as a daemon may take long to start while others have the processors.
RETRIES = 9


@pytest.fixture
def own_daemon(tmp_path):
    with Daemon(f"--listen=unix:{tmp_path}/s") as running:
        yield running


class Calls:
    """Of clients in closed loops. made: how many each of them has made. failed: what any of them raised."""

    def __init__(self, clients):
        self.made, self.failed, self.stop = [0] * clients, [], False

    def go_on(self):
        """Each client has made some calls from now on."""
        before = list(self.made)
        wait_until(lambda: self.failed or all(now > then + 2 for now, then in zip(self.made, before)))

    def restart(self, daemon):
        """While they go on."""
        try:
            self.go_on()
            for _ in range(2):
                daemon.stop()
                daemon.start()
                self.go_on()
        finally:
            self.stop = True


def test_tensors_of_before(own_daemon):
    """They are gone, so that there is nothing to drop."""
    def restart():
        own_daemon.stop()
        own_daemon.start()

    async def drop_later():
        async with warpline.aio.connect(own_daemon.address, max_retries=RETRIES) as c:
            t = await c.put(np.ones(3))
            restart()
            await t.drop()

    with warpline.connect(own_daemon.address, max_retries=RETRIES) as client:
        with client.put(np.ones(3)) as t:
            restart()
            with pytest.raises(warpline.FailedPrecondition, match="started again.* put the tensor again .request"):
                t.numpy()
        t.drop()
    asyncio.run(drop_later())


@pytest.mark.parametrize("mode", MODES)
def test_a_restart_fails_no_call(own_daemon, mode):
    x = values()
    with warpline.connect(own_daemon.address, shared_memory=mode, max_retries=RETRIES) as client:
        calls, a = Calls(3), client.empty(LARGE)
        a[...] = x

        def work(i):
            try:
                while not calls.stop:
                    out = client.empty(LARGE[::-1]) if i else None
                    assert np.array_equal(client.transpose(a if i == 1 else x, out=out), x.T)
                    calls.made[i] += 1
            except BaseException as error:
                calls.failed.append(error)
                raise

        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        calls.restart(own_daemon)
        for thread in threads:
            thread.join()
        assert not calls.failed
        # There are links to the last of the servers.
        assert mode == "never" or shared(client, client.transpose(x))


@pytest.mark.parametrize("mode", MODES)
def test_a_restart_fails_no_call_with_asyncio(own_daemon, mode):
    x = values()

    async def check():
        async with warpline.aio.connect(own_daemon.address, shared_memory=mode, max_retries=RETRIES) as client:
            calls = Calls(3)

            async def work(i):
                while not calls.stop:
                    out = await client.empty(LARGE[::-1]) if i else None
                    assert np.array_equal(await client.transpose(x, out=out), x.T)
                    calls.made[i] += 1

            restarts = asyncio.create_task(asyncio.to_thread(calls.restart, own_daemon))
            try:
                await asyncio.gather(*[work(i) for i in range(3)])
            except BaseException as error:
                calls.failed.append(error)
                raise
            finally:
                await restarts
            assert mode == "never" or shared(client, await client.transpose(x))

    asyncio.run(check())


def test_other_calls_wait_for_the_server_too(own_daemon):
    with warpline.connect(own_daemon.address, max_retries=RETRIES) as client:
        backend = client.info().backend
        for call in (lambda: client.info().backend == backend, client.is_serving, lambda: client.tensors() == [],
                     lambda: client.put(values()).numpy().shape == LARGE):
            own_daemon.stop()
            with contextlib.ExitStack() as stack:
                starting = threading.Thread(target=own_daemon.start)
                starting.start()
                stack.callback(starting.join)
                assert call()


def test_tensors_of_a_server_that_has_gone(own_daemon):
    """Nobody can mend that."""
    with warpline.connect(own_daemon.address, max_retries=RETRIES) as client:
        t = client.put(np.ones(3))
        own_daemon.stop()
        own_daemon.start()
        for call in (t.numpy, lambda: client.reduce(t, "sum"), t.renew):
            with pytest.raises(warpline.FailedPrecondition):
                call()
        t.release()


# --- As long as there is nobody to ask for memory


@pytest.mark.parametrize("mode", ["auto", "always"])
@pytest.mark.parametrize("method", ["GetInfo", "Open"])
def test_memory_is_asked_for_again(regions, mode, method):
    """What is large may not fit into a message, which is no way out where another attempt is to come."""
    x = values()
    with warpline.connect(regions.address, shared_memory=mode) as client:
        regions.faults[method] = [abort(CODE.UNAVAILABLE)] * 2
        assert np.array_equal(client.transpose(x), x.T)
        assert regions.seen == [("Run", 0, 1, 1)] and not regions.faults[method]

    async def check():
        async with warpline.aio.connect(regions.address, shared_memory=mode) as client:
            regions.faults[method] = [abort(CODE.UNAVAILABLE)] * 2
            assert np.array_equal(await client.transpose(x), x.T)
            assert regions.seen[1:] == [("Run", 0, 1, 1)] and not regions.faults[method]

    asyncio.run(check())


def test_without_retries_messages_are_the_way_out(regions):
    x = values()
    with warpline.connect(regions.address, max_retries=0) as client:
        regions.faults["Open"] = [abort(CODE.UNAVAILABLE)] * 2
        assert np.array_equal(client.transpose(x), x.T)
        assert regions.seen == [("Run", 1, 0, 0)]
    with warpline.connect(regions.address, max_retries=0, shared_memory="always") as client:
        regions.faults["Open"] = [abort(CODE.UNAVAILABLE)] * 2
        for call in (lambda: client.transpose(x), lambda: client.empty(LARGE)):
            with pytest.raises(warpline.Unavailable):
                call()


def test_empty_waits_for_the_server(regions):
    async def check():
        async with warpline.aio.connect(regions.address) as client:
            regions.faults["Open"] = [abort(CODE.UNAVAILABLE)]
            assert shared(client, await client.empty(LARGE))

    with warpline.connect(regions.address) as client:
        regions.faults["GetInfo"] = [abort(CODE.UNAVAILABLE)]
        assert shared(client, client.empty(LARGE))
    asyncio.run(check())
