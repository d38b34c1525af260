"""How long a transpose takes from Python: by shared memory in its several ways, and in messages.

    shared_bench.py SERVER [--sizes 8192] [--repeats 20] [--flag FLAG ...] [--json FILE]

SERVER: the path of a warplined, which is started with --listen=unix:... and the flags, or the address of one that
runs, unix:/path. Of each size N an N x N float32 array is transposed. Printed are the medians of the wall time of one
call, the bytes moved in both directions by that time, and as JSON all of it.

  pool     ordinary arrays, each result dropped before the next call
  pool, y= the same, each result dropped when the next one is there, as in y = c.transpose(x)
  kept     ordinary arrays, all results kept, which fills the pool's share of them: the rest is copied out
  empty    c.empty arrays as operand and out=
  inline   messages (shared_memory="never")
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import warpline


@contextlib.contextmanager
def serving(server, flags):
    """The address of the server."""
    if not os.access(server, os.X_OK):
        yield server
        return
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/s"
        command = [server, f"--listen={address}", "--metrics-listen=127.0.0.1:0", *flags]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            ready = process.stdout.readline()
            if not ready.startswith("READY"):
                sys.exit(f"{' '.join(command)} is not ready: {ready!r}")
            yield address
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def ways(shared, inline, x):
    """By name, what is done once."""
    kept, a, out = [], shared.empty(x.shape, x.dtype), shared.empty(x.shape[::-1], x.dtype)
    a[...] = x
    last = None

    def dropped():
        shared.transpose(x)

    def replaced():
        nonlocal last
        last = shared.transpose(x)

    yield "pool", dropped
    yield "pool, y=", replaced
    last = None
    yield "kept", lambda: kept.append(shared.transpose(x))
    kept.clear()
    yield "empty", lambda: shared.transpose(a, out=out)
    assert np.array_equal(out, x.T)
    yield "inline", lambda: inline.transpose(x)


def measure(work, repeats):
    """Seconds, of each repetition. The first two warm up."""
    seconds = []
    for _ in range(repeats + 2):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds[2:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--sizes", type=int, nargs="+", default=[8192])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--flag", action="append", default=[], help="of the daemon, e.g. --flag=--backend=cuda")
    parser.add_argument("--json", help="a file for the figures")
    arguments = parser.parse_args()
    rows = []
    with (serving(arguments.server, arguments.flag) as address,
          warpline.connect(address, shared_memory="always", timeout=300) as shared,
          warpline.connect(address, shared_memory="never", timeout=300) as inline):
        backend = shared.info().backend
        print(f"{'N':>6} {'way':<10} {'p50 ms':>9} {'min ms':>9} {'server ms':>10} {'GB/s':>7}   ({backend})")
        for size in arguments.sizes:
            x = np.random.default_rng(size).standard_normal((size, size), dtype="f4")
            times = []
            shared.transpose(x, report=lambda e: times.append(e.stage_times))
            server = sum(getattr(times[0], field.name) for field in times[0].DESCRIPTOR.fields)
            for name, work in ways(shared, inline, x):
                try:
                    seconds = measure(work, arguments.repeats)
                except warpline.ResourceExhausted as error:
                    print(f"{size:>6} {name:<10} {error.message}")
                    continue
                p50 = statistics.median(seconds)
                rows.append({"size": size, "way": name, "backend": backend, "p50_ms": p50 * 1e3,
                             "min_ms": min(seconds) * 1e3, "gb_per_s": 2 * x.nbytes / p50 / 1e9,
                             "repeats": len(seconds)})
                print(f"{size:>6} {name:<10} {p50 * 1e3:9.2f} {min(seconds) * 1e3:9.2f} {server * 1e3:10.2f} "
                      f"{2 * x.nbytes / p50 / 1e9:7.2f}", flush=True)
    print(json.dumps(rows))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
