"""What receiving costs: raw 4 KiB echoes of several server processes in turns.

Usage: receiving_bench.py BIN_DIR [--rounds N] [--servers NAME,...] [--seconds S] [--transports tcp,unix]

A server's name is a model of echo_server ("async", "generic", "callback", "sync"), or "warplined", or the path
of another warplined; flags of a warplined follow it behind "+", as in "warplined+--poll=on". Every round starts
each of them afresh, in alternating order, so that all see the same state of the machine. Prints one table per
transport: medians over the rounds, with the range in brackets, and the ratio to the first server.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile

FLAGS = ["--op", "echo", "--shape", "32x32"]


class Server:
    def __init__(self, bin_dir, name, address):
        path, *flags = name.split("+")
        if "warplined" in path:
            program = path if "/" in path else os.path.join(bin_dir, path)
            command = [program, "--echo", "--backend=cpu", "--listen=" + address, "--metrics-listen=", *flags]
        else:
            command = [os.path.join(bin_dir, "echo_server"), path, address]
        self.bin_dir, self.address = bin_dir, address
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if not self.process.stdout.readline().startswith("READY"):
            sys.exit(f"{name} does not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def bench(self, *flags):
        command = [os.path.join(self.bin_dir, "warpline"), "--server", self.address, "bench", "--json", *FLAGS, *flags]
        report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        if report.get("errors"):
            sys.exit(f"errors: {report['errors']}")
        return report


def measure(server, seconds):
    timing = ["--duration", f"{seconds}s", "--warmup", "300ms"]
    alone = server.bench(*timing)["latency_seconds"]["p50"] * 1e6
    before = server.cpu_seconds()
    crowd = server.bench("--channels", "4", "--concurrency", "64", *timing)
    used = server.cpu_seconds() - before
    # The warm-up's requests are in the CPU time, at the same rate as the others.
    return alone, crowd["requests_per_second"], used / (seconds + 0.3) / crowd["requests_per_second"] * 1e6


def cell(values, digits, first=None):
    middle = statistics.median(values)
    ratio = "" if first is None else f", {middle / statistics.median(first):.2f}"
    return f"{middle:.{digits}f} [{min(values):.{digits}f}-{max(values):.{digits}f}{ratio}]"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--servers", default="async,generic")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--transports", default="tcp,unix")
    arguments = parser.parse_args()
    names = arguments.servers.split(",")
    with tempfile.TemporaryDirectory() as folder:
        for transport in arguments.transports.split(","):
            address = "127.0.0.1:50778" if transport == "tcp" else f"unix:{folder}/echo"
            figures = {name: [] for name in names}
            for i in range(arguments.rounds):
                for name in names if i % 2 == 0 else reversed(names):
                    with Server(arguments.bin_dir, name, address) as server:
                        figures[name].append(measure(server, arguments.seconds))
            print(f"\n{transport}: {arguments.rounds} rounds of {arguments.seconds} s\n\n"
                  "| server | alone, p50 us | 64 in flight, requests/s | server CPU us a request |\n|---|---|---|---|")
            for name in names:
                columns, first = list(zip(*figures[name])), list(zip(*figures[names[0]]))
                reference = first if name != names[0] else (None, None, None)
                print(f"| {name} | {cell(columns[0], 1, reference[0])} | {cell(columns[1], 0, reference[1])} "
                      f"| {cell(columns[2], 1, reference[2])} |", flush=True)


if __name__ == "__main__":
    main()
