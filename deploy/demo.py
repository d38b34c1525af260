"""The quickstart's demonstration: real files through the daemon and the CLI, checked against plain NumPy.

Usage: demo.py BIN_DIR. Starts warplined on free ports, prints a table, shows the metrics, stops it.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request

import numpy as np


def run(cli, server, *arguments):
    """Runs the CLI; returns what it reports about the request."""
    done = subprocess.run([cli, "--server", server, *arguments, "--timings", "--json", "--deadline", "60s"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"warpline {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def check(name, got, want, tolerance):
    """Exits unless got equals want within tolerance (absolute, per element)."""
    if got.shape != want.shape or got.dtype != want.dtype:
        sys.exit(f"{name}: got {got.dtype}{got.shape}, want {want.dtype}{want.shape}")
    worst = np.max(np.abs(got.astype(np.float64) - want.astype(np.float64)), initial=0)
    if not worst <= tolerance:
        sys.exit(f"{name}: off by {worst}, allowed {tolerance}")


def cases(directory):
    """Yields (label, shape, CLI arguments, expected result, tolerance, payload bytes, flops)."""
    rng = np.random.default_rng(0)
    eps = np.finfo(np.float32).eps

    def save(name, array):
        path = os.path.join(directory, name)
        np.save(path, array)
        return path

    x = rng.standard_normal((2048, 2048), dtype=np.float32)
    path = save("x.npy", x)
    yield ("transpose", "2048x2048 f32", ["transpose", path], np.ascontiguousarray(x.T), 0, 2 * x.nbytes, 0)
    y = rng.integers(-1000, 1000, (64, 96, 128), dtype=np.int32)
    yield ("transpose", "64x96x128 i32 (2,0,1)", ["transpose", save("y.npy", y), "--perm", "2,0,1"],
           np.ascontiguousarray(y.transpose(2, 0, 1)), 0, 2 * y.nbytes, 0)
    a = rng.standard_normal((512, 768), dtype=np.float32)
    b = rng.standard_normal((768, 640), dtype=np.float32)
    want = a.astype(np.float64) @ b.astype(np.float64)
    # Rounding of k products and their sum: k * eps * sum |a||b|.
    bound = 768 * eps * np.max(np.abs(a).astype(np.float64) @ np.abs(b))
    yield ("gemm", "512x768 @ 768x640 f32", ["gemm", save("a.npy", a), save("b.npy", b)], want.astype(np.float32),
           bound, a.nbytes + b.nbytes + want.size * 4, 2 * 512 * 768 * 640)
    for op in ("sum", "max", "mean"):
        want = getattr(np, op)(x.astype(np.float64), axis=1).astype(np.float32)
        bound = 0 if op == "max" else 2048 * eps * np.max(np.sum(np.abs(x), axis=1)) / (2048 if op == "mean" else 1)
        yield ("reduce " + op, "2048x2048 f32 axis 1", ["reduce", path, "--op", op, "--axes", "1"], want, bound,
               x.nbytes, 0)
    yield ("reduce argmax", "2048x2048 f32 axis 1", ["reduce", path, "--op", "argmax", "--axes", "1"],
           np.argmax(x, axis=1), 0, x.nbytes, 0)


def main():
    bin_dir = sys.argv[1]
    cli = os.path.join(bin_dir, "warpline")
    daemon = subprocess.Popen([os.path.join(bin_dir, "warplined"), "--listen=127.0.0.1:0",
                               "--metrics-listen=127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        ready = daemon.stdout.readline().strip()
        match = re.fullmatch(r"READY grpc=(\S+) metrics=(\S+) backend=(\S+)", ready)
        if match is None:
            sys.exit(f"warplined did not become ready: {ready!r}")
        server, metrics, backend = match.groups()
        print(ready)
        row = "{:<14} {:<24} {:<8} {:<18} {:>9} {:>14}"
        print("\n" + row.format("op", "shape", "backend", "variant", "ms", "rate"))
        with tempfile.TemporaryDirectory() as directory:
            for label, shape, arguments, want, tolerance, nbytes, flops in cases(directory):
                out = os.path.join(directory, "out.npy")
                run(cli, server, *arguments, "-o", out)  # the first request of a kind makes its graph
                report = run(cli, server, *arguments, "-o", out)
                check(label, np.load(out), want, tolerance)
                seconds = report["wall_seconds"]
                rate = f"{flops / seconds / 1e9:.2f} GFLOP/s" if flops else f"{nbytes / seconds / 1e9:.2f} GB/s"
                print(row.format(label, shape, report["backend"], ",".join(report["variants"]),
                                 f"{seconds * 1e3:.2f}", rate))
        print("\nms is one whole request as the client sees it. All results agree with NumPy.\n")
        print(f"Some of http://{metrics}/metrics:")
        # Whatever http_proxy says: a proxy does not reach this machine's loopback address.
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(f"http://{metrics}/metrics", timeout=10) as response:
            for line in response.read().decode().splitlines():
                if re.match(r"warpline_(requests_total|host_copy_bytes_total|kernel_duration_seconds_count|lanes)", line):
                    print("  " + line)
    finally:
        daemon.send_signal(signal.SIGTERM)
        code = daemon.wait(timeout=60)
    if code != 0:
        sys.exit(f"warplined exited with {code}")
    print("\nDone. Start your own server:  build/release/bin/warplined")


if __name__ == "__main__":
    main()
