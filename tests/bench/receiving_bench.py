"""What receiving costs: raw 4 KiB echoes of several server processes in turns.

Usage: receiving_bench.py BIN_DIR [--rounds N] [--servers NAME,...] [--seconds S] [--transports tcp,unix]

A server's name is a model of echo_server ("async", "generic", "callback", "sync"), or "warplined", or the path
of another warplined; flags of a warplined follow it behind "+", as in "warplined+--poll=on". Every round starts
each of them afresh, in alternating order, so that all see the same state of the machine. Prints one table per
transport: medians over the rounds, with the range in brackets, and the ratio to the first server.
"""

import argparse
import statistics
import tempfile

import server


def start(bin_dir, name, address):
    path, *flags = name.split("+")
    if "warplined" not in path:
        return server.echo_server(bin_dir, path, address)
    return server.warplined(bin_dir, *flags, backend="cpu", address=address, program=path if "/" in path else None)


def measure(measured, seconds):
    flags = ["--op", "echo", "--shape", "32x32", "--duration", f"{seconds}s", "--warmup", "300ms"]
    alone = server.p50_us(measured.bench(*flags))
    before = measured.cpu_seconds()
    crowd = server.rate(measured.bench(*flags, "--channels", "4", "--concurrency", "64"))
    used = measured.cpu_seconds() - before
    # The warm-up's requests are in the CPU time, at the same rate as the others.
    return alone, crowd, used / (seconds + 0.3) / crowd * 1e6


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
                    with start(arguments.bin_dir, name, address) as measured:
                        figures[name].append(measure(measured, arguments.seconds))
            print(f"\n{transport}: {arguments.rounds} rounds of {arguments.seconds} s\n\n"
                  "| server | alone, p50 us | 64 in flight, requests/s | server CPU us a request |\n|---|---|---|---|")
            for name in names:
                columns, first = list(zip(*figures[name])), list(zip(*figures[names[0]]))
                reference = first if name != names[0] else (None, None, None)
                print(f"| {name} | {cell(columns[0], 1, reference[0])} | {cell(columns[1], 0, reference[1])} "
                      f"| {cell(columns[2], 1, reference[2])} |", flush=True)


if __name__ == "__main__":
    main()
