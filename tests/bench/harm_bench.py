"""Small requests beside a client that does not read its results, and beside a giant that waits for memory.

Usage: harm_bench.py BIN_DIR [--backend NAME] [--old PATH] [--rounds N] [--seconds S]. --old names an older warplined,
which is measured in the same rounds. The load is that of tiny_bench.py: 32x32 f32 transposes, 64 in flight over 4
channels. A round starts each server afresh and takes the rate three times:

  normal   nothing else happens
  unread   another connection has asked for 96 results of 8 MiB and reads none of them: they keep three quarters of the
           staging memory
  giant    besides, a transpose of 256 MiB has arrived and waits for memory that only the unread results could free

Every second round takes them in the order unread, giant, normal. Before and after each figure the script asks the
server whether the harm is there, and fails if it is not. It prints a table of each round. The median ratios to the
normal rate must be at least 0.9; if those of BIN_DIR's server are less, the script exits with 1. Needs Python alone.
"""

import argparse
import functools
import os
import statistics
import sys
import time

import http2
import server

MIB = 1 << 20
LEAST_RATIO = 0.9
RESULTS, ROWS, COLS = 96, 2048, 1024  # f32
UNREAD_BYTES = RESULTS * ROWS * COLS * 4
GIANT_SIDE = 8192
# Staging memory in which the unread results leave one block of 256 MiB, and the giant needs two: for its operand and
# its result. More would be admitted, so that the memory is all that is short.
FLAGS = ["--max-inline-bytes=256M", "--pinned-bytes=1G", "--max-job-bytes=8G"]
PINNED, ADMITTED = 'warpline_pinned_bytes{state="used"', 'warpline_admission_bytes{state="used"'
PATIENCE_SECONDS = 20


def varint(value):
    low = b""
    while value >= 128:
        low += bytes([value & 127 | 128])
        value >>= 7
    return low + bytes([value])


def part(number, payload):
    """A field of a protobuf message that has a length."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def tensor(rows, cols):
    """A warpline.v1.Tensor of zeros, f32."""
    return b"\x08\x0c" + part(2, varint(rows) + varint(cols)) + part(8, bytes(4 * rows * cols))


@functools.cache
def giant():
    return part(1, tensor(GIANT_SIDE, GIANT_SIDE))


def await_true(what, condition):
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"after {PATIENCE_SECONDS} s it is not so that {what}")
        time.sleep(0.02)


class Harm:
    """What the small requests suffer from, on connections of its own. The server is idle again after `end`."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.reader = self.uploader = None

    def begin_unread(self):
        # An outer product: the request is a thousandth of its result.
        message = part(1, tensor(ROWS, 1)) + part(2, tensor(1, COLS))
        self.reader = http2.Connection(self.daemon.port, takes_results=False)
        for _ in range(RESULTS):
            self.reader.start(b"/warpline.v1.KernelService/Gemm", message)
        await_true("all results are computed", lambda: self.daemon.metric("warpline_lane_busy") == 0
                   and self.daemon.metric("warpline_queue_depth") == 0
                   and self.daemon.metric(PINNED) >= UNREAD_BYTES)

    def begin_giant(self):
        self.uploader = http2.Connection(self.daemon.port)
        self.uploader.start(b"/warpline.v1.KernelService/Transpose", giant())
        await_true("the giant waits", lambda: self.daemon.metric("warpline_queue_depth") == 1)

    def verify(self):
        """Fails unless the harm is as it was begun. No small request may be in progress."""
        unread, waiting = self.reader is not None, self.uploader is not None
        # A giant that waits may have taken the free block already.
        most_staged = UNREAD_BYTES * unread + 4 * GIANT_SIDE ** 2 * waiting + MIB
        found = {"calls open": (self.reader.open_streams() if unread else 0)
                 + (self.uploader.open_streams() if waiting else 0),
                 "jobs waiting": self.daemon.metric("warpline_queue_depth"),
                 "MiB staged": self.daemon.metric(PINNED) / MIB}
        if (found["calls open"] != RESULTS * unread + waiting or found["jobs waiting"] != waiting
                or not UNREAD_BYTES * unread <= found["MiB staged"] * MIB <= most_staged):
            raise RuntimeError(f"not the harm that was begun (unread results {unread}, giant {waiting}): {found}")

    def end(self):
        for connection in (self.uploader, self.reader):
            if connection is not None:
                connection.close()
        self.reader = self.uploader = None
        await_true("all memory is free again", lambda: self.daemon.metric(PINNED) == 0
                   and self.daemon.metric(ADMITTED) == 0 and self.daemon.metric("warpline_queue_depth") == 0)


def measure(daemon, seconds, harmed_first):
    """The rates of small requests: normal, beside unread results, and beside the giant too."""
    harm = Harm(daemon)
    steps = {"normal": lambda: None, "unread": harm.begin_unread, "giant": harm.begin_giant}
    rates = {}
    for name in ("unread", "giant", "normal") if harmed_first else ("normal", "unread", "giant"):
        if name == "normal":
            harm.end()
        steps[name]()
        harm.verify()
        rates[name] = server.rate(daemon.bench("--op", "transpose", "--shape", "32x32", "--channels", "4",
                                               "--concurrency", "64", "--duration", f"{seconds}s", "--warmup", "300ms"))
        await_true("the small requests have ended", lambda: daemon.metric("warpline_lane_busy") == 0)
        harm.verify()
    harm.end()
    return rates


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--old")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    arguments = parser.parse_args()
    programs = {"new": os.path.join(arguments.bin_dir, "warplined")} | ({"old": arguments.old} if arguments.old else {})
    found = {name: [] for name in programs}
    print("| round | server | normal/s | unread/s | ratio | unread and giant/s | ratio |\n" + "|---" * 7 + "|")
    begin = time.monotonic()
    for i in range(arguments.rounds):
        for name, program in programs.items():
            with server.warplined(arguments.bin_dir, *FLAGS, backend=arguments.backend, program=program,
                                  metrics="127.0.0.1:0") as daemon:
                rates = measure(daemon, arguments.seconds, harmed_first=i % 2 == 1)
                backend = daemon.backend
            found[name].append(rates)
            print(f"| {i + 1} | {name} | {rates['normal']:.0f} | {rates['unread']:.0f} "
                  f"| {rates['unread'] / rates['normal']:.2f} | {rates['giant']:.0f} "
                  f"| {rates['giant'] / rates['normal']:.2f} |", flush=True)
    lowest = {}
    for name, rounds in found.items():
        unread, giants = (statistics.median(rates[harm] / rates["normal"] for rates in rounds)
                          for harm in ("unread", "giant"))
        lowest[name] = min(unread, giants)
        print(f"{name}, {backend}, {os.cpu_count()} cores: median of {len(rounds)} ratios {unread:.2f} beside unread "
              f"results, {giants:.2f} beside the waiting giant too (must be >= {LEAST_RATIO})")
    print(f"{time.monotonic() - begin:.0f} s in all")
    if lowest["new"] < LEAST_RATIO:
        sys.exit(f"new: a median ratio of {lowest['new']:.2f} is less than {LEAST_RATIO}")


if __name__ == "__main__":
    main()
