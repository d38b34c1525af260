"""One daemon under overload by clients of all kinds, some of which are killed: its results are right, it counts every
call, and in the end it has nothing left of anybody.

    soak_test.py --warplined PATH [--seconds N] [--seed N] [--backend cpu|cuda] [--python DIR] [--summary FILE]

The clients (soak_clients.py) are processes that send small and large requests, long products which they cancel,
resident tensors, arrays in shared memory, and nonsense; some read no results. One of them is killed every few seconds.
After a warm-up they pause, and what the daemon then has is what it must have at the end.

Half a minute by default; an hour, whose memory says more, is run by hand:

    tests/deploy/soak_test.py --warplined build/release/bin/warplined --seconds 3600 --summary soak.json

--seed decides what is sent and who is killed; when it happens is up to the machine. --python: a folder that
python_client.py has made, for where there is no protoc. --summary: where figures are written as JSON, by default
nowhere. Exits with 77 where gRPC or NumPy for Python is missing.
"""

import argparse
import collections
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time

from daemon import PATIENCE_SECONDS, Daemon, environment, wait_until
from dashboard import ROOT

try:
    import google.protobuf  # noqa: F401, for the clients
    import grpc  # noqa: F401
    import numpy as np  # noqa: F401

    import soak_ledger
    from soak_verdict import Verdict
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
import python_client
import soak_watch

MIB = 1 << 20
STAGING_BYTES = 128 * MIB
# Small, so that a few clients are too many for it. The send timeout is shorter than some connections go unread.
FLAGS = ["--max-inline-bytes=32M", "--max-jobs=24",
         "--resident-bytes=256M", "--region-bytes=256M", "--send-timeout=2s", "--max-connections=500"]
QUOTAS = {"alice": "weight = 2\n", "bob": "jobs = 20\n", "carol": 'resident-bytes = "96M"\nregion-bytes = "160M"\n'}
# Threads of each kind of client.
KINDS = {"small": 4, "large": 2, "products": 2, "unread": 2, "tensors": 2, "regions": 2, "malformed": 1}
# Seconds between two ends of clients.
KILL_EVERY = (1, 4)


def make_tokens(path, folder):
    """The tokens of the owners, whose file is written to `folder`."""
    tokens = {}
    with open(f"{folder}/tokens.toml", "w") as file:
        for name, quotas in QUOTAS.items():
            made = subprocess.run([path, f"--new-token={name}"], capture_output=True, text=True, check=True,
                                  env=environment(path))
            tokens[name] = made.stderr.strip()
            file.write(made.stdout + quotas)
    return tokens


class Fleet:
    """The processes of the clients. Public: ledgers, the paths of all that have been."""

    def __init__(self, daemon, folder, settings, seed):
        self.ledgers, self.killed = [], 0
        self._daemon = daemon
        self._folder, self._seed = folder, seed
        self._settings = f"{folder}/settings.json"
        with open(self._settings, "w") as file:
            json.dump(settings, file)
        self._processes = {}
        self._rng = random.Random(f"fleet {seed}")

    def _start(self, kind):
        number = len(self.ledgers)
        ledger, log = f"{self._folder}/ledger{number}", f"{self._folder}/client{number}.log"
        self.ledgers.append(ledger)
        soak_ledger.create(ledger)
        command = [sys.executable, "-B", str(ROOT / "tests/deploy/soak_clients.py"), kind, f"{self._seed}.{number}",
                   self._settings, ledger]
        with open(log, "wb") as out:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out)
        self._processes[kind] = (process, log)

    def load(self, seconds):
        """Has all of them at work for so long, kills some of them, and ends them. Exits if one ends by itself."""
        for kind in KINDS:
            self._start(kind)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(min(self._rng.uniform(*KILL_EVERY), max(0, end - time.monotonic())))
            self._check()
            kind = self._rng.choice(list(KINDS))
            process, _ = self._processes[kind]
            process.kill()
            process.wait()
            process.stdin.close()
            self.killed += 1
            self._start(kind)
        self._check()
        for process, _ in self._processes.values():
            process.stdin.close()
        for kind, (process, log) in self._processes.items():
            try:
                code = process.wait(timeout=PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self._fail(kind, "does not end", log)
            if code != 0:
                self._fail(kind, f"has ended with {code}", log)
        self._processes = {}

    def _check(self):
        if self._daemon.process.poll() is not None:
            self.end()
            sys.exit("\n".join(["the daemon has ended by itself:", *self._daemon.log_lines()[-20:]]))
        for kind, (process, log) in self._processes.items():
            if process.poll() is not None:
                self._fail(kind, f"has ended by itself with {process.returncode}", log)

    def _fail(self, kind, what, log):
        with open(log, errors="replace") as said:
            print(said.read(), file=sys.stderr)
        self.end()
        sys.exit(f"a client of the kind {kind} {what}")

    def end(self):
        """Kills those that there still are."""
        for process, _ in self._processes.values():
            process.kill()
            process.wait()


def rest(daemon):
    """Waits until the daemon has nothing to do, and its descriptors and threads have been the same for four seconds, in
    which it gives free memory back too. Returns its status."""
    wait_until(f"nothing is in progress: {daemon.metrics().work()}", lambda: not daemon.metrics().work())
    found = collections.deque(maxlen=40)

    def steady():
        status = daemon.status()
        found.append((status["descriptors"], status["threads"]))
        time.sleep(0.1)
        return len(found) == found.maxlen and len(set(found)) == 1

    wait_until("its descriptors and threads are the same for four seconds", steady)
    return daemon.status() | {"own": soak_watch.own_bytes(daemon, STAGING_BYTES)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--warplined", required=True)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backend", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--python")
    parser.add_argument("--summary")
    arguments = parser.parse_args()
    warm_up = min(60, max(5, arguments.seconds / 6))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="soak"))
        python = python_client.folder_of(folder, arguments.python)
        tokens, access_log = make_tokens(arguments.warplined, folder), f"{folder}/access.log"
        daemon = stack.enter_context(Daemon(
            arguments.warplined, f"--backend={arguments.backend}", f"--tokens={folder}/tokens.toml",
            f"--access-log={access_log}", *FLAGS, listen=f"127.0.0.1:0,unix:{folder}/socket", token=tokens["alice"],
            log=f"{folder}/daemon.log"))
        fleet = Fleet(daemon, folder, {"python": python, "bench": str(ROOT / "tests/bench"), "tokens": tokens,
                               "kinds": KINDS, "address": daemon.address, "port": daemon.port,
                               "unix": f"unix:{folder}/socket",
                               "metrics_port": int(daemon.metrics_address.rpartition(":")[2]),
                               "backend": arguments.backend}, arguments.seed)
        stack.callback(fleet.end)
        begun = time.monotonic()
        fleet.load(warm_up)
        before = rest(daemon)
        watch = soak_watch.Watch(daemon, STAGING_BYTES)
        fleet.load(arguments.seconds - warm_up)
        watch.end()
        after = rest(daemon)
        # The last lines of the access log come a little later.
        time.sleep(1)
        metrics, verdict = daemon.metrics(), Verdict()
        verdict.figures["killed"] = fleet.killed
        verdict.demand(watch.failed is None, watch.failed)
        verdict.judge_memory(watch.samples)
        verdict.judge_rest(before, after)
        verdict.judge_counts(soak_ledger.Totals(fleet.ledgers), metrics)
        verdict.judge_logs(daemon, access_log, metrics)
        code = daemon.stop()
        verdict.demand(code == 0, f"the daemon has exited with {code}")
        verdict.print_table()
        print(f"{time.monotonic() - begun:.0f} s")
        if arguments.summary:
            with open(arguments.summary, "w") as file:
                json.dump(vars(arguments) | verdict.figures | {"faults": verdict.faults}, file, indent=1)
        if verdict.faults:
            sys.exit("\n".join(verdict.faults))


main()
