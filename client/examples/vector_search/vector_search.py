#!/usr/bin/env python3
"""Exact nearest neighbours: a library of vectors that stays on a server, and programs that find the closest ones.

    id=$(python3 vector_search.py load library.npy)          # float32, of shape [vectors, dimensions]
    python3 vector_search.py find "$id" queries.npy -k 10    # for each query: the places of the closest, and scores

A score is a dot product: of vectors of length 1, the cosine of the angle. $WARPLINE_SERVER is the address of the server.
"""

import argparse
import os

import numpy as np

import warpline


class Library:
    """Vectors on a server, of shape [vectors, dimensions]."""

    def __init__(self, client, tensor, k=10, precision="ieee"):
        """k: How many vectors a search finds. precision: "tf32" is faster on a GPU, for float32, and rounds each factor to
        10 bits."""
        self._client = client
        queries = warpline.placeholder("queries", np.float32).astype(tensor.dtype)
        scores = queries.gemm(tensor.T, precision=precision if tensor.dtype == np.float32 else None,
                              dtype=np.float32)
        # One program: the product, which never leaves the server, and the selection.
        self._search = warpline.program(*warpline.topk(scores, k))

    def find(self, queries, report=None):
        """The scores and the places of the k vectors with the largest dot products, both of shape [queries, k]."""
        return self._client.run(self._search, queries=np.asarray(queries, np.float32), report=report)


def load(client, vectors, half=False, ttl=None):
    """Puts vectors on the server, and returns the tensor. half: as bfloat16, which needs half the memory and time."""
    kept = client.put(vectors, ttl=ttl)
    if not half:
        return kept
    with kept:
        return client.run(kept.astype(warpline.bfloat16), keep=True, ttl=ttl)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    loads = commands.add_parser("load", help="put a library on the server, and print its id")
    loads.add_argument("library", help="a .npy file")
    loads.add_argument("--half", action="store_true", help="keep it as bfloat16")
    loads.add_argument("--ttl", type=float, default=3600, help="seconds that it stays after its last use (3600)")
    finds = commands.add_parser("find", help="print the closest vectors of each query")
    finds.add_argument("id", help="what load printed")
    finds.add_argument("queries", help="a .npy file")
    finds.add_argument("-k", type=int, default=10, help="how many (10)")
    finds.add_argument("--tf32", action="store_true", help="faster products of float32 on a GPU")
    given = parser.parse_args()
    with warpline.connect(os.environ.get("WARPLINE_SERVER", "127.0.0.1:50051")) as client:
        if given.command == "load":
            print(load(client, np.load(given.library), given.half, given.ttl).release())
            return
        library = Library(client, client.tensor(given.id), given.k, "tf32" if given.tf32 else "ieee")
        for scores, places in zip(*library.find(np.load(given.queries))):
            print(" ".join(f"{place}:{score:.4f}" for place, score in zip(places, scores)))


if __name__ == "__main__":
    main()
