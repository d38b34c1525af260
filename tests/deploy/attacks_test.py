"""What a server of HTTP/2 is attacked with, and what others notice: the table of docs/attacks.md.

    attacks_test.py --warplined PATH [--seconds S] [--list] [ATTACK...]

Each attack of attacks.py is made twice: on the daemon, and on HAProxy with deploy/haproxy/edge.cfg in front of it.
Meanwhile another client, with a token of its own, makes small calls. An attack has failed if each of them is answered
rightly within MOST_SECONDS, and half of them within TYPICAL_SECONDS, nobody's memory grows by more than BOUND_MIB, and
afterwards the daemon holds nothing of anybody and has no more descriptors than before. Those that gRPC 1.51 does not
withstand are named in HOLES: there the daemon is not judged, and the attack ends when its memory has grown by HOLE_MIB.
77 is the exit code where HAProxy, openssl or Python's gRPC is missing.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from daemon import Daemon, wait_until
from dashboard import ROOT
from edge import Proxy, certificate, make_tokens, skip_without_tools

BOUND_MIB, HOLE_MIB = 500, 700
HOLES = {"continuations", "tiny_fields", "huge_string", "unbounded_calls"}
# Of the metrics port, which is not published through the proxy.
ON_METRICS = {"metrics_clients"}
# Flags of small bounds, so that what jobs may take by right stays below BOUND_MIB.
FLAGS = ["--backend=cpu", "--max-inline-bytes=4M", "--pinned-bytes=64M", "--grpc-memory-bytes=64M",
         "--send-timeout=2s", "--max-job-bytes=64M"]
CALL_SECONDS, PATIENCE_SECONDS = 10, 30
# The longest call of the other client, and the median of all: for a machine on which other tests run.
MOST_SECONDS, TYPICAL_SECONDS = 5, 0.5
# What must at least have happened for it to count as an attack.
LEAST_SENT, LEAST_CONNECTIONS = 20000, 30


def rss_mib(pids):
    """Of processes, those that have ended left out."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status") as status:
                total += int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) / 1024
        except (FileNotFoundError, TypeError):
            pass
    return total


class Victim(threading.Thread):
    """A client that means no harm: one small call after the other, on one connection, and a new connection each
    second. Public: latencies in seconds, of calls that went well; failures."""

    def __init__(self, address, ca, token):
        super().__init__(daemon=True)
        self.latencies, self.failures = [], []
        self._address, self._ca, self._token, self._ended = address, ca, token, threading.Event()
        self.start()

    def run(self):
        try:
            while not self._ended.is_set():
                self.call_for_a_second()
        except Exception as error:  # whatever it is, nobody was served
            self.failures.append(repr(error))

    def connect(self):
        import grpc
        # The first options keep the channel from sharing the connection of another one.
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
        if not self._ca:
            return grpc.insecure_channel(self._address, options)
        with open(self._ca, "rb") as ca:
            return grpc.secure_channel(self._address, grpc.ssl_channel_credentials(ca.read()),
                                       [*options, ("grpc.ssl_target_name_override", "localhost")])

    def call_for_a_second(self):
        import grpc
        x = bytes(range(16))
        # A TransposeRequest of 2 x 2 f32, and what must be in the answer.
        request = b"\x0a\x18\x08\x0c\x12\x02\x02\x02\x42\x10" + x + b"\x12\x02\x01\x00"
        answer = x[:4] + x[8:12] + x[4:8] + x[12:]
        with self.connect() as channel:
            method = channel.unary_unary("/warpline.v1.KernelService/Transpose")
            renewed = time.monotonic() + 1
            while time.monotonic() < renewed and not self._ended.is_set():
                begun = time.monotonic()
                try:
                    right = answer in method(request, timeout=CALL_SECONDS,
                                             metadata=[("authorization", f"Bearer {self._token}")])
                    if not right:
                        self.failures.append("a wrong result")
                except grpc.RpcError as error:
                    self.failures.append(f"{error.code().name}: {error.details()}")
                self.latencies.append(time.monotonic() - begun)
                time.sleep(0.01)

    def end(self):
        self._ended.set()
        self.join(2 * CALL_SECONDS)
        if self.is_alive():
            self.failures.append("its last call does not end")

    def complaints(self):
        """What it did not get."""
        said = [f"the victim: {failure}" for failure in sorted(set(self.failures))[:3]]
        if not self.latencies or statistics.median(self.latencies) > TYPICAL_SECONDS:
            said.append(f"half of the victim's calls took more than {TYPICAL_SECONDS} s")
        if max(self.latencies, default=0) > MOST_SECONDS:
            said.append(f"a call of the victim took more than {MOST_SECONDS} s")
        return said


class HttpVictim(Victim):
    """The same of the metrics port."""

    def __init__(self, daemon):
        self._server = daemon
        super().__init__("", "", "")

    def call_for_a_second(self):
        begun = time.monotonic()
        for path in ("/healthz", "/metrics"):
            if self._server.http(path, CALL_SECONDS)[0] != 200:
                self.failures.append(f"no {path}")
        self.latencies.append(time.monotonic() - begun)
        time.sleep(0.01)


class Attack:
    """The process that attacks, and what it says."""

    def __init__(self, name, address, ca, token):
        command = [sys.executable, "-B", str(ROOT / "tests/deploy/attacks.py"), name, address, "--token", token]
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command, *(["--ca", ca] if ca else [])],
                                        stdout=subprocess.PIPE, text=True)
        self.connections = self.cuts = self.sent = 0
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.connections, self.cuts, self.sent = map(int, line.split())

    def end(self):
        """Returns whether it was still there."""
        lasted = self.process.poll() is None
        self.process.kill()
        self.process.wait()
        self.reader.join()
        return lasted


def make(name, daemon, proxy, folder, seconds):
    """Attacks the proxy, or the daemon if there is none. Prints a row of the table; returns what is not as it must be."""
    hole = proxy is None and name in HOLES
    on_metrics = name in ON_METRICS
    pids = [daemon.pid] + ([proxy.process.pid] if proxy else [])
    address = proxy.address if proxy else daemon.metrics_address if on_metrics else daemon.address
    ca = f"{folder}/ca.crt" if proxy else ""
    wait_until("the daemon is at rest", lambda: not daemon.metrics().work())
    descriptors, before = daemon.descriptors(), [rss_mib([pid]) for pid in pids]
    log_before = os.path.getsize(daemon.log)
    victim = HttpVictim(daemon) if on_metrics else Victim(address, ca, daemon.token)
    wait_until("the victim has had answers", lambda: len(victim.latencies) >= 3)
    victim.latencies.clear()
    attack = Attack(name, address, ca, f"{folder}/attacker")
    peak, begun = before, time.monotonic()
    wait_until("the attack has begun", lambda: attack.sent > 0 or attack.connections > 0 or attack.cuts > 0)
    while time.monotonic() < begun + seconds:
        time.sleep(0.02)
        now = [rss_mib([pid]) for pid in pids]
        peak = [max(one, other) for one, other in zip(peak, now)]
        if hole and now[0] - before[0] > HOLE_MIB:
            break
    lasted = time.monotonic() - begun
    wrong = [] if attack.end() else ["the attack ended by itself"]
    victim.end()
    grown = [most - least for most, least in zip(peak, before)]
    if attack.sent < LEAST_SENT and attack.connections < LEAST_CONNECTIONS:
        wrong.append(f"it was no attack: {attack.connections} connections, {attack.sent} bytes")
    if not hole:
        wrong += victim.complaints()
        wrong += [f"memory of process {pid} grew by {mib:.0f} MiB" for pid, mib in zip(pids, grown) if mib > BOUND_MIB]
    if daemon.process.poll() is not None:
        sys.exit(f"{name}: the daemon has ended with {daemon.process.returncode}")
    # What the attackers held has to come back, also where the attack did harm.
    rest = wait_until(f"{name}: the daemon has nothing left", lambda: not daemon.metrics().work()
                      and daemon.descriptors() <= descriptors + 4, PATIENCE_SECONDS)
    with open(daemon.log, errors="replace") as log:
        log.seek(log_before)
        said = log.read()
    if any(not re.match(r"time=\d{4}-\S+ level=\w+ msg=", line) for line in said.splitlines()):
        wrong.append("a line of the log is forged")
    if len(said) > 100 * 1024:
        wrong.append(f"{len(said) / 1024:.0f} KiB of log")
    row = [name, "HAProxy" if proxy else "daemon", f"{attack.sent / 2**20:.0f}", attack.connections, attack.cuts,
           f"{lasted:.1f}", *[f"{mib:.0f}" for mib in grown], *([""] if not proxy else []), len(victim.latencies),
           len(victim.failures), f"{statistics.median(victim.latencies or [0]) * 1e3:.1f}",
           f"{max(victim.latencies or [0]) * 1e3:.0f}", f"{rest:.1f}", "not judged" if hole else "; ".join(wrong)]
    print("| " + " | ".join(map(str, row)) + " |", flush=True)
    return [] if hole else [f"{name} on {row[1]}: {what}" for what in wrong]


def main():
    from attacks import ATTACKS  # beside this file
    parser = argparse.ArgumentParser(description="The attacks of docs/attacks.md, on the daemon and on HAProxy.")
    parser.add_argument("--warplined", help="the program to attack")
    parser.add_argument("--seconds", type=float, default=5, help="of each attack; default: 5")
    parser.add_argument("--list", action="store_true", help="says what each attack does, and ends")
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help="those to make; default: all")
    arguments = parser.parse_args()
    if arguments.list:
        for name, attack in ATTACKS.items():
            print(f"{name}: {' '.join(attack.__doc__.split())}")
        return
    if not arguments.warplined:
        parser.error("--warplined is needed")
    for name in arguments.attacks:
        if name not in ATTACKS:
            parser.error(f"there is no attack {name}; --list names them")
    skip_without_tools()
    wrong = []
    columns = ["attack", "on", "MiB sent", "connections", "cut", "s", "daemon + MiB", "HAProxy + MiB", "calls", "failed",
               "median ms", "worst ms", "rest s", "not as it must be"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    with tempfile.TemporaryDirectory(prefix="attacks") as folder:
        certificate(folder)
        make_tokens(arguments.warplined, folder, "victim", "attacker")
        with open(f"{folder}/victim") as file:
            token = file.read()
        for name in arguments.attacks or ATTACKS:
            for through_proxy in (False, True):
                if through_proxy and name in ON_METRICS:
                    continue
                # A daemon of its own each time: freed memory must not hide what the next attack takes.
                with Daemon(arguments.warplined, *FLAGS, f"--tokens={folder}/tokens.toml", token=token,
                            log=f"{folder}/log") as daemon:
                    if through_proxy:
                        with Proxy(folder, daemon.address) as proxy:
                            wrong += make(name, daemon, proxy, folder, arguments.seconds)
                    else:
                        wrong += make(name, daemon, None, folder, arguments.seconds)
                    if daemon.stop() != 0:
                        wrong.append(f"{name}: the daemon did not end with 0")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
