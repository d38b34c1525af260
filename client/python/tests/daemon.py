"""A real warplined of our own, on a free port."""

import os
import re
import signal
import subprocess

import numpy as np
import pytest

import warpline


class Daemon:
    """Started with $WARPLINED and flags; a context manager that ends it, and checks that it ends well."""

    def __init__(self, *flags):
        path = os.environ.get("WARPLINED")
        if not path:
            pytest.skip("set WARPLINED to the daemon's path")
        backend = os.environ.get("WARPLINE_TEST_BACKEND", "cpu")
        self.process = subprocess.Popen(
            [path, "--listen=127.0.0.1:0", "--metrics-listen=", f"--backend={backend}", *flags],
            stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        ready = re.match(r"READY grpc=(\S+) metrics=\S* backend=(\S+)", line)
        assert ready, f"the daemon is not ready: {line!r}"
        self.address, self.backend = ready.groups()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            assert self.process.wait(timeout=60) == 0, "the daemon did not end well"
        finally:
            self.process.kill()
            self.process.stdout.close()


def slow_program(backend):
    """A tensor that takes a second or so to compute, of little to send."""
    size, variant, steps = (2000, "naive", 60) if backend == "cuda" else (400, "reference", 20)
    a = np.full((size, size), 1 / size)
    program = warpline.program()
    tensor = program.input(a)
    for _ in range(steps):
        tensor = tensor.gemm(a, variant=variant)
    return tensor
