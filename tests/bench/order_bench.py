"""Times takes, scans, sorts and searches of vectors on resident operands: the request, and its device stage.

Usage: order_bench.py WARPLINED [ROUNDS]
Starts a daemon on a GPU with a unix socket of its own. Needs the Python package, and a GPU with 60 GB. Medians, in
microseconds. A result of more than a few rows stays on the server, and is dropped between the rounds. The first two lines are what a
request takes of which the device has nothing to do.
"""

import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import warpline

RANDOM = np.random.default_rng(0)


def floats(*shape):
    return RANDOM.standard_normal(shape, dtype="f4")


def measure(client, name, outputs, rounds, keep=True):
    program, seconds, reports = warpline.program(*outputs), [], []
    for _ in range(rounds + 10):
        start = time.perf_counter()
        results = client.run(program, keep=keep, report=reports.append)
        seconds.append(time.perf_counter() - start)
        for result in results if isinstance(results, tuple) else (results,):
            if keep:
                result.drop()
    device = [report.stage_times.device for report in reports[10:]]
    print(f"{name:34} request {statistics.median(seconds[10:]) * 1e6:7.0f}  device {statistics.median(device) * 1e6:7.0f}  "
          f"{' '.join(reports[-1].variants)}", flush=True)


def run(client, rounds):
    with client.put(floats(16)) as small:
        measure(client, "16 elements, the way alone", [small + 1], rounds, keep=False)
        measure(client, "the same, result kept", [small + 1], rounds)
    with client.put(floats(16384, 4096)) as a, client.put(floats(16384, 4096)) as b:
        flat = a.reshape(-1)
        measure(client, "cumsum of rows", [np.cumsum(a, 1)], rounds)
        measure(client, "cumsum of columns", [np.cumsum(a, 0)], rounds)
        measure(client, "cumsum of 64 Mi", [np.cumsum(flat)], rounds)
        measure(client, "top 10 of rows", warpline.topk(a, 10), rounds, keep=False)
        measure(client, "sort of rows, places", warpline.sort_with_indices(a), rounds)
        measure(client, "sort of 64 Mi", [np.sort(flat)], rounds)
        measure(client, "sort of 64 Mi, places", warpline.sort_with_indices(flat), rounds)
        measure(client, "a[:, 1::2]", [np.reshape(a[:, 1::2], (16384, 2048))], rounds)
        measure(client, "concatenate, axis 0", [np.concatenate([a, b])], rounds)
        measure(client, "concatenate, axis 1", [np.concatenate([a, b], 1)], rounds)
        measure(client, "mask of half of 64 Mi", [flat[flat > 0]], rounds)
    with client.put(floats(8192, 50257)) as scores:
        measure(client, "top 50 of 8192 x 50257", warpline.topk(scores, 50), rounds, keep=False)
    with client.put(floats(1 << 20, 128)) as table, client.put(RANDOM.integers(0, 1 << 20, 1 << 20)) as indices, \
            client.put(floats(128, 128)) as queries, client.put(floats(1, 128)) as query:
        measure(client, "take of 1 Mi rows", [np.take(table, indices, 0)], rounds)
        measure(client, "128 queries, tf32, top 10", warpline.topk(queries.gemm(table.T, precision="tf32"), 10), rounds, False)
        with client.run(table.astype(warpline.bfloat16), keep=True) as halves, \
                client.run(queries.astype(warpline.bfloat16), keep=True) as half_queries:
            measure(client, "128 queries, bf16, top 10", warpline.topk(half_queries @ halves.T, 10), rounds, False)
        measure(client, "1 query, top 10", warpline.topk(query @ table.T, 10), rounds, keep=False)


def main(warplined, rounds="40"):
    with tempfile.TemporaryDirectory() as folder:
        target = f"unix:{folder}/socket"
        command = [warplined, f"--listen={target}", "--metrics-listen=", "--backend=cuda", "--resident-bytes=40GiB"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as daemon:
            try:
                daemon.stdout.readline()
                with warpline.connect(target) as client:
                    run(client, int(rounds))
            finally:
                daemon.terminate()


main(*sys.argv[1:])
