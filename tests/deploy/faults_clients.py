"""Clients that faults_test.py starts as processes of their own: faults_clients.py PYTHON ROLE [ARGUMENT...]"""

import sys

sys.path.insert(1, sys.argv[1])

import grpc

from faults import KERNELS, OPTIONS
from soak_calls import outer


def code_of(future):
    error = future.exception()
    return "OK" if error is None else error.code().name


def reader(address):
    """Asks for four results of 32 MiB, and prints how these calls have ended, and a small one after them."""
    with grpc.insecure_channel(address, OPTIONS) as channel:
        gemm = channel.unary_unary(KERNELS + "Gemm")
        body, small = outer(4096, 2048), outer(4, 4)
        print("asking", flush=True)
        futures = [gemm.future(body, timeout=120) for _ in range(4)]
        codes = [code_of(future) for future in futures]
        print(*codes, code_of(gemm.future(small, timeout=60, wait_for_ready=True)), flush=True)


if __name__ == "__main__":
    globals()[sys.argv[2]](*sys.argv[3:])
