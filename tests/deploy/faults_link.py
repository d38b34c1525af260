"""A link that is cut: packets are lost without a word, as of a cable behind the next switch."""

import contextlib
import json
import os
import subprocess
import time

from daemon import wait_until
from faults import Skipped, check, ending, serves, tell

DAEMON, CLIENT = "10.77.1.1", "10.77.2.1"
IN_NET = ["unshare", "--net"]


def run(*command, of=None):
    """In the network namespace of that process; of None: in ours."""
    inside = ["nsenter", f"--target={of}", "--net"] if of else []
    done = subprocess.run([*inside, *command], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skipped(f"{' '.join(command)}: {done.stderr.strip()}")


class Router:
    """A network namespace between ours and that of another process, with a link to each. While it does not forward,
    the two know nothing of it."""

    def __init__(self, client_pid):
        self._process = subprocess.Popen([*IN_NET, "sleep", "600"])
        pid = str(self._process.pid)
        wait_until("there is another namespace", lambda: os.readlink(f"/proc/{pid}/ns/net")
                   != os.readlink("/proc/self/ns/net"))
        for end, other, mine, theirs in [(None, "10.77.1.2", "da", "dr"), (client_pid, "10.77.2.2", "ca", "cr")]:
            address = DAEMON if end is None else CLIENT
            run("ip", "link", "add", mine, "type", "veth", "peer", "name", theirs)
            run("ip", "link", "set", theirs, "netns", pid)
            if end is not None:
                run("ip", "link", "set", mine, "netns", end)
            run("ip", "addr", "add", f"{other}/24", "dev", theirs, of=pid)
            run("ip", "link", "set", theirs, "up", of=pid)
            run("ip", "addr", "add", f"{address}/24", "dev", mine, of=end)
            for device in ("lo", mine):
                run("ip", "link", "set", device, "up", of=end)
            run("ip", "route", "add", "default", "via", other, of=end)
        self.forward(True)

    def forward(self, on):
        run("sh", "-c", f"echo {int(on)} >/proc/sys/net/ipv4/ip_forward", of=str(self._process.pid))

    def end(self):
        self._process.kill()
        self._process.wait()


def cut_link(scene):
    """With calls of all kinds in progress. The daemon's --send-timeout is 2 s."""
    process = scene.client("distant", prefix=IN_NET)
    with ending(process), contextlib.ExitStack() as stack:
        check(process.stdout.readline() == "here\n", "the client is there")
        router = Router(str(process.pid))
        stack.callback(router.end)
        daemon = stack.enter_context(scene.daemon("--insecure", listen=f"{DAEMON}:0"))

        def order(*words):
            print(*words, file=process.stdin, flush=True)

        check(serves(daemon.address), "it serves here")
        descriptors = daemon.descriptors()
        order("begin", daemon.address)
        check(process.stdout.readline() == "begun\n", "the calls are in progress")
        busy = daemon.metrics()
        held = daemon.descriptors() - descriptors
        router.forward(False)
        cut = time.monotonic()
        order("cut")
        check(serves(daemon.address), "others are served")
        wait_until("its work is over", lambda: not daemon.metrics().work())
        calls = busy.total("warpline_requests_in_flight")
        tell("cut_link", f"the daemon, with {calls:.0f} calls of the client in progress: no jobs and no memory of theirs",
             time.monotonic() - cut)
        wait_until("its connections are closed", lambda: daemon.descriptors() <= descriptors)
        tell("cut_link", f"the daemon has let go of {held} descriptors", time.monotonic() - cut)
        # Longer than the client's keepalive and its short deadline.
        time.sleep(max(0, cut + 8 - time.monotonic()))
        router.forward(True)
        order("healed")
        # Where nothing asks for an answer, the client hears of it once the link is back, if its TCP has something left
        # to send, and otherwise not before its deadline.
        late = {"UNAVAILABLE", "DEADLINE_EXCEEDED"}
        expected = {"deadline": {"DEADLINE_EXCEEDED"}, "keepalive": {"UNAVAILABLE"}, "neither": late, "uploading": late,
                    "reading": late, "call after the cut": late}
        ended = json.loads(process.stdout.readline())
        for name, (code, seconds, after) in ended.items():
            tell("cut_link", f"client, {name}: {code}, then on the same channel {' '.join(after)}", seconds)
        check(calls >= 3, "calls were in progress")
        for name, (code, seconds, after) in ended.items():
            # Where there are lanes for all, these may have been answered before.
            in_time = name in ("reading", "uploading") and code == "OK" and seconds < 0
            check(in_time or code in expected[name], f"{name} ends with one of {expected[name]}")
            check(after[-1] == "OK" and set(after[:-1]) <= {"UNAVAILABLE"}, f"after {name} the channel is good again")
        wait_until("nothing is left", lambda: not daemon.metrics().work())
        check(daemon.stop() == 0, "the daemon ends well")
