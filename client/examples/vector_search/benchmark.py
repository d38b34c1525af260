#!/usr/bin/env python3
"""Searches of a warpline server beside NumPy and, where it is installed, torch, in this process.

    python3 benchmark.py [--vectors N] [--dimensions N] [--queries N] [-k N] [--rounds N]

For each the median time of a call, from queries in an array to places and scores in arrays. The vectors are where they
stay: on the server, and in this process's memory or on its GPU. $WARPLINE_SERVER is the address of the server.
"""

import argparse
import os
import time

import numpy as np
from vector_search import Library, load

import warpline

try:
    import torch
except ImportError:
    torch = None


def with_numpy(vectors, k):
    def find(queries):
        scores = queries @ vectors.T
        some = np.argpartition(scores, -k, axis=1)[:, -k:]
        order = np.argsort(-np.take_along_axis(scores, some, 1), axis=1)
        return np.take_along_axis(some, order, 1)
    return find


def with_torch(vectors, k, device, half):
    kept = torch.from_numpy(vectors).to(device, torch.bfloat16 if half else torch.float32)

    def find(queries):
        scores, places = torch.topk(torch.from_numpy(queries).to(device, kept.dtype) @ kept.T, k)
        return places.cpu().numpy(), scores.float().cpu().numpy()
    return find


def median(find, queries, rounds):
    seconds = []
    for batch in range(rounds + 2):
        start = time.perf_counter()
        find(queries[batch % len(queries)])
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds[2:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("vectors", 1000000), ("dimensions", 128), ("queries", 128), ("rounds", 20)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("-k", type=int, default=10)
    given = parser.parse_args()
    random = np.random.default_rng(0)
    vectors = random.standard_normal((given.vectors, given.dimensions), dtype="f4")
    queries = random.standard_normal((4, given.queries, given.dimensions), dtype="f4")
    cuda = torch is not None and torch.cuda.is_available()
    rows = [("numpy, float32", lambda: with_numpy(vectors, given.k), min(given.rounds, 3))]
    if torch is not None and not cuda:
        rows.append(("torch on the CPU, float32", lambda: with_torch(vectors, given.k, "cpu", False), given.rounds))
    if cuda:
        torch.set_float32_matmul_precision("high")
        rows.append(("torch on the GPU, tf32", lambda: with_torch(vectors, given.k, "cuda", False), given.rounds))
        rows.append(("torch on the GPU, bfloat16", lambda: with_torch(vectors, given.k, "cuda", True), given.rounds))
    with warpline.connect(os.environ.get("WARPLINE_SERVER", "127.0.0.1:50051")) as client:
        def served(half, precision="ieee"):
            return Library(client, load(client, vectors, half), given.k, precision).find
        rows += [("warpline, float32", lambda: served(False), given.rounds),
                 ("warpline, tf32", lambda: served(False, "tf32"), given.rounds),
                 ("warpline, bfloat16", lambda: served(True), given.rounds)]
        for name, make, rounds in rows:
            print(f"{name:28} {median(make(), queries, rounds) * 1e3:10.3f} ms", flush=True)


if __name__ == "__main__":
    main()
