"""Tiny requests: warplined, an older warplined and a plain asynchronous echo of the same bytes, in alternating
processes of one run.

Usage: tiny_bench.py BIN_DIR OUT_DIR [OLD_BIN_DIR]. Clients are separate C++ processes (`warpline bench` of BIN_DIR).
Prints the median of all rounds, and of every round the ratio to the plain echo of the same round; writes
OUT_DIR/tiny.json with every figure.
"""

import json
import os
import re
import signal
import statistics
import subprocess
import sys

BIN, OUT = sys.argv[1], sys.argv[2]
OLD = sys.argv[3] if len(sys.argv) > 3 else None
ROUNDS = int(os.environ.get("WARPLINE_TINY_ROUNDS", "5"))
BACKEND = os.environ.get("WARPLINE_TEST_BACKEND", "cuda")
FIGURES = {}


class Server:
    def __init__(self, kind, transport):
        address = "127.0.0.1:0" if transport == "tcp" else f"unix:/tmp/warpline-tiny-{os.getpid()}.sock"
        if kind == "plain":
            address = address.replace(":0", ":50779") if transport == "tcp" else address
            command = [os.path.join(BIN, "echo_server"), "async", address]
        else:
            folder = OLD if kind == "old" else BIN
            command = [os.path.join(folder, "warplined"), f"--listen={address}", "--metrics-listen=", "--echo",
                       f"--backend={BACKEND}"]
            if "@" in kind:
                command.append("--rpc-threads=" + kind.split("@")[1])
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        ready = self.process.stdout.readline()
        self.address = address if kind == "plain" else re.search(r"grpc=(\S+)", ready).group(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def bench(self, *flags):
        done = subprocess.run([os.path.join(BIN, "warpline"), "--server", self.address, "bench", "--json", "--deadline",
                               "30s", "--shape", "32x32", "--duration", "800ms", "--warmup", "300ms", *flags],
                              capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"bench {flags}: {done.stderr}")
        report = json.loads(done.stdout)
        if report.get("errors"):
            raise RuntimeError(f"bench {flags}: errors {report['errors']}")
        return report


def note(kind, transport, figure, value):
    FIGURES.setdefault(f"{kind} {transport} {figure}", []).append(value)


def measure(kind, transport):
    with Server(kind, transport) as server:
        operations = ["echo"] if kind == "plain" else ["echo", "transpose"]
        for op in operations:
            report = server.bench("--op", op)
            note(kind, transport, f"{op} alone p50 us", report["latency_seconds"]["p50"] * 1e6)
            for channels in (4, 8):
                report = server.bench("--op", op, "--channels", str(channels), "--concurrency", "64")
                note(kind, transport, f"{op} 64 in flight over {channels} /s", report["requests_per_second"])


def main():
    kinds = ["plain", "new"] + (["old"] if OLD else [])
    for _ in range(ROUNDS):
        for transport in ("tcp", "unix"):
            for kind in kinds:
                measure(kind, transport)
    for threads in os.environ.get("WARPLINE_TINY_THREADS", "").split():
        measure(f"new@{threads}", "tcp")
    with open(os.path.join(OUT, "tiny.json"), "w", encoding="utf-8") as file:
        json.dump(FIGURES, file, indent=1)
    print("| server, transport, figure | median | of each round |\n|---|---|---|")
    for name, values in sorted(FIGURES.items()):
        print(f"| {name} | {statistics.median(values):.1f} | {' '.join(f'{value:.0f}' for value in values)} |")


main()
