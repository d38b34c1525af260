"""Processes that are killed or stopped."""

import contextlib
import os
import signal
import time

import grpc
import numpy as np

import warpline
from daemon import wait_until
from faults import (KERNELS, MIB, OPTIONS, Loop, await_rest, check, code_of, ending, free_port, serves, tell,
                    transpose_of)
from soak_calls import slow_program, tensor
import warpline_pb2 as v1


def killed_daemon(scene):
    """kill -9 under load, and another one on the same addresses a second later."""
    unix = f"unix:{scene.folder}/socket"
    places = {"listen": f"127.0.0.1:{free_port()},{unix}", "metrics": f"127.0.0.1:{free_port()}"}
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(scene.daemon(**places))
        channel = stack.enter_context(grpc.insecure_channel(first.address, OPTIONS))
        x = np.ones((512, 512), "f4")
        body = v1.TransposeRequest(x=tensor(x)).SerializeToString()
        retrying = stack.enter_context(warpline.connect(first.address))
        sharing = stack.enter_context(warpline.connect(unix, shared_memory="always"))
        array = sharing.empty((512, 512), "f4")
        array[...] = np.arange(512 * 512, dtype="f4").reshape(512, 512)
        holding = stack.enter_context(warpline.connect(first.address))
        resident = holding.put(x)

        def in_shared_memory():
            check(np.array_equal(sharing.transpose(array), array.T), "what is computed in shared memory is right")

        loops = {"a plain client": Loop(lambda: channel.unary_unary(KERNELS + "Transpose")(body, timeout=30)),
                 "the Python client": Loop(lambda: transpose_of(retrying, 512)),
                 "the Python client with shared memory": Loop(in_shared_memory),
                 "the Python client with a resident tensor": Loop(lambda: holding.transpose(resident))}
        for loop in loops.values():
            loop.await_answer_after(0)
        killed = time.monotonic()
        first.kill()
        time.sleep(1)
        second = stack.enter_context(scene.daemon(**places))
        ready = time.monotonic()
        tell("killed_daemon", "from the kill to READY of the next, with a pause of 1 s between", ready - killed)
        for who, loop in loops.items():
            if "resident" not in who:
                answered = loop.await_answer_after(ready)
                tell("killed_daemon", f"{who}: the first answer after READY", max(0.0, answered - ready))
        lost = loops["the Python client with a resident tensor"]
        wait_until("the tensor is known to be lost", lambda: lost.codes["FAILED_PRECONDITION"] > 0)
        codes = {who: loop.end() for who, loop in loops.items()}
        for who, counts in codes.items():
            tell("killed_daemon", f"{who}: {dict(counts)}")
        check(set(codes["a plain client"]) == {"OK", "UNAVAILABLE"}, "a plain client sees OK and UNAVAILABLE")
        check(set(codes["the Python client"]) == {"OK"}, "the Python client's retries hide it")
        check(set(codes["the Python client with shared memory"]) == {"OK"}, "they hide it with shared memory too")
        check(set(codes["the Python client with a resident tensor"]) == {"OK", "FAILED_PRECONDITION"},
              "a resident tensor of the process before is FAILED_PRECONDITION")
        check(np.array_equal(array[5], np.arange(5 * 512, 6 * 512)), "what lies in shared memory stays")
        resident.release()
        again = holding.put(x)
        check(code_of(lambda: holding.transpose(again)) == "OK", "a tensor that is put again can be used")
        stack.pop_all().close()
        check(second.process.poll() is not None, "the daemon has ended")


def stopped_daemon(scene):
    """SIGSTOP for five seconds, as of a machine that is suspended."""
    with scene.daemon() as daemon, warpline.connect(daemon.address, max_retries=0) as client:
        transpose_of(client)
        descriptors = daemon.descriptors()
        short, long = client.put(np.ones((4, 4), "f4"), ttl=2), client.put(np.ones((4, 4), "f4"), ttl=600)
        id = short.release()
        slow = slow_program(300, 20, "reference")
        with grpc.insecure_channel(daemon.address, OPTIONS) as channel:
            run = channel.unary_unary(KERNELS + "Run")
            running = run.future(slow, timeout=60)
            wait_until("it runs", lambda: daemon.metrics().total("warpline_lane_busy") == 1)
            os.kill(daemon.pid, signal.SIGSTOP)
            begun = time.monotonic()
            impatient, patient = run.future(slow, timeout=2), run.future(slow, timeout=60)
            check(impatient.exception().code().name == "DEADLINE_EXCEEDED", "the client tells of a deadline")
            tell("stopped_daemon", "a call with a deadline of 2 s: DEADLINE_EXCEEDED", time.monotonic() - begun)
            check(daemon.http("/healthz", 1)[0] == 0, "health is not answered meanwhile")
            time.sleep(max(0, begun + 5 - time.monotonic()))
            os.kill(daemon.pid, signal.SIGCONT)
            woken = time.monotonic()
            transpose_of(client, timeout=30)
            tell("stopped_daemon", "the first answer after SIGCONT", time.monotonic() - woken)
            check(running.exception() is None and patient.exception() is None, "what was running or waiting ends with OK")
        check(code_of(lambda: client.tensor(id)) == "NOT_FOUND", "a lease that ended meanwhile has ended")
        check(code_of(lambda: client.transpose(long)) == "OK", "another has not")
        long.drop()
        tell("stopped_daemon", "calls with longer deadlines: OK; leases go on meanwhile; the tensor with 2 s: NOT_FOUND")
        await_rest(daemon, descriptors)
        check(daemon.stop() == 0, "the daemon ends well")


def stop_in_a_response(scene, daemon, address):
    """A client process that is stopped while results are on their way to it."""
    for _ in range(10):
        process = scene.client("reader", address)
        check(process.stdout.readline() == "asking\n", "the client asks")
        wait_until("there is a result", lambda: daemon.metrics().total("warpline_requests_total") > 0
                   and daemon.metrics().total('warpline_pinned_bytes{state="used"}') > 0)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        if daemon.metrics().total('warpline_pinned_bytes{state="used"}') > 0:
            return process
        # It has read all of them already.
        process.kill()
        process.wait()
    raise SystemExit("the client is always faster than its stop")


def stopped_client(scene):
    """SIGSTOP of a client that reads results of 4 x 32 MiB over TCP."""
    with scene.daemon() as daemon:
        check(serves(daemon.address), "the daemon serves")
        descriptors = daemon.descriptors()
        stopped = time.monotonic()
        with ending(stop_in_a_response(scene, daemon, daemon.address)) as process:
            held = daemon.metrics().total('warpline_pinned_bytes{state="used"}') / MIB
            check(serves(daemon.address), "others are served")
            wait_until("its results are given up", lambda: not daemon.metrics().work())
            tell("stopped_client", f"{held:.0f} MiB of staging memory held, with a send timeout of 2 s",
                 time.monotonic() - stopped)
            await_rest(daemon, descriptors)
            tell("stopped_client", "its connection is closed", time.monotonic() - stopped)
            process.send_signal(signal.SIGCONT)
            codes = process.stdout.readline().split()
            tell("stopped_client", f"the client, when it goes on: {' '.join(codes)}; its next call: {codes[-1]}")
            check(set(codes[:-1]) <= {"OK", "CANCELLED", "UNAVAILABLE"} and codes[-1] == "OK", f"{codes} are as expected")
        check(daemon.stop() == 0, "the daemon ends well")


def stopped_unix_client(scene):
    """The same over a unix socket, on which nothing but the end of the client tells that it is gone."""
    address = f"unix:{scene.folder}/socket"
    with scene.daemon(listen=address) as daemon:
        check(serves(address), "the daemon serves")
        descriptors = daemon.descriptors()
        with ending(stop_in_a_response(scene, daemon, address)) as process:
            time.sleep(6)  # three times the send timeout
            held = daemon.metrics().total('warpline_pinned_bytes{state="used"}') / MIB
            tell("stopped_unix_client", f"after 6 s, with --send-timeout=2s, it holds {held:.0f} MiB of staging memory")
            check(held > 0, "it holds memory for as long as it stands still, as docs/faults.md says")
            check(serves(address), "others are served")
            killed = time.monotonic()
            process.kill()
            await_rest(daemon, descriptors)
            tell("stopped_unix_client", "all of it is free after the end of the client", time.monotonic() - killed)
        check(daemon.stop() == 0, "the daemon ends well")
