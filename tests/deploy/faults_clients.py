"""Clients that faults_test.py starts as processes of their own: faults_clients.py PYTHON ROLE [ARGUMENT...]"""

import json
import sys
import time

sys.path.insert(1, sys.argv[1])

import grpc
import numpy as np

from faults import KERNELS, OPTIONS
from soak_calls import outer, slow_program, tensor
import warpline_pb2 as v1

# Of gRPC, each second, whether calls are in progress or not.
KEEPALIVE = [("grpc.keepalive_time_ms", 1000), ("grpc.keepalive_timeout_ms", 1000),
             ("grpc.keepalive_permit_without_calls", 1)]


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


class Distant:
    """A call on a channel of its own, and how it ends."""

    def __init__(self, address, method, body, seconds, options=()):
        self._channel = grpc.insecure_channel(address, [*OPTIONS, *options])
        self._small = self._channel.unary_unary(KERNELS + "Gemm")
        # The connection is there before the call.
        self._small(outer(2, 2), timeout=20, wait_for_ready=True)
        self.begun = self.ended = None
        self._begin = lambda: self._channel.unary_unary(KERNELS + method).future(body, timeout=seconds)

    def begin(self):
        self.future = self._begin()
        self.future.add_done_callback(self._note)

    def _note(self, _):
        self.ended = time.monotonic()

    def small_calls(self):
        """How calls end on this channel, until one is answered."""
        codes = []
        while codes[-1:] != ["OK"] and len(codes) < 100:
            codes.append(code_of(self._small.future(outer(2, 2), timeout=10)))
            time.sleep(0.05)
        return codes


def distant():
    """Has calls in progress when the link is cut, as it is told on stdin, and prints how they have ended, in seconds
    from the cut, and how calls end on their channels afterwards."""
    print("here", flush=True)
    _, address = sys.stdin.readline().split()
    large = v1.TransposeRequest(x=tensor(np.zeros((3000, 4000), "f4"))).SerializeToString()
    slow = slow_program(300, 40, "reference")
    calls = {"deadline": Distant(address, "Run", slow, 3), "keepalive": Distant(address, "Run", slow, 25, KEEPALIVE),
             "neither": Distant(address, "Run", slow, 25), "reading": Distant(address, "Gemm", outer(4000, 3000), 25),
             "uploading": Distant(address, "Transpose", large, 25),
             "call after the cut": Distant(address, "Gemm", outer(2, 2), 25)}
    late = calls["call after the cut"]
    for call in calls.values():
        if call is not late:
            call.begin()
    time.sleep(0.05)
    print("begun", flush=True)
    sys.stdin.readline()
    cut = time.monotonic()
    late.begin()
    sys.stdin.readline()
    ended = {name: (code_of(call.future), call) for name, call in calls.items()}
    print(json.dumps({name: (code, round(call.ended - cut, 2), call.small_calls())
                      for name, (code, call) in ended.items()}), flush=True)


def in_phase(phase, address, regions):
    """Makes a call of faults_phases.py, or holds what a client can hold, until it is killed."""
    import faults_phases
    import warpline
    if phase != "holding":
        caller = faults_phases.Blocking(phase, address, regions)
        caller.begin()
        caller.end()
        return
    with warpline.connect(address, shared_memory="always", regions=regions) as client:
        array = client.empty((1024, 1024), "f4")
        array[...] = 1
        held = [array, client.put(array, ttl=faults_phases.TTL_SECONDS), client.transpose(array),
                client.transpose(array, keep=True, ttl=faults_phases.TTL_SECONDS)]
        print("there", flush=True)
        sys.stdin.readline()
        del held


if __name__ == "__main__":
    globals()[sys.argv[2]](*sys.argv[3:])
