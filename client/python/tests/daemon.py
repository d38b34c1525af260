"""A real warplined of our own, on a free port."""

import os
import re
import signal
import subprocess
import time
import urllib.request

import numpy as np
import pytest

import warpline


class Daemon:
    """Started with $WARPLINED and flags; a context manager that ends it, and checks that it ends well."""

    def __init__(self, *flags):
        """Public: address, of gRPC; metrics, of HTTP; backend."""
        path = os.environ.get("WARPLINED")
        if not path:
            pytest.skip("set WARPLINED to the daemon's path")
        backend = os.environ.get("WARPLINE_TEST_BACKEND", "cpu")
        self.command = [path, "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0", f"--backend={backend}", *flags]
        self.start()

    def start(self):
        """Once more, after `stop`."""
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        ready = re.match(r"READY grpc=(\S+) metrics=(\S+) backend=(\S+)", line)
        assert ready, f"the daemon is not ready: {line!r}"
        self.address, self.metrics, self.backend = ready.groups()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            assert self.process.wait(timeout=60) == 0, "the daemon did not end well"
        finally:
            self.process.kill()
            self.process.stdout.close()

    def total(self, metric, label=""):
        """Of what the metric counts with that label, such as 'source="region"'."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{self.metrics}/metrics") as response:
            text = response.read().decode()
        series = re.findall(rf"^{metric}(\{{.*\}})? (\S+)$", text, re.M)
        return sum(float(value) for labels, value in series if label in labels)

    def wait_for_requests(self, count):
        """Returns when so many are in flight."""
        end = time.monotonic() + 60
        while True:
            now = self.total("warpline_requests_in_flight")
            if now == count:
                return
            assert time.monotonic() < end, f"{now} requests are in flight, not {count}"
            time.sleep(0.01)


def slow_program(backend):
    """A tensor that takes a second or more to compute, of little to send and to receive."""
    size, variant = (3000, "naive") if backend == "cuda" else (400, "reference")
    program = warpline.program()
    a = tensor = program.add(np.zeros((size, 1)), np.full((1, size), 1 / size))
    for _ in range(60):
        tensor = tensor.gemm(a, variant=variant)
    return tensor.sum()
