"""What owners who share a server leave to one another.

Usage: fairness_bench.py BIN_DIR [OLD_WARPLINED]. BIN_DIR/warplined, the same with --kept-multiprocessors=8, and OLD_WARPLINED, in
turn, serve three owners; each load is a `warpline bench` of BIN_DIR, a process of its own with the token of its owner.

- B sends 32x32 transposes one after the other: alone, and beside A, which keeps a hundred f32 products of 4096^2 on
  resident operands in progress.
- A (weight 1) and C (weight 3) keep products in progress: both of 4096^2 in f32, and then C of 8192^2 in bf16. The
  device time of each is the products that it gets in three seconds in which both want some, times what one such
  product takes alone, from its request to its answer.
"""

import json
import os
import statistics
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

import server

BIN = sys.argv[1]
WARPLINED = os.path.join(BIN, "warplined")
# Kinds of servers, which take turns: program and flags.
SERVERS = {"new": (WARPLINED, []), "new, 8 kept": (WARPLINED, ["--kept-multiprocessors=8"])}
if len(sys.argv) > 2:
    SERVERS["old"] = (sys.argv[2], [])
BACKEND = os.environ.get("WARPLINE_TEST_BACKEND", "cuda")
ROUNDS = int(os.environ.get("WARPLINE_FAIRNESS_ROUNDS", "3"))
SIZE = int(os.environ.get("WARPLINE_FAIRNESS_SIZE", "4096"))
WEIGHTS = {"a": 1, "b": 1, "c": 3}

PRODUCT = ["--op=gemm", f"--shape={SIZE}x{SIZE}x{SIZE}", "--resident=a,b", "--keep"]
LARGER = ["--op=gemm", f"--shape={2 * SIZE}x{2 * SIZE}x{2 * SIZE}", "--dtype=bf16", "--resident=a,b", "--keep"]
TRANSPOSE = ["--op=transpose", "--shape=32x32"]
MANY = ["--concurrency=100", "--channels=4"]


def make_owners(folder):
    """The file of tokens; the token of each owner lies beside it."""
    path = os.path.join(folder, "tokens.toml")
    with open(path, "w", encoding="utf-8") as file:
        for owner, weight in WEIGHTS.items():
            made = subprocess.run([WARPLINED, "--new-token", owner], capture_output=True, text=True, check=True)
            with open(os.path.join(folder, owner), "w", encoding="utf-8") as token:
                token.write(made.stderr)
            os.chmod(token.name, 0o600)
            file.write(f"{made.stdout}weight = {weight}\n")
    os.chmod(path, 0o600)
    return path


class Load:
    """One `warpline bench` that runs beside others."""

    def __init__(self, measured, folder, owner, *flags, seconds=4):
        command = [measured.client, "--server", measured.address, "bench", "--json", "--deadline=60s", "--warmup=1s",
                   f"--duration={seconds}s", f"--token-file={os.path.join(folder, owner)}", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def report(self):
        out, error = self.process.communicate(timeout=180)
        report = json.loads(out) if self.process.returncode == 0 else {}
        if not report or report.get("errors"):
            raise RuntimeError(f"{' '.join(self.process.args)}: {error} {report.get('errors')}")
        return report


def milliseconds(report, what):
    return report["latency_seconds"][what] * 1e3


def answered(measured, folder):
    """The requests of A and of C that have been answered so far."""
    with open(os.path.join(folder, "a"), encoding="utf-8") as token:
        headers = {"Authorization": f"Bearer {token.read().strip()}"}
    request = urllib.request.Request(f"http://{measured.metrics_address}/metrics", headers=headers)
    with urllib.request.urlopen(request) as page:
        text = page.read().decode()
    counts = [re.search(rf'^warpline_owner_requests_total{{code="OK",owner="token:{owner}"}} (\S+)', text, re.M)
              for owner in "ac"]
    return [float(count[1]) if count else 0 for count in counts]


def products_beside(measured, folder):
    """Of A and of C, within three seconds in which both have many in progress."""
    start = now = answered(measured, folder)
    while not all(y > x + 100 for x, y in zip(start, now)):
        time.sleep(0.05)
        now = answered(measured, folder)
    time.sleep(3)
    return [y - x for x, y in zip(now, answered(measured, folder))]


def measure(measured, folder):
    def load(owner, *flags, **others):
        return Load(measured, folder, owner, *flags, **others)

    alone = load("b", *TRANSPOSE, seconds=2).report()
    products = {"same": load("a", *PRODUCT, seconds=2).report(), "larger": load("c", *LARGER, seconds=2).report()}
    crowd = load("a", *PRODUCT, *MANY, seconds=6)
    beside = load("b", *TRANSPOSE, seconds=4).report()  # ends before the crowd does
    crowd = crowd.report()
    found = {
        "B alone /s": server.rate(alone), "B beside A /s": server.rate(beside),
        "B's ratio": server.rate(beside) / server.rate(alone),
        "B alone p99 ms": milliseconds(alone, "p99"), "B beside A p99 ms": milliseconds(beside, "p99"),
        "A alone p50 ms": milliseconds(products["same"], "p50"), "A's longest alone ms": milliseconds(products["same"], "max"),
        "A in a crowd /s": server.rate(crowd),
    }
    for name, flags, product in (("same", PRODUCT, "same"), ("larger", LARGER, "larger")):
        loads = [load("a", *PRODUCT, *MANY, seconds=9), load("c", *flags, *MANY, seconds=9)]
        a, c = products_beside(measured, folder)
        for each in loads:
            each.report()
        times = [a * milliseconds(products["same"], "p50"), c * milliseconds(products[product], "p50")]
        found[f"C to A, {name}: device time, to be 3"] = times[1] / times[0]
    return found


def main():
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        tokens = make_owners(folder)
        for _ in range(ROUNDS):
            for kind, (program, flags) in SERVERS.items():
                with server.warplined(BIN, f"--tokens={tokens}", *flags, backend=BACKEND, program=program,
                                      metrics="127.0.0.1:0") as measured:
                    for name, value in measure(measured, folder).items():
                        figures.setdefault((name, kind), []).append(value)
    print("| figure | server | median | of each round |\n|---|---|---|---|")
    for (name, kind), values in sorted(figures.items()):
        print(f"| {name} | {kind} | {statistics.median(values):.3g} | {' '.join(f'{value:.3g}' for value in values)} |")


main()
