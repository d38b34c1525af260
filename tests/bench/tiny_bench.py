"""Tiny requests: warplined, an older warplined and a plain asynchronous echo of the same bytes, in alternating
processes of one run.

Usage: tiny_bench.py BIN_DIR OUT_DIR [OLD_BIN_DIR]. Clients are separate C++ processes (`warpline bench` of BIN_DIR).
Prints the median of all rounds, and of every round the ratio to the plain echo of the same round; writes
OUT_DIR/tiny.json with every figure.
"""

import json
import os
import statistics
import sys

import server

BIN, OUT = sys.argv[1], sys.argv[2]
OLD = sys.argv[3] if len(sys.argv) > 3 else None
ROUNDS = int(os.environ.get("WARPLINE_TINY_ROUNDS", "5"))
BACKEND = os.environ.get("WARPLINE_TEST_BACKEND", "cuda")
FIGURES = {}


def start(kind, transport):
    address = "127.0.0.1:0" if transport == "tcp" else f"unix:/tmp/warpline-tiny-{os.getpid()}.sock"
    if kind == "plain":
        return server.echo_server(BIN, "async", "127.0.0.1:50779" if transport == "tcp" else address)
    flags = ["--cpus=" + kind.split("@")[1].split()[0]] if "@" in kind else []
    return server.warplined(BIN, *flags, backend=BACKEND, address=address,
                            program=os.path.join(OLD, "warplined") if kind == "old" else None)


def note(kind, transport, figure, value):
    FIGURES.setdefault(f"{kind} {transport} {figure}", []).append(value)


def measure(kind, transport):
    flags = ["--shape", "32x32", "--duration", "800ms", "--warmup", "300ms"]
    with start(kind, transport) as measured:
        operations = ["echo"] if kind == "plain" else ["echo", "transpose"]
        for op in operations:
            note(kind, transport, f"{op} alone p50 us", server.p50_us(measured.bench("--op", op, *flags)))
            for channels in (4, 8):
                report = measured.bench("--op", op, *flags, "--channels", str(channels), "--concurrency", "64")
                note(kind, transport, f"{op} 64 in flight over {channels} /s", server.rate(report))


def main():
    kinds = ["plain", "new"] + (["old"] if OLD else [])
    for _ in range(ROUNDS):
        for transport in ("tcp", "unix"):
            for kind in kinds:
                measure(kind, transport)
    for cpus in os.environ.get("WARPLINE_TINY_CPUS", "").split():
        measure(f"new@{cpus} CPUs", "tcp")
    with open(os.path.join(OUT, "tiny.json"), "w", encoding="utf-8") as file:
        json.dump(FIGURES, file, indent=1)
    print("| server, transport, figure | median | of each round |\n|---|---|---|")
    for name, values in sorted(FIGURES.items()):
        print(f"| {name} | {statistics.median(values):.1f} | {' '.join(f'{value:.0f}' for value in values)} |")


main()
