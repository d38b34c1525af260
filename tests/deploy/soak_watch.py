"""Samples of a daemon, once a second, and what its memory has done over them."""

import math
import threading
import time

MIB = 1 << 20
# Of /metrics, by the names in the summary.
GAUGES = {"in_flight": "warpline_requests_in_flight", "admitted": 'warpline_admission_bytes{state="used"}',
          "pinned": 'warpline_pinned_bytes{state="used"}', "resident": "warpline_resident_bytes",
          "region": "warpline_region_bytes"}


class Watch(threading.Thread):
    """Public: samples, dictionaries with `at`, seconds since the beginning; failed, why there are no more of them."""

    def __init__(self, daemon, staging_bytes):
        super().__init__(daemon=True)
        self.samples, self.failed = [], None
        self._daemon, self._staging_bytes, self._ended = daemon, staging_bytes, threading.Event()
        self.start()

    def run(self):
        begun = time.monotonic()
        while not self._ended.wait(1):
            try:
                self.samples.append({"at": time.monotonic() - begun} | self._sample())
            except (OSError, SystemExit) as error:
                self.failed = str(error)
                return

    def _sample(self):
        metrics = self._daemon.metrics()
        return {**self._daemon.status(), "own": own_bytes(self._daemon, self._staging_bytes),
                "device": metrics.device_bytes(), **{name: metrics.total(series) for name, series in GAUGES.items()}}

    def end(self):
        self._ended.set()
        self.join()


def own_bytes(daemon, staging_bytes):
    """Resident memory without shared regions, which are the clients', and without staging memory, which is the
    daemon's from the start and becomes resident page by page as it is used."""
    status = daemon.status()
    return status["VmRSS"] - status.get("RssShmem", 0) - daemon.resident_of_mappings(staging_bytes)


def quarters(samples):
    """The samples in four parts of equal length in time."""
    first, last = samples[0]["at"], samples[-1]["at"]
    parts = [[] for _ in range(4)]
    for sample in samples:
        parts[min(3, int(4 * (sample["at"] - first) / max(last - first, 1e-9)))].append(sample)
    return parts


def trimmed_peak(values):
    """The greatest value that one in twenty exceeds."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def slope_per_hour(samples, name):
    """Of the straight line through the values of that name (least squares)."""
    times, values = [s["at"] for s in samples], [s[name] for s in samples]
    mean_t, mean_v = sum(times) / len(times), sum(values) / len(values)
    spread = sum((t - mean_t) ** 2 for t in times)
    return 3600 * sum((t - mean_t) * (v - mean_v) for t, v in zip(times, values)) / spread if spread else 0.0
