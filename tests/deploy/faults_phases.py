"""kill -9 in each phase of a call: of the process that makes it, and of the daemon."""

import asyncio
import contextlib
import threading
import time

import numpy as np

import warpline
from daemon import wait_until
from faults import MIB, await_rest, check, code_of, ending, free_port, serves, tell, transpose_of
from faults_gate import Gate

# Far more than any call takes to notice that the daemon is gone, and less than its own deadline.
BOUND_SECONDS, CALL_SECONDS = 60, 300
TTL_SECONDS = 2
# The direction whose bytes stop half-way, and how many pass before.
PARTS = {"connecting": ("up", 10), "put": ("up", 8 * MIB), "request": ("up", 8 * MIB), "result": ("down", 8 * MIB),
         "get": ("down", 8 * MIB)}
PHASES = [*PARTS, "waiting", "sharing"]
# The metrics of the daemon that are not zero then.
SIGNS = {"put": "warpline_resident_tensors", "request": "warpline_requests_in_flight", "get": "warpline_resident_tensors",
         "result": 'warpline_pinned_bytes{state="used"}', "waiting": "warpline_lane_busy",
         "sharing": "warpline_lane_busy"}


def large():
    """48 MiB: less than --max-inline-bytes allows."""
    return np.ones((3072, 4096), "f4")


def slow():
    """An expression that takes seconds to compute, and has megabytes to send and to receive."""
    program = warpline.program()
    a = tensor = program.input(np.full((400, 400), 1 / 400))
    for _ in range(60):
        tensor = tensor.gemm(a, variant="reference")
    return tensor


def call_of(phase, client):
    """A call that comes to this phase: what a client of either kind returns for it."""
    if phase == "put":
        return client.put(np.ones(16 * MIB, "f4"), ttl=TTL_SECONDS)
    if phase == "request":
        return client.reduce(large(), "sum")
    if phase == "result":
        return client.gemm(np.ones((3072, 1), "f4"), np.ones((1, 4096), "f4"))
    if phase in ("waiting", "sharing"):
        return client.run(slow())
    return client.transpose(np.ones((512, 512), "f4"))


def get(client):
    return client.put(np.ones(16 * MIB, "f4"), ttl=TTL_SECONDS).numpy()


async def get_async(client):
    return await (await client.put(np.ones(16 * MIB, "f4"), ttl=TTL_SECONDS)).numpy()


def options_of(phase, regions):
    """The options of a client for this phase, with retries off. regions: the path of the daemon's region socket."""
    shared = {"shared_memory": "always", "regions": regions} if phase == "sharing" else {"shared_memory": "never"}
    return {"max_retries": 0, "own_connection": True, "timeout": CALL_SECONDS, **shared}


class Blocking:
    """A client whose calls wait, and one call of it on a thread. Public: code, how it has ended."""

    def __init__(self, phase, address, regions):
        self.code, self._phase, self._options = "", phase, options_of(phase, regions)
        self.client = self._connect(address)
        self._thread = threading.Thread(target=self._call, daemon=True)

    def _connect(self, address):
        return warpline.connect(address, **self._options)

    def _make(self, phase):
        return get(self.client) if phase == "get" else call_of(phase, self.client)

    def _call(self):
        self.code = code_of(lambda: self._make(self._phase))

    def begin(self):
        self._thread.start()

    def end(self):
        """False if the call still has not ended."""
        self._thread.join(BOUND_SECONDS)
        return not self._thread.is_alive()

    def small_call(self):
        return code_of(lambda: transpose_of(self.client, 512))

    def close(self):
        self.client.close()


class Awaited(Blocking):
    """The same with a client for asyncio, whose loop runs on a thread of its own."""

    def _connect(self, address):
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

        async def connect():
            return warpline.aio.connect(address, **self._options)

        return self._run(connect())

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _make(self, phase):
        return self._run(get_async(self.client) if phase == "get" else call_of(phase, self.client))

    def small_call(self):
        return code_of(lambda: self._make("small"))

    def close(self):
        self._run(self.client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)


def stop_in(phase, gate):
    if phase in PARTS:
        gate.stop_after(*PARTS[phase])


def await_phase(phase, gate, daemon):
    """Returns when a call is there, and the daemon has begun with it."""
    if phase in PARTS:
        check(gate.stopped.wait(BOUND_SECONDS), f"the bytes of the phase {phase} have stopped half-way")
    if phase in SIGNS:
        wait_until(f"the daemon has begun with {phase}", lambda: daemon.metrics().total(SIGNS[phase]) > 0)


def places_of(scene):
    return {"listen": f"127.0.0.1:{free_port()},unix:{scene.folder}/socket", "metrics": f"127.0.0.1:{free_port()}",
            # So that nothing but the kill ends a call that stands still.
            "send_timeout": "120s"}


def regions_of(scene):
    return f"{scene.folder}/socket.regions"


def killed_client_phases(scene):
    """kill -9 of a client's process, in each phase of a call, and while it holds tensors and shared memory."""
    with scene.daemon(**places_of(scene)) as daemon:
        check(serves(daemon.address), "the daemon serves")
        descriptors = daemon.descriptors()
        for phase in [*PHASES, "holding"]:
            with Gate(daemon.address) as gate:
                stop_in(phase, gate)
                with ending(scene.client("in_phase", phase, gate.address, regions_of(scene))) as process:
                    if phase == "holding":
                        check(process.stdout.readline() == "there\n", "the client holds what it shall")
                        held = daemon.metrics().work()
                        check({"warpline_resident_tensors", "warpline_regions"} <= held.keys(), f"{held} are held")
                    else:
                        await_phase(phase, gate, daemon)
                    check(serves(daemon.address), "others are served meanwhile")
                    check(process.poll() is None, "the client is still there")
                    process.kill()
                    process.wait()
                    rest = await_rest(daemon, descriptors)
                    tell("killed_client_phases", f"{phase}: nothing is left, with leases of {TTL_SECONDS} s", rest)
            check(serves(daemon.address), "others are served afterwards")
        check(daemon.stop() == 0, "the daemon ends well")


def killed_daemon_phases(scene):
    """kill -9 of the daemon, in each phase of a call that is not tried again; then one on the same addresses."""
    with contextlib.ExitStack() as stack:
        places = places_of(scene)
        daemon = stack.enter_context(scene.daemon(**places))
        for kind in (Blocking, Awaited):
            for phase in PHASES:
                with Gate(daemon.address) as gate, contextlib.closing(
                        kind(phase, gate.address, regions_of(scene))) as caller:
                    stop_in(phase, gate)
                    caller.begin()
                    await_phase(phase, gate, daemon)
                    check(caller.code == "", "the call is in progress")
                    killed = time.monotonic()
                    daemon.kill()
                    check(caller.end(), f"{phase}: the call ends within {BOUND_SECONDS} s")
                    tell("killed_daemon_phases", f"{kind.__name__}, {phase}: {caller.code}", time.monotonic() - killed)
                    check(caller.code == "UNAVAILABLE", f"{phase}: {caller.code} is UNAVAILABLE")
                    check(caller.small_call() == "UNAVAILABLE", f"{phase}: there is no daemon for the next call")
                    gate.open()
                    daemon = stack.enter_context(scene.daemon(**places))
                    wait_until(f"{phase}: the same client gets answers again", lambda: caller.small_call() == "OK")
        check(daemon.stop() == 0, "the daemon ends well")
