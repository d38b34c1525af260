"""Measures the Python package in one process of a client: python_bench.py ADDRESS small|transfers|shared|kept

small: 32x32 f32 transposes, alone (p50) and from 8 threads of one client. transfers: put of 1 GiB, and get into an array
whose pages are there. shared: 256 MiB f32 transposes over a unix socket, of ordinary arrays and of c.empty. kept: 3,000
results of 64x48 f32 that stay on the server, their end, and a chain of 200 runs that free their operand. Prints JSON.
Run it in turn with other packages, of which PYTHONPATH names the folder, against one daemon.
"""

import json
import statistics
import sys
import threading
import time

import numpy as np

import warpline

SECONDS = 2
GIB = 1 << 30


def median_of(work, count):
    """Seconds of one call, after two that do not count."""
    taken = []
    for i in range(count + 2):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken[2:])


def small(client, rng):
    x = rng.random((32, 32), dtype="f4")
    alone = median_of(lambda: client.transpose(x), 10_000)
    counts, end = [0] * 8, time.perf_counter() + SECONDS

    def work(i):
        while time.perf_counter() < end:
            client.transpose(x)
            counts[i] += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"alone_us": alone * 1e6, "8_threads_per_s": sum(counts) / SECONDS}


def transfers(client, rng):
    x, y = rng.integers(0, 256, GIB, dtype="u1"), np.ones(GIB, "u1")

    def put():
        client.put(x).release()

    seconds = median_of(put, 3)
    for info in client.tensors():
        client.tensor(info.id).drop()
    t = client.put(x)
    return {"put_gb_s": GIB / seconds / 1e9, "get_gb_s": GIB / median_of(lambda: t.numpy(out=y), 3) / 1e9}


def shared(client, rng):
    x = rng.random((8192, 8192), dtype="f4")
    a, out, ordinary = client.empty(x.shape, "f4"), client.empty(x.shape, "f4"), np.ones_like(x)
    a[...] = x
    out[...] = 0
    return {"empty_ms": median_of(lambda: client.transpose(a, out=out), 7) * 1e3,
            "ordinary_ms": median_of(lambda: client.transpose(x), 7) * 1e3,
            "ordinary_out_ms": median_of(lambda: client.transpose(x, out=ordinary), 7) * 1e3}


def kept(client, rng):
    x = rng.random((64, 48), dtype="f4")
    begun = time.perf_counter()
    results = [client.transpose(x, keep=True) for _ in range(3000)]
    each, before = (time.perf_counter() - begun) / 3000, len(client.tensors())
    begun = time.perf_counter()
    del results
    while len(client.tensors()) > before - 3000:
        time.sleep(0.001)
    ended = time.perf_counter() - begun
    chained = {}
    for frees in (False, True):
        t = client.put(x)

        def step():
            nonlocal t
            t = client.run(t.T + 0, keep=True, free_after=[t] if frees else [])

        chained[frees] = median_of(step, 200)
    return {"each_us": each * 1e6, "end_ms": ended * 1e3, "run_us": chained[False] * 1e6, "freeing_run_us": chained[True] * 1e6}


def main():
    address, what = sys.argv[1:]
    with warpline.connect(address) as client:
        work = {"small": small, "transfers": transfers, "shared": shared, "kept": kept}[what]
        print(json.dumps(work(client, np.random.default_rng(1))))


if __name__ == "__main__":
    main()
