"""The processes of a benchmark: a server, and the load that `warpline bench` puts on it."""

import json
import os
import re
import signal
import subprocess
import urllib.request


class Server:
    """A running server, which ends with the block of its `with` statement."""

    def __init__(self, bin_dir, command, address=None):
        """Starts `command` and waits until it is ready. `bin_dir` holds the client, `warpline`. A server that does
        not print its address listens on `address`."""
        self.client = os.path.join(bin_dir, "warpline")
        # The libraries that tests/gpu/pack puts beside bin/. An older server has those of its own build.
        libraries = os.path.join(os.path.dirname(os.path.abspath(command[0])), "..", "lib")
        path = ":".join(filter(None, [libraries, os.environ.get("LD_LIBRARY_PATH")]))
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env=os.environ | {"LD_LIBRARY_PATH": path})
        ready = self.process.stdout.readline()
        if not ready.startswith("READY"):
            self.kill()
            raise RuntimeError(f"does not start: {' '.join(command)}")
        said = dict(re.findall(r"(\w+)=(\S+)", ready))
        self.address = said.get("grpc", address)
        self.metrics_address = said.get("metrics")
        self.backend = said.get("backend")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self):
        self.process.kill()
        self.process.wait()

    @property
    def port(self):
        return int(self.address.rsplit(":", 1)[1])

    def bench(self, *flags):
        """The report of one `warpline bench`, in which no request may have failed."""
        done = subprocess.run([self.client, "--server", self.address, "bench", "--json", "--deadline", "60s", *flags],
                              capture_output=True, text=True, timeout=180)
        if done.returncode != 0:
            raise RuntimeError(f"bench {flags}: {done.stderr}")
        report = json.loads(done.stdout)
        if report.get("errors"):
            raise RuntimeError(f"bench {flags}: errors {report['errors']}")
        return report

    def metric(self, series):
        """The sum of the series that begin with `series`, as in 'warpline_pinned_bytes{state="used"'."""
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics", timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        values = [float(line.rsplit(" ", 1)[1]) for line in lines
                  if line.startswith((series + " ", series + "{", series + ",", series + "}"))]
        if not values:
            raise RuntimeError(f"there is no metric {series}")
        return sum(values)

    def peak_memory_mib(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) / 1024


def warplined(bin_dir, *flags, backend, program=None, address="127.0.0.1:0", metrics=""):
    """A warplined that serves echoes too: that of `bin_dir`, or `program`."""
    return Server(bin_dir, [program or os.path.join(bin_dir, "warplined"), f"--listen={address}",
                            f"--metrics-listen={metrics}", f"--backend={backend}", "--echo", *flags])


def echo_server(bin_dir, model, address):
    """tests/bench/echo_server.cc, which names the models."""
    return Server(bin_dir, [os.path.join(bin_dir, "echo_server"), model, address], address)


def rate(report):
    return report["requests_per_second"]


def p50_us(report):
    return report["latency_seconds"]["p50"] * 1e6
