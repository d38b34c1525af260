"""What a server of HTTP/2 is attacked with, and what others notice: the table of docs/attacks.md.

    attacks_test.py --warplined PATH [--seconds S] [--python DIR] [--measure] [--soak S] [--list] [ATTACK...]

Each attack of attacks.py is made twice: on the daemon, and on HAProxy with deploy/haproxy/edge.cfg in front of it; those
of greedy.py on the daemon. Meanwhile another client, with a token of its own, makes calls: small ones, or those that ROWS
names. An attack has failed if each of them is answered rightly within victims.MOST_SECONDS, and half of them within
TYPICAL_SECONDS, nobody's memory grows by more than the bound, and afterwards the daemon holds nothing of anybody and has
no more descriptors than before. Those that gRPC 1.51 does not withstand are named in HOLES: there a daemon with it is not
judged, and the attack ends when its memory has grown by HOLE_MIB. --measure: the other client is first alone for as long
as the attack lasts, and the table says what it had then and what it has during the attack; on an idle machine these are
the figures of docs/attacks.md. --soak: one daemon with default flags is attacked for that many seconds by all attacks in
turn that need no other flags, are no holes and leave no tensors; its memory must not grow from round to round. --python: as of soak_test.py. 77 is the exit code where HAProxy, openssl or a Python
package is missing.
"""

import argparse
import dataclasses
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

import attacks
import greedy
import python_client
from daemon import Daemon, wait_until
from dashboard import ROOT
from edge import Proxy, certificate, make_tokens, skip_without_tools
from victims import Creates, Health, Regions, Scrapes, Settled, Shapes, Streams, Sums, Transfers, Victim

# Of the metrics port, which is not published through the proxy.
ON_METRICS = {"metrics_clients", "scrapes", "endless_requests"}
# What gRPC 1.51 does not withstand.
HOLES = {"continuations", "tiny_fields", "huge_string", "unbounded_calls"}
HOLE_MIB = 700
# A peer that has cancelled too much gets no connection for so long at most, and a little more.
DEBT_SECONDS = 12
# By how much a daemon may grow after the first round of a soak.
SOAK_MIB = 50
# A ticket for a region that nobody fetches lasts 30 seconds.
PATIENCE_SECONDS = 60
# What must at least have happened for it to count as an attack.
LEAST_SENT, LEAST_CONNECTIONS = 20000, 30
# Limits so small that what jobs may take by right stays below 200 MiB.
FLAGS = ["--backend=cpu", "--max-inline-bytes=14M", "--send-timeout=2s", "--resident-bytes=1G", "--region-bytes=1G"]


def rss_mib(pids):
    """Of processes, those that have ended left out, and without shared memory, which is the clients' own."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status") as status:
                said = dict(re.findall(r"(VmRSS|RssShmem):\s+(\d+)", status.read()))
            total += (int(said["VmRSS"]) - int(said["RssShmem"])) / 1024
        except (FileNotFoundError, KeyError):
            pass
    return total


@dataclasses.dataclass
class Row:
    """How an attack differs from most others. flags: of the daemon, beside FLAGS. bound: MiB by which memory may grow.
    refused: part of the victim's calls that may be refused. least: connections or calls that make it an attack. reached:
    a metric and what it must have come to. leaves: whether its tensors stay on the server when the attacker is gone."""
    victim: type = Victim
    flags: tuple = ()
    bound: int = 500
    refused: float = 0
    least: int = LEAST_CONNECTIONS
    seconds: float = 0
    reached: tuple = ()
    leaves: bool = False


ROWS = {
    **{f"resets_and_leave_{calls}": Row(bound=200) for calls in (30, 200, 900, 2240)},
    "resets_beside": Row(Settled, bound=200),
    "stalled_uploads": Row(bound=200),
    "idle_connections": Row(flags=("--max-connections=400",)),
    "metrics_clients": Row(Scrapes), "scrapes": Row(Health), "endless_requests": Row(Health, least=8),
    "long_jobs": Row(flags=("--lanes=2", "--max-inline-bytes=32M"), least=6),
    "unread_gets": Row(Transfers, leaves=True), "slow_puts": Row(Transfers, leaves=True), "lists": Row(leaves=True),
    "new_shapes": Row(Shapes, refused=0.01),
    "empty_tensors": Row(Creates, seconds=12, reached=("warpline_resident_tensors", 20000), leaves=True),
    "regions": Row(Regions, least=10),
    "held_results": Row(Streams, flags=("--upload-bytes=64M",), reached=("warpline_upload_bytes", 32 << 20)),
    "trickled_uploads": Row(Streams, flags=("--upload-bytes=64M",), reached=("warpline_upload_bytes", 24 << 20)),
    "abandoned_jobs": Row(Sums, flags=("--lanes=1", "--device-bytes=2G"), bound=2000, least=50),
}


class Attack:
    """The process that attacks, and what it says."""

    def __init__(self, name, daemon, address, ca, folder, python):
        program, more = ("attacks.py", ["--ca", ca] if ca else []) if name in attacks.ATTACKS else (
            "greedy.py", ["--python", python, "--unix", daemon.unix])
        command = [sys.executable, "-B", str(ROOT / "tests/deploy" / program), name, address, "--token",
                   f"{folder}/attacker", *more]
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], stdout=subprocess.PIPE, text=True)
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


def milliseconds(latencies, part):
    """A quantile, such as 0.5 for the median."""
    ordered = sorted(latencies) or [0]
    return f"{ordered[min(len(ordered) - 1, int(part * len(ordered)))] * 1e3:.1f}"


def work_left(daemon, row):
    """What the daemon still has of anybody, but for tensors whose leases go on."""
    return {name for name in daemon.metrics().work() if not (row.leaves and "resident" in name)}


def make(name, daemon, proxy, folder, arguments):
    """Attacks the proxy, or the daemon if there is none. Prints a row of the table; returns what is not as it must be."""
    row, hole, on_metrics = ROWS.get(name, Row()), proxy is None and name in HOLES, name in ON_METRICS
    seconds = max(arguments.seconds, row.seconds)
    pids = [daemon.pid] + ([proxy.process.pid] if proxy else [])
    address = proxy.address if proxy else daemon.metrics_address if on_metrics else daemon.address
    ca = f"{folder}/ca.crt" if proxy else ""
    wait_until("the daemon is at rest", lambda: not daemon.metrics().work())
    descriptors, before = daemon.descriptors(), [rss_mib([pid]) for pid in pids]
    log_before = os.path.getsize(daemon.log)
    victim = row.victim(daemon, address, ca)
    wait_until("the victim has had answers", lambda: len(victim.latencies) >= 3)
    victim.take()
    if arguments.measure:
        time.sleep(seconds)
    calm = victim.take()
    attack = Attack(name, daemon, address, ca, folder, arguments.python)
    peak, begun = before, time.monotonic()
    wait_until("the attack has begun", lambda: attack.sent > 0 or attack.connections > 0 or attack.cuts > 0)
    while time.monotonic() < begun + seconds:
        time.sleep(0.02)
        now = [rss_mib([pid]) for pid in pids]
        peak = [max(one, other) for one, other in zip(peak, now)]
        if hole and now[0] - before[0] > HOLE_MIB:
            break
    lasted, reached = time.monotonic() - begun, daemon.metrics().total(row.reached[0]) if row.reached else 0
    wrong = [] if attack.end() else ["the attack ended by itself"]
    during = victim.take()
    victim.end()
    during += victim.take()
    grown = [most - least for most, least in zip(peak, before)]
    # Newer versions let through less of what ignores the server's SETTINGS.
    wanted = row.reached[1] if row.reached and HOLES else 0
    if attack.sent < LEAST_SENT and attack.connections < row.least or reached < wanted:
        wrong.append(f"it was no attack: {attack.connections} connections, {attack.sent} bytes, {reached}")
    if not hole:
        wrong += victim.complaints(during, row.refused)
        wrong += [f"memory of process {pid} grew by {mib:.0f} MiB" for pid, mib in zip(pids, grown) if mib > row.bound]
    if daemon.process.poll() is not None:
        sys.exit(f"{name}: the daemon has ended with {daemon.process.returncode}")
    # What the attackers held has to come back, also where the attack did harm.
    rest = wait_until(f"{name}: the daemon has nothing left", lambda: not work_left(daemon, row)
                      and daemon.descriptors() <= descriptors + 4, PATIENCE_SECONDS)
    with open(daemon.log, errors="replace") as log:
        log.seek(log_before)
        said = log.read()
    if any(not re.match(r"time=\d{4}-\S+ level=\w+ msg=", line) for line in said.splitlines()):
        wrong.append("a line of the log is forged")
    if len(said) > 100 * 1024:
        wrong.append(f"{len(said) / 1024:.0f} KiB of log")
    print("| " + " | ".join(map(str, [
        name, "HAProxy" if proxy else "daemon", f"{attack.sent / 2**20:.0f}", attack.connections, attack.cuts,
        f"{lasted:.1f}", *[f"{mib:.0f}" for mib in grown], *([""] if not proxy else []),
        *([len(calm), milliseconds(calm, 0.5), milliseconds(calm, 0.99)] if arguments.measure else []), len(during),
        len(victim.failures) + victim.refused, milliseconds(during, 0.5), milliseconds(during, 0.99),
        milliseconds(during, 1), f"{rest:.1f}", "not judged" if hole else "; ".join(wrong)])) + " |", flush=True)
    return [] if hole else [f"{name} on {'HAProxy' if proxy else 'the daemon'}: {what}" for what in wrong]


def run(name, through_proxy, folder, token, arguments):
    """On a daemon of its own: freed memory must not hide what the next attack takes. Returns what make() does."""
    unix = f"{folder}/socket"
    with Daemon(arguments.warplined, *FLAGS, *ROWS.get(name, Row()).flags, f"--tokens={folder}/tokens.toml",
                listen=f"127.0.0.1:0,unix:{unix}", proxied="127.0.0.1:0", token=token, log=f"{folder}/log") as daemon:
        daemon.unix = unix
        if through_proxy:
            with Proxy(folder, daemon.proxied_address) as proxy:
                wrong = make(name, daemon, proxy, folder, arguments)
        else:
            wrong = make(name, daemon, None, folder, arguments)
        return wrong + ([f"{name}: the daemon did not end with 0"] if daemon.stop() != 0 else [])


def soak(folder, token, arguments):
    """Attacks one daemon again and again. Returns what make() does, and by how much it has grown since the first round."""
    names = [name for name in attacks.ATTACKS | greedy.ATTACKS
             if name not in HOLES and not ROWS.get(name, Row()).flags and not ROWS.get(name, Row()).leaves]
    unix, wrong, after, begun = f"{folder}/socket", [], [], time.monotonic()
    with Daemon(arguments.warplined, "--backend=cpu", f"--tokens={folder}/tokens.toml", listen=f"127.0.0.1:0,unix:{unix}",
                token=token, log=f"{folder}/log") as daemon:
        daemon.unix = unix
        while len(after) < 2 or time.monotonic() < begun + arguments.soak:
            for name in names:
                wrong += make(name, daemon, None, folder, arguments)
                if name == "resets_beside":
                    time.sleep(DEBT_SECONDS)  # until the next victim may connect from this address
            after.append(rss_mib([daemon.pid]))
        print(f"{time.monotonic() - begun:.0f} s; MiB after each round: {' '.join(f'{mib:.0f}' for mib in after)}")
        if after[-1] > after[0] + SOAK_MIB:
            wrong.append(f"the daemon grew from {after[0]:.0f} to {after[-1]:.0f} MiB")
        return wrong + (["the daemon did not end with 0"] if daemon.stop() != 0 else [])


def has_holes(warplined):
    """Whether the program has the gRPC of HOLES."""
    said = subprocess.run([warplined, "--version"], check=True, capture_output=True, text=True).stdout
    return "gRPC 1.51" in said


def main():
    every = attacks.ATTACKS | greedy.ATTACKS
    parser = argparse.ArgumentParser(description="The attacks of docs/attacks.md, on the daemon and on HAProxy.")
    parser.add_argument("--warplined", help="the program to attack")
    parser.add_argument("--python", help="folder of the Python package, as of soak_test.py")
    parser.add_argument("--seconds", type=float, default=5, help="of each attack; default: 5")
    parser.add_argument("--measure", action="store_true", help="also measures the other client while it is alone")
    parser.add_argument("--soak", type=float, metavar="S", help="seconds for which one daemon is attacked")
    parser.add_argument("--list", action="store_true", help="says what each attack does, and ends")
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help="those to make; default: all")
    arguments = parser.parse_args()
    if arguments.list:
        for name, attack in every.items():
            print(f"{name}: {' '.join(attack.__doc__.split())}")
        return
    if not arguments.warplined:
        parser.error("--warplined is needed")
    for name in arguments.attacks:
        if name not in every:
            parser.error(f"there is no attack {name}; --list names them")
    skip_without_tools()
    if not has_holes(arguments.warplined):
        HOLES.clear()
    wrong = []
    columns = ["attack", "on", "MiB sent", "connections", "cut", "s", "daemon + MiB", "HAProxy + MiB",
               *(["calm calls", "median ms", "p99 ms"] if arguments.measure else []), "calls", "failed",
               "median ms", "p99 ms", "worst ms", "rest s", "not as it must be"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    with tempfile.TemporaryDirectory(prefix="attacks") as folder:
        arguments.python = python_client.folder_of(folder, arguments.python)
        sys.path.insert(1, arguments.python)
        certificate(folder)
        make_tokens(arguments.warplined, folder, "victim", "attacker")
        with open(f"{folder}/victim") as file:
            token = file.read()
        if arguments.soak:
            wrong += soak(folder, token, arguments)
        for name in [] if arguments.soak else arguments.attacks or every:
            for through_proxy in (False, True):
                if not through_proxy or name in attacks.ATTACKS and name not in ON_METRICS:
                    wrong += run(name, through_proxy, folder, token, arguments)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
