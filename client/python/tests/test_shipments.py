"""Calls that fail: whose the memory is that the server may still write, and what is sent again."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from daemon import Daemon, slow_program
from shared_arrays import LARGE, MIB, filled, shared, values
from tensor_server import CODE, abort
from test_regions import wait_until

import warpline
from warpline.shared_shipments import address_of


pytestmark = pytest.mark.usefixtures("usual_sizes")


@pytest.fixture
def watched(regions):
    with warpline.connect(regions.address, timeout=30, pool_bytes=8 * MIB) as connected:
        yield connected


def held(client, array):
    """Where an array of the caller's lies."""
    slice = client._shared._pool().find(address_of(array))
    return slice.region, slice.offset, slice.size


def time_out(regions, client, *operands, **arguments):
    """A transpose that the gate holds up until its deadline has passed. On a busy machine the first may pass before the
    server begins: then it would not show what is to be shown."""
    for timeout in (0.5, 2, 8, 30):
        regions.started = threading.Semaphore(0)
        with pytest.raises(warpline.DeadlineExceeded):
            client.transpose(*operands, timeout=timeout, **arguments)
        if regions.started.acquire(blocking=False):
            return
    raise AssertionError("the server never began")


def overdue(regions):
    """A job goes on whose call has been withdrawn."""
    with regions.lock:
        return any(region.running[call] for region in regions.regions.values() for call in region.unanswered)


def test_what_timed_out_is_not_used_again_before_its_end(regions, watched):
    x = values((256, 512))  # 1 MiB, so that all fit twice, and not three times
    watched.transpose(x)
    regions.gate.clear()
    time_out(regions, watched, x)
    wait_until(lambda: regions.withdrawals)
    pool = watched._shared._pool()
    wait_until(lambda: pool.give_back([]) or len(pool._busy) == 2)
    regions.gate.set()
    # Confirmed, and free again.
    wait_until(lambda: pool.give_back([]) or not pool._busy)
    assert all(not region.slices.taken for region in pool._regions)
    assert np.array_equal(watched.transpose(x), x.T)


def test_what_is_never_confirmed_is_never_used_again(regions, watched):
    regions.confirms = False
    x, places = values((256, 512)), set()
    regions.gate.clear()
    time_out(regions, watched, x)
    regions.gate.set()
    pool = watched._shared._pool()
    lost = {(slice.offset + i * 256) for slice in pool._busy for i in range(slice.size // 256)}
    assert len(lost) >= 2 * MIB // 256
    kept = []
    for i in range(20):
        y = watched.transpose(x + i)
        kept.append((y, i))
        if shared(watched, y):
            _, offset, size = held(watched, y)
            places |= set(range(offset, offset + size, 256))
    assert places and not places & lost
    assert all(np.array_equal(y, (x + i).T) for y, i in kept)


def test_late_results_do_not_reach_what_others_have(regions, watched):
    """The server writes the result of a call that timed out while other calls go on."""
    x, gates = values((256, 512)), threading.Semaphore(0)
    late = threading.Thread(target=lambda: time_out(regions, watched, x))
    original, first = regions.gate.wait, [True]

    def wait():
        if first and first.pop():
            gates.acquire()
        return original()

    regions.gate.wait = wait
    late.start()
    late.join()
    kept = [watched.transpose(x * i) for i in range(2)]
    gates.release()
    pool = watched._shared._pool()
    wait_until(lambda: pool.give_back([]) or not pool._busy)
    assert all(np.array_equal(y, (x * i).T) for i, y in enumerate(kept))


def test_arrays_of_the_caller_s_are_his_when_the_error_is_raised(regions, watched):
    x, out = values(), watched.empty(LARGE[::-1])
    out[...] = 0
    regions.gate.clear()
    errors = []

    def work():
        time_out(regions, watched, x, out=out)
        errors.append(out.copy())

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: overdue(regions))
    # Its deadline has passed, but the server would still write.
    assert thread.is_alive() and not errors
    regions.gate.set()
    thread.join(30)
    # What it wrote was there before the error was.
    assert errors and np.array_equal(errors[0], x.T)


def test_the_wait_for_the_end_ends_with_the_connection(regions, watched):
    x, out = values(), watched.empty(LARGE[::-1])
    regions.gate.clear()
    thread = threading.Thread(target=lambda: time_out(regions, watched, x, out=out))
    thread.start()
    wait_until(lambda: overdue(regions))
    assert thread.is_alive()
    regions.drop_regions()
    thread.join(30)
    assert not thread.is_alive()
    regions.gate.set()


class Going:
    """A call in a thread, which the gate of a RegionServer holds up. failed: its error, and what was in `out` then."""

    def __init__(self, regions, client, x, out):
        def work():
            try:
                client.transpose(x, out=out)
            except warpline.Error as error:
                self.failed.append((error, out.copy()))

        self.failed = []
        self.thread = threading.Thread(target=work)
        self.thread.start()
        assert regions.started.acquire(timeout=30)


def test_closing_leaves_the_memory_to_calls_in_flight(regions, watched):
    x, out, other = values(), watched.empty(LARGE[::-1]), watched.empty(LARGE[::-1])
    out[...] = other[...] = 0
    regions.gate.clear()
    calls = [Going(regions, watched, x, out), Going(regions, watched, x, other)]
    watched.close()
    # Both have been cancelled, but the server would still write, and says when it does not any more.
    wait_until(lambda: len(regions.withdrawals) == 2 or not all(call.thread.is_alive() for call in calls))
    assert all(call.thread.is_alive() for call in calls) and regions.regions
    for call in (lambda: watched.transpose(x), lambda: watched.transpose(out), lambda: watched.empty(3)):
        with pytest.raises(warpline.Cancelled, match="closed"):
            call()
    regions.gate.set()
    for call in calls:
        call.thread.join(30)
        [(error, seen)] = call.failed
        assert isinstance(error, warpline.Cancelled) and np.array_equal(seen, x.T)
    wait_until(lambda: not regions.regions)


def test_the_last_call_in_flight_closes_the_links(regions, watched):
    """Of those that write to nothing of the caller's, too."""
    x, out = values(), watched.empty(LARGE[::-1])
    regions.confirms = False
    regions.gate.clear()
    first, last = Going(regions, watched, x, np.zeros(LARGE[::-1])), Going(regions, watched, x, out)
    watched.close()
    first.thread.join(30)
    [(error, seen)] = first.failed
    assert isinstance(error, warpline.Cancelled) and not seen.any()
    assert last.thread.is_alive() and regions.regions
    with regions.lock:
        regions.confirms = True
    regions.gate.set()
    last.thread.join(30)
    assert np.array_equal(last.failed[0][1], x.T)
    wait_until(lambda: not regions.regions)


def test_each_attempt_has_a_number_of_its_own(regions):
    x = values()
    with warpline.connect(regions.address, max_retries=3) as client:
        out = client.empty(LARGE[::-1])
        regions.faults["Transpose"] = [abort(CODE.UNAVAILABLE), abort(CODE.UNAVAILABLE)]
        assert client.transpose(x, out=out) is out and np.array_equal(out, x.T)
        assert regions.withdrawals == [1, 2] and regions.seen == [("Transpose", 0, 1, 1)]
        # A call that was withdrawn is refused, and sent again with another number.
        regions.faults["Transpose"] = [abort(CODE.ABORTED)]
    with warpline.connect(regions.address) as client:
        assert np.array_equal(client.transpose(x), x.T)


def test_errors_are_not_tried_again(regions):
    client = warpline.connect(regions.address, timeout=30, max_retries=0)
    for code, kind in ((CODE.NOT_FOUND, warpline.NotFound), (CODE.FAILED_PRECONDITION, warpline.FailedPrecondition),
                       (CODE.INVALID_ARGUMENT, warpline.InvalidArgument), (CODE.UNAVAILABLE, warpline.Unavailable)):
        regions.asked.clear()
        regions.faults["Transpose"] = [abort(code)]
        with pytest.raises(kind):
            client.transpose(values())
        assert regions.count("Transpose") == 1
    regions.faults["Transpose"] = [abort(CODE.ABORTED)] * 2
    with pytest.raises(warpline.Error, match="ABORTED"):
        client.transpose(values())
    client.close()


def test_regions_that_die_during_a_call(regions, watched):
    x = values()
    a, y = filled(watched, x), watched.transpose(x)

    def forget(context):
        dead = list(regions.regions.values())
        regions.regions.clear()
        for region in dead:
            region.socket.shutdown(2)
        context.abort(CODE.NOT_FOUND, "no such region")

    for operand in (x, a, a[:, 5:]):
        regions.faults["Transpose"] = [forget]
        assert np.array_equal(watched.transpose(operand), np.asarray(operand).T)
        assert not regions.faults["Transpose"]
    # What lay in the first one is ordinary memory now, and goes into another.
    assert not shared(watched, a) and not shared(watched, y)
    assert np.array_equal(y, x.T) and np.array_equal(watched.transpose(y), x)
    assert regions.seen[-1] == ("Transpose", 0, 1, 1) and len(regions.opened) >= 4


def test_only_once(regions, watched):
    def forget(context):
        for region in list(regions.regions.values()):
            region.socket.shutdown(2)
        context.abort(CODE.NOT_FOUND, "no such region")

    regions.faults["Transpose"] = [forget, forget]
    with pytest.raises(warpline.NotFound):
        watched.transpose(values())


def test_a_server_that_is_killed_and_started_again(tmp_path):
    x = values()
    with Daemon(f"--listen=unix:{tmp_path}/s") as second_life:
        first = second_life.process
        # A generous retry: gRPC itself takes a while to connect again.
        with warpline.connect(second_life.address, max_retries=30) as client:
            a, y, out = filled(client, x), client.transpose(x), client.empty(LARGE[::-1])
            first.send_signal(signal.SIGKILL)
            first.wait()
            first.stdout.close()
            wait_until(lambda: not shared(client, a))
            second_life.__init__(f"--listen=unix:{tmp_path}/s")
            assert np.array_equal(a, x) and np.array_equal(y, x.T)
            assert np.array_equal(client.transpose(a), x.T) and np.array_equal(client.transpose(y), x)
            assert client.transpose(x, out=out) is out and np.array_equal(out, x.T)
            assert shared(client, client.transpose(x)) and not shared(client, out)


def test_timeouts_of_a_real_server(unix_daemon):
    with warpline.connect(unix_daemon.address) as client:
        slow = slow_program(unix_daemon.backend)
        x, out = values(), client.empty(())
        large = client.empty((400, 400))
        p = slow.program
        wide = p.add(slow, np.zeros((400, 400)))
        for i in range(3):
            with pytest.raises(warpline.DeadlineExceeded):
                client.run(slow, out=out, timeout=0.05)
            with pytest.raises(warpline.DeadlineExceeded):
                client.run(wide, out=large if i % 2 else None, timeout=0.05)
            large[...] = i
            assert np.array_equal(client.transpose(x), x.T)
            assert (large == i).all()
        pool = client._shared._pool()
        wait_until(lambda: pool.give_back([]) or not pool._busy)


@pytest.mark.parametrize("how", ["os._exit(0)", "sys.exit()"])
def test_children_have_their_own(regions, how):
    """What a child makes and closes is not its parent's."""
    script = f"""
import gc, os, sys, numpy as np, warpline
x = np.random.default_rng(1).standard_normal((300, 400))
c = warpline.connect("{regions.address}", timeout=30)
a, y = c.empty(x.shape), c.transpose(x)
a[...] = x
pool = c._shared._pool()
for attempt in range(10):
    child = os.fork()
    if not child:
        assert c._shared._pool() is not pool and not pool._regions[0].link.open
        mine = warpline.connect("{regions.address}", timeout=30)
        b = mine.empty(x.shape)
        b[...] = x
        assert np.array_equal(mine.transpose(b), x.T) and np.array_equal(mine.gemm(x.T, b), x.T @ x)
        assert mine._shared._pool().find(b.ctypes.data)
        del a, y, b
        gc.collect()
        mine.close()
        c.close()
        {how}
    status = os.waitpid(child, 0)[1]
    # So gRPC ends a child, before it runs, where its own threads were not ready for a fork.
    if status != os.EX_USAGE << 8:
        break
assert status == 0
assert np.array_equal(y, x.T) and np.array_equal(a, x) and np.array_equal(c.transpose(a), x.T)
assert c._shared._pool().find(a.ctypes.data) and c._shared._pool().find(y.ctypes.data)
print("done")
"""
    environment = {**os.environ, "GRPC_VERBOSITY": "NONE", "GRPC_ENABLE_FORK_SUPPORT": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, env=environment)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    wait_until(lambda: not regions.regions)


def test_scripts_that_close_nothing_end(regions):
    script = f"""
import numpy as np, warpline
c = warpline.connect("{regions.address}", timeout=30)
y = c.transpose(c.empty((3000, 1000)))
print("done")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "done\n" and not done.stderr, done.stderr
    wait_until(lambda: not regions.regions)
