"""The load under which the dashboard is pictured: two owners, each with several programs, on one daemon.

All of it is made by the command line client, so that what the panels show has gone through the whole server.
"""

import math
import os
import random
import subprocess
import time

import numpy

from daemon import Daemon
from edge import free_port

BURST_SECONDS = 110
# A bench process has one rate, so that rates change in steps.
STEP_SECONDS = 8
MAX_JOBS = 48
OWNERS = ("alice", "bob")
# Owner, whether it shares memory, requests per second on average, the seconds in which they rise and fall, and what is
# asked for. Two cores that do other things too are to be about half busy.
PROGRAMS = [
    ("alice", False, 60, 310, "--op transpose --shape 512x512"),
    ("alice", False, 30, 170, "--op gemm --shape 256x256x256"),
    ("alice", False, 80, 230, "--op reduce --shape 512x512 --axes 1"),
    ("alice", True, 4, 130, "--op transpose --shape 2048x2048 --transport shm"),
    ("bob", False, 6, 190, "--op gemm --shape 512x512x512 --resident b"),
    ("bob", True, 12, 260, "--op reduce --shape 1024x1024 --reduce-op logsumexp --axes 1 --transport shm"),
    ("bob", False, 20, 90, "--op transpose --shape 256x256 --dtype u8"),
]
BURST = "--op gemm --shape 384x384x384 --concurrency 96 --requests 300"
# Longer on the device than its deadline allows.
TOO_LATE = "--op gemm --shape 1024x1024x1024 --deadline 10ms --requests 1"
CHAIN = "reduce(gemm(x, transpose(x)), op=sum, axes=[1])"


class Load:
    """A daemon on ports that stay the same over restarts, and its clients. They end with the `with` block."""

    def __init__(self, bin_dir, folder, flags):
        self.cli, self.folder = os.path.join(bin_dir, "warpline"), folder
        self.warplined = os.path.join(bin_dir, "warplined")
        self.server, self.metrics = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self.flags = [f"--max-jobs={MAX_JOBS}", f"--tokens={folder}/tokens.toml", *flags]
        self.token = self.make_tokens()
        numpy.save(f"{folder}/x.npy", numpy.random.rand(300, 400).astype("f4"))
        self.chance = random.Random(1)
        self.clients, self.daemon = [], self.start_daemon()

    def make_tokens(self):
        """Returns the token for /metrics."""
        with open(f"{self.folder}/tokens.toml", "w") as tokens:
            for owner in ("prometheus", *OWNERS):
                made = subprocess.run([self.warplined, f"--new-token={owner}"], capture_output=True, text=True, check=True)
                tokens.write(made.stdout)
                if owner == "bob":
                    tokens.write("jobs = 8\n")
                with open(f"{self.folder}/{owner}.token", "w") as file:
                    file.write(made.stderr)
        with open(f"{self.folder}/prometheus.token") as file:
            return file.read().strip()

    def start_daemon(self):
        return Daemon(self.warplined, *self.flags, log=f"{self.folder}/warplined.log", token=self.token,
                      listen=f"{self.server},unix:{self.folder}/socket", metrics=self.metrics)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.kill()
            client.wait()
        self.daemon.__exit__()

    def call(self, owner, local, command):
        address = f"unix:{self.folder}/socket" if local else self.server
        self.clients.append(subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", self.cli, "--server", address, "--token-file",
             f"{self.folder}/{owner}.token", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def bench(self, owner, local, options, *more):
        self.call(owner, local, ["bench", *options.split(), "--warmup", "0s", *more])

    def step(self, now):
        """The programs for one step, `now` seconds after the beginning."""
        self.clients = [client for client in self.clients if client.poll() is None]
        for owner, local, rate, period, options in PROGRAMS:
            wave = (1 + 0.4 * math.sin(2 * math.pi * now / period)) * self.chance.uniform(0.85, 1.15)
            self.bench(owner, local, options, "--rate", f"{rate * wave:.1f}", "--concurrency", "4", "--duration",
                       f"{STEP_SECONDS}s")
        self.bench("bob", False, TOO_LATE)

    def run(self, seconds):
        """Returns after so long. The daemon is restarted when two thirds of the time are over."""
        begun = time.monotonic()
        next_step, next_burst, restart = 0, min(BURST_SECONDS, seconds / 3), seconds * 2 / 3
        while (now := time.monotonic() - begun) < seconds:
            if now >= restart:
                restart = math.inf
                self.daemon.stop()
                self.daemon = self.start_daemon()
            if now >= next_step:
                next_step += STEP_SECONDS
                self.step(now)
            if now >= next_burst:
                next_burst += BURST_SECONDS
                for owner in OWNERS:
                    self.bench(owner, False, BURST)
            self.call("alice", False, ["run", "-e", CHAIN, f"x={self.folder}/x.npy", "-o", os.devnull])
            time.sleep(1)
