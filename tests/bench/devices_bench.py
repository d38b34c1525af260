"""What more GPUs give: the figures of one daemon on 1, 2, 4, ... and all GPUs of the node, in turn.

Usage: devices_bench.py BIN_DIR [ROUNDS] [PROGRAM ...]. Each PROGRAM is a warplined; without any it is that of
BIN_DIR. Prints a line of JSON for each round of each, and last a table in Markdown with the medians, and in brackets the
ratio to one GPU.
"""

import json
import os
import statistics
import subprocess
import sys
import time

import server

BIN = sys.argv[1]
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
PROGRAMS = sys.argv[3:] or [os.path.join(BIN, "warplined")]
SOCKET = "/tmp/devices_bench.sock"

# Small requests come from several clients: one cannot keep eight GPUs busy.
PROCESSES = 4
IN_REGIONS = ["--transport", "shm", "--duration", "1500ms", "--warmup", "500ms"]
SMALL = ["--op", "transpose", "--shape", "32x32", "--channels", "4", "--duration", "1500ms", "--warmup", "500ms"]
# All clients together put so much.
PUT_GIB = 64


def loads(devices):
    """Arguments of `warpline bench`, whose figure is requests per second, or p50 in us for one at a time; "unix" stands
    for the unix socket."""
    shape, many = ["unix", "--shape", "8192x8192"], ["--concurrency", str(4 * devices)]
    return {
        "32x32 f32 alone, us": (["--shape", "32x32", "--duration", "700ms", "--warmup", "300ms"], server.p50_us),
        "8192^2 f32 in shared memory, alone, us": ([*shape, *IN_REGIONS], server.p50_us),
        "8192^2 f32 in shared memory, 4 in flight for each GPU, requests/s": ([*shape, *many, *IN_REGIONS], server.rate),
        "f32 4096^3 in shared memory, 4 in flight for each GPU, requests/s": (
            ["unix", "--op", "gemm", "--shape", "4096x4096x4096", *many, *IN_REGIONS], server.rate),
        "bf16 8192^3 in shared memory, 4 in flight for each GPU, requests/s": (
            ["unix", "--op", "gemm", "--dtype", "bf16", "--shape", "8192x8192x8192", *many, *IN_REGIONS], server.rate),
    }


def together(measured, in_flight):
    """Requests per second of several clients of small requests."""
    command = [measured.client, "--server", measured.address, "bench", "--json", "--deadline", "60s", *SMALL,
               "--concurrency", str(in_flight // PROCESSES)]
    clients = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    reports = [json.loads(client.communicate(timeout=180)[0]) for client in clients]
    return sum(server.rate(report) for report in reports)


def devices_bench(address, *what):
    done = subprocess.run([os.path.join(BIN, "devices_bench"), address, *what], capture_output=True, text=True,
                          timeout=300)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def of_process(pid):
    """Host memory at its peak, threads and descriptors."""
    with open(f"/proc/{pid}/status") as status:
        said = dict(line.split(":", 1) for line in status)
    return {"host memory of the daemon, MiB": int(said["VmHWM"].split()[0]) / 1024,
            "threads of the daemon": int(said["Threads"]), "descriptors of the daemon": len(os.listdir(f"/proc/{pid}/fd"))}


def figures(program, devices):
    """The figures of one daemon on the devices with these CUDA ordinals."""
    found, count = {}, len(devices.split(","))
    os.environ["CUDA_VISIBLE_DEVICES"] = devices
    begun = time.monotonic()
    with server.warplined(BIN, f"--listen=unix:{SOCKET}", "--region-bytes=8G", backend="cuda", program=program) as measured:
        found["READY, s"] = time.monotonic() - begun
        tcp = measured.address
        for in_flight in (64, 512):
            found[f"32x32 f32 from {PROCESSES} processes, {in_flight} in flight, requests/s"] = together(measured, in_flight)
        for name, (flags, figure) in loads(count).items():
            measured.address = f"unix:{SOCKET}" if flags[0] == "unix" else tcp
            found[name] = figure(measured.bench(*[flag for flag in flags if flag != "unix"]))
        for name, seconds in devices_bench(tcp, "products", "4096").items():
            found[f"bf16 4096^3 resident, {name}, us"] = seconds * 1e6
        for clients in (64, 256):
            for name, rate in devices_bench(tcp, "queries", str(clients)).items():
                found[f"{clients} clients search one matrix, {name.replace('_', ' ')}"] = rate
        for name, rate in devices_bench(f"unix:{SOCKET}", "puts", str(PUT_GIB)).items():
            found[f"a client for each GPU puts, {PUT_GIB} GiB together, {name.replace('_', ' ')}"] = rate
        found |= of_process(measured.process.pid)
    return found


def main():
    count = len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.splitlines())
    sizes = sorted({1, count, *(n for n in (2, 4) if n < count)})
    columns = [(program, ",".join(map(str, range(n)))) for program in PROGRAMS for n in sizes]
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
        medians = {column: statistics.median(found[name] for found in rounds[column] if name in found)
                   for column in columns if any(name in found for found in rounds[column])}
        cells = []
        for program, devices in columns:
            value, one = medians.get((program, devices)), medians.get((program, "0"))
            of_one = f" ({value / one:.2f})" if value and one and devices != "0" else ""
            cells.append("-" if value is None else f"{value:.1f}{of_one}")
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
