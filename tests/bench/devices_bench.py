"""What a second GPU gives: the figures of one daemon on one GPU and on all GPUs of the node, in turn.

Usage: devices_bench.py BIN_DIR [ROUNDS] [PROGRAM ...]. Each PROGRAM is a warplined; without any it is that of
BIN_DIR. Prints a line of JSON for each round of each, and last a table in Markdown with the medians.
"""

import json
import os
import statistics
import subprocess
import sys

import server

BIN = sys.argv[1]
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
PROGRAMS = sys.argv[3:] or [os.path.join(BIN, "warplined")]
SOCKET = "/tmp/devices_bench.sock"

# Arguments of `warpline bench`, whose figure is requests per second, or p50 in us for one at a time.
SMALL = ["--op", "transpose", "--shape", "32x32", "--channels", "4", "--concurrency", "64"]
IN_REGIONS = ["--transport", "shm", "--duration", "1500ms", "--warmup", "500ms"]
LOADS = {
    "32x32 f32, 64 in flight, requests/s": (SMALL + ["--duration", "1500ms", "--warmup", "500ms"], server.rate),
    "32x32 f32 over unix, 64 in flight, requests/s": (["unix"] + SMALL + ["--duration", "1500ms", "--warmup", "500ms"],
                                                      server.rate),
    "32x32 f32 alone, us": (["--shape", "32x32", "--duration", "700ms", "--warmup", "300ms"], server.p50_us),
    "8192^2 f32 in shared memory, alone, us": (["unix", "--shape", "8192x8192"] + IN_REGIONS, server.p50_us),
    "8192^2 f32 in shared memory, 8 in flight, requests/s": (
        ["unix", "--shape", "8192x8192", "--concurrency", "8"] + IN_REGIONS, server.rate),
    "f32 4096^3 in shared memory, 8 in flight, requests/s": (
        ["unix", "--op", "gemm", "--shape", "4096x4096x4096", "--concurrency", "8"] + IN_REGIONS, server.rate),
    "bf16 8192^3 in shared memory, 8 in flight, requests/s": (
        ["unix", "--op", "gemm", "--dtype", "bf16", "--shape", "8192x8192x8192", "--concurrency", "8"] + IN_REGIONS,
        server.rate),
}


def devices_bench(address, *what):
    done = subprocess.run([os.path.join(BIN, "devices_bench"), address, *what], capture_output=True, text=True,
                          timeout=180)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def figures(program, devices):
    """The figures of one daemon on the devices with these CUDA ordinals."""
    found = {}
    os.environ["CUDA_VISIBLE_DEVICES"] = devices
    with server.warplined(BIN, f"--listen=unix:{SOCKET}", "--region-bytes=8G", backend="cuda", program=program) as measured:
        tcp = measured.address
        for name, (flags, figure) in LOADS.items():
            measured.address = f"unix:{SOCKET}" if flags[0] == "unix" else tcp
            found[name] = figure(measured.bench(*[flag for flag in flags if flag != "unix"]))
        for name, seconds in devices_bench(tcp, "products", "4096").items():
            found[f"bf16 4096^3 resident, {name}, us"] = seconds * 1e6
        for name, rate in devices_bench(tcp, "queries", "64").items():
            found[f"64 clients search one matrix, {name.replace('_', ' ')}"] = rate
    return found


def main():
    count = len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.splitlines())
    every = ",".join(str(i) for i in range(count))
    columns = [(program, devices) for program in PROGRAMS for devices in dict.fromkeys(["0", every])]
    rounds = {column: [] for column in columns}
    for _ in range(ROUNDS):
        for column in columns:
            rounds[column].append(figures(*column))
            # A run that is cut short has not been in vain.
            print(json.dumps({"program": column[0], "devices": column[1], **rounds[column][-1]}), flush=True)
    print("| figure | " + " | ".join(f"{os.path.basename(os.path.dirname(os.path.dirname(os.path.abspath(p))))}, "
                                     f"GPUs {d}" for p, d in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    names = dict.fromkeys(name for column in columns for found in rounds[column] for name in found)
    for name in names:
        cells = []
        for column in columns:
            values = [found[name] for found in rounds[column] if name in found]
            cells.append(f"{statistics.median(values):.1f}" if values else "-")
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
