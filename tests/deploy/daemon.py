"""A daemon as the long tests see it: its process, its metrics, and its log."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

PATIENCE_SECONDS = 60
# Whatever http_proxy says: a proxy does not reach this machine's loopback address.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
# As gRPC names their threads, which it starts when it has use for them.
POOLS_OF_GRPC = ("default-executo", "resolver-execut", "event_engine", "timer_manager", "grpc_global_tim")
# What is zero when nothing is in progress and no client has anything on the server.
OF_WORK = ["warpline_requests_in_flight", "warpline_queue_depth", "warpline_lane_busy",
           'warpline_admission_bytes{state="used"}', 'warpline_pinned_bytes{state="used"}', "warpline_resident_bytes",
           "warpline_resident_tensors", "warpline_upload_bytes", "warpline_regions", "warpline_region_bytes", "warpline_owner_jobs",
           "warpline_owner_admission_bytes", "warpline_owner_resident_bytes", "warpline_owner_region_bytes"]


class Metrics(dict):
    """What /metrics says at one moment: values by series, such as 'warpline_pinned_bytes{state="used"}'."""

    def total(self, wanted):
        """The sum of a series, or of all series of a name. 0 if there are none."""
        if wanted in self:
            return self[wanted]
        return sum(value for series, value in self.items() if series.partition("{")[0] == wanted)

    def by_labels(self, name):
        """The values of a name, with their labels as dictionaries."""
        for series, value in self.items():
            found = re.fullmatch(rf"{name}{{(.*)}}", series)
            if found:
                yield dict(re.findall(r'(\w+)="([^"]*)"', found[1])), value

    def device_bytes(self):
        """Memory of the devices that jobs and resident tensors have now. 0 on the cpu backend."""
        return sum(value for labels, value in self.by_labels("warpline_device_memory_bytes")
                   if labels["state"] in ("pool_used", "resident_used"))

    def work(self):
        """Those of OF_WORK that are not zero, and the devices' memory."""
        found = {name: self.total(name) for name in OF_WORK} | {"device_bytes": self.device_bytes()}
        return {name: value for name, value in found.items() if value != 0}


def environment(path):
    """Of a program that may lie in what tests/gpu/pack makes, where its libraries are in lib/ beside bin/."""
    libraries = os.path.join(os.path.dirname(os.path.abspath(path)), "..", "lib")
    return os.environ | {"LD_LIBRARY_PATH": ":".join(filter(None, [libraries, os.environ.get("LD_LIBRARY_PATH")]))}


def wait_until(what, holds, seconds=PATIENCE_SECONDS):
    """Returns the seconds that it took until `holds()` was true; exits if it never is."""
    begun = time.monotonic()
    while not holds():
        if time.monotonic() > begun + seconds:
            sys.exit(f"after {seconds} s still not: {what}")
        time.sleep(0.05)
    return time.monotonic() - begun


class Daemon:
    """On free ports of the loopback address. It ends with this process, and with the `with` block at the latest."""

    def __init__(self, path, *flags, log, token="", prefix=(), listen="127.0.0.1:0", metrics="127.0.0.1:0", proxied="",
                 env=None):
        """log: the path of a file that its stderr is appended to. token: for its metrics. prefix: of the command, such
        as prlimit with its arguments, which has to become the daemon by exec. proxied: for --proxy-listen."""
        self.token, self.log, self.path = token, log, path
        guard = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        command = [*guard, *prefix, path, f"--listen={listen}", f"--metrics-listen={metrics}",
                   *([f"--proxy-listen={proxied}"] if proxied else []), *flags]
        with open(log, "ab") as out:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=out, text=True,
                                            env=environment(path) | (env or {}))
        ready = re.match(r"READY grpc=(\S+) metrics=(\S*) backend=\S+(?: proxy=(\S+))?", self.process.stdout.readline())
        if ready is None:
            self.kill()
            with open(log) as said:
                sys.exit(f"the daemon did not become ready: {said.read()}")
        # Of several addresses the one that is not a unix socket.
        self.addresses = ready[1].split(",")
        self.address = next((one for one in self.addresses if not one.startswith("unix:")), self.addresses[0])
        self.metrics_address, self.proxied_address = ready[2], ready[3] or ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
        self.process.stdout.close()

    @property
    def pid(self):
        return self.process.pid

    @property
    def port(self):
        return int(self.address.rpartition(":")[2])

    def kill(self):
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """SIGTERM. Returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE_SECONDS)

    def http(self, path, seconds=10):
        """The status and the text of an HTTP request; (0, "") if there is no answer."""
        request = urllib.request.Request(f"http://{self.metrics_address}{path}")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with DIRECT.open(request, timeout=seconds) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metrics(self):
        """What /metrics says. It is asked three times before that counts as an error."""
        for _ in range(3):
            status, text = self.http("/metrics")
            if status == 200:
                return Metrics((line.rpartition(" ")[0], float(line.rpartition(" ")[2]))
                               for line in text.splitlines() if not line.startswith("#") and "_bucket{" not in line)
        sys.exit(f"/metrics answers with {status}")

    def status(self):
        """Of /proc: bytes of memory, descriptors, threads, and which of these are in pools of gRPC's own."""
        with open(f"/proc/{self.pid}/status") as status:
            said = dict(line.split(":", 1) for line in status)
        kinds = {name: int(said[name].split()[0]) << 10 for name in ("VmRSS", "RssShmem") if name in said}
        names = self.thread_names()
        return kinds | {"threads": len(names), "descriptors": self.descriptors(),
                        "grpc_threads": sum(name.startswith(POOLS_OF_GRPC) for name in names)}

    def thread_names(self):
        names = []
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{self.pid}/task/{task}/comm") as name:
                names.append(name.read().strip())
        return names

    def resident_of_mappings(self, least):
        """Resident bytes of the anonymous mappings of so many bytes or more: of staging memory, if nothing else is so
        large."""
        total, large = 0, False
        with contextlib.suppress(OSError), open(f"/proc/{self.pid}/smaps") as smaps:
            for line in smaps:
                if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ (\d+)", line):
                    large = int(found[2], 16) - int(found[1], 16) >= least and found[3] == "0"
                elif large and line.startswith("Rss:"):
                    total += int(line.split()[1]) << 10
        return total

    def descriptors(self):
        with contextlib.suppress(FileNotFoundError):
            return len(os.listdir(f"/proc/{self.pid}/fd"))
        return 0

    def log_lines(self, level=None):
        """Lines of its log, those of one level or all."""
        with open(self.log, errors="replace") as log:
            return [line.rstrip("\n") for line in log if level is None or f" level={level} " in line]
