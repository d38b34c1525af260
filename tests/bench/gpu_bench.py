"""The figures of issue "One request, end to end", measured on one GPU in one run.

Usage: gpu_bench.py BIN_DIR OUT_DIR. Clients are separate C++ processes (`warpline bench`); the rivals,
a Python gRPC service and Arrow Flight over torch, run in the same run if rivals/serve_baseline.py is given by
$WARPLINE_RIVALS. Writes OUT_DIR/benchmark.md and prints it.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import time

import server
from server import p50_us, rate

BIN, OUT = sys.argv[1], sys.argv[2]
LINES = []


def say(line=""):
    print(line, flush=True)
    LINES.append(line)


def daemon(*flags):
    return server.warplined(BIN, *flags, backend=os.environ.get("WARPLINE_TEST_BACKEND", "cuda"),
                            metrics="127.0.0.1:0")


def median_of(rounds, measure):
    return statistics.median(measure() for _ in range(rounds))


def server_models():
    say("## Server model: raw echo of 4 KiB, 64 in flight over 4 channels; and alone")
    say("| model | requests/s | p50 alone, us |\n|---|---|---|")
    flags = ["--op", "echo", "--shape", "32x32", "--duration", "2s", "--warmup", "500ms"]
    for name, model in (("async, one queue, nothing else", "async"), ("warplined", None), ("callback", "callback"),
                        ("sync, parsed messages", "sync")):
        with daemon() if model is None else server.echo_server(BIN, model, "127.0.0.1:50777") as measured:
            many = rate(measured.bench(*flags, "--channels", "4", "--concurrency", "64"))
            alone = p50_us(measured.bench(*flags))
            say(f"| {name} | {many:.0f} | {alone:.1f} |")


def cpus():
    say("## Threads (--cpus), 32x32: echo and transpose, alone and 64 in flight over 4 channels")
    say("| CPUs | echo p50 us | transpose p50 us | echo/s | transpose/s |\n|---|---|---|---|---|")
    flags = ["--shape", "32x32", "--duration", "700ms", "--warmup", "200ms"]
    crowd = flags + ["--channels", "4", "--concurrency", "64"]
    for count in (2, 4, 8):
        with daemon(f"--cpus={count}") as measured:
            say(f"| {count} | {p50_us(measured.bench('--op', 'echo', *flags)):.1f} "
                f"| {p50_us(measured.bench(*flags)):.1f} "
                f"| {rate(measured.bench('--op', 'echo', *crowd)):.0f} | {rate(measured.bench(*crowd)):.0f} |")


def stages():
    say("## Stage times of one warm 32x32 transpose, as the server reports them")
    path = os.path.join(OUT, "x.npy")
    import numpy
    numpy.save(path, numpy.random.rand(32, 32).astype(numpy.float32))
    with daemon() as measured:
        measured.bench("--shape", "32x32", "--duration", "500ms")
        for _ in range(3):
            done = subprocess.run([os.path.join(BIN, "warpline"), "--server", measured.address, "transpose", path, "-o",
                                   os.path.join(OUT, "y.npy"), "--timings", "--json"], capture_output=True, text=True)
            say("    " + done.stdout.strip())
    for name in ("x.npy", "y.npy"):
        os.remove(os.path.join(OUT, name))


def lanes():
    say("## Lanes (--lanes), 32x32: p50 alone, and 64 in flight over 4 channels")
    flags = ["--shape", "32x32", "--duration", "700ms", "--warmup", "200ms"]
    for count in (1, 2, 4, 8, 16):
        with daemon(f"--lanes={count}") as measured:
            say(f"- {count}: {p50_us(measured.bench(*flags)):.1f} us; "
                f"{rate(measured.bench(*flags, '--channels', '4', '--concurrency', '64')):.0f}/s")


def small():
    say("## 32x32 f32 transpose")
    alone = ["--shape", "32x32", "--duration", "700ms", "--warmup", "200ms"]
    crowd = alone + ["--channels", "4", "--concurrency", "64", "--duration", "2s"]
    # Latency differs from one server process to the next: several, and in each alternating rounds, so that both
    # see the same state of the machine.
    medians = []
    for _ in range(5):
        with daemon() as measured:
            rounds = [(p50_us(measured.bench("--op", "echo", *alone)), p50_us(measured.bench(*alone)))
                      for _ in range(3)]
            medians.append([statistics.median(column) for column in zip(*rounds)])
    echo, transpose = (statistics.median(column) for column in zip(*medians))
    each = ", ".join(f"{t:.1f}/{e:.1f} = {t / e:.2f}" for e, t in medians)
    say(f"- p50 alone, medians of 5 server processes: transpose {transpose:.1f} us, echo {echo:.1f} us, ratio "
        f"{transpose / echo:.2f} (must be <= 1.8); each: {each}")
    with daemon() as measured:
        echo, transpose = (statistics.median(column) for column in zip(*[
            (rate(measured.bench("--op", "echo", *crowd)), rate(measured.bench(*crowd))) for _ in range(3)]))
        say(f"- 64 in flight over 4 channels: transpose {transpose:.0f}/s, echo {echo:.0f}/s (must be >= 40,000/s)")


def large():
    say("## 8192x8192 f32 transpose inline (256 MiB each way)")
    flags = ["--shape", "8192x8192", "--requests", "8", "--warmup", "1s"]
    with daemon() as measured:
        rounds = [(p50_us(measured.bench("--op", "echo", *flags)), p50_us(measured.bench(*flags))) for _ in range(3)]
        echo, transpose = (statistics.median(column) for column in zip(*rounds))
        say(f"- transpose {transpose / 1e3:.1f} ms, raw unary echo {echo / 1e3:.1f} ms: "
            f"{echo / transpose:.2f} of the echo's speed (must be >= 0.7)")
        report = subprocess.run([os.path.join(BIN, "warpline"), "--server", measured.address, "bench", "--shape",
                                 "8192x8192", "--requests", "3"], capture_output=True, text=True, timeout=120)
        say("```\n" + report.stdout.strip() + "\n```")


def metrics_cost():
    say("## Cost of observing: 32x32 transpose, 64 in flight, timing off and on")
    flags = ["--shape", "32x32", "--channels", "4", "--concurrency", "64", "--duration", "1s", "--warmup", "300ms"]
    # Server processes differ more than the two settings do, so each round has fresh ones, in turns.
    ratios, rates = [], {0: [], 128: []}
    for i in range(8):
        pair = {}
        for sample in (0, 128) if i % 2 == 0 else (128, 0):
            with daemon(f"--timing-sample={sample}") as measured:
                pair[sample] = rate(measured.bench(*flags))
                rates[sample].append(pair[sample])
        ratios.append(100 * (1 - pair[128] / pair[0]))
    mean, error = statistics.mean(ratios), statistics.stdev(ratios) / len(ratios) ** 0.5
    say(f"- over gRPC: off {statistics.median(rates[0]):.0f}/s, one job in 128 {statistics.median(rates[128]):.0f}/s: "
        f"{mean:.2f} % slower, standard error {error:.2f} (8 pairs; must be < 1)")


def chain():
    side, rounds = 8192, 9
    say(f"## gemm -> transpose -> row sums, bf16 {side}^2 (256 MiB in, 16 KiB out)")
    with daemon() as measured:
        done = subprocess.run([os.path.join(BIN, "chain_bench"), measured.address, str(side), str(rounds)],
                              capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        ours = json.loads(done.stdout)
        echo = median_of(3, lambda: p50_us(measured.bench("--op", "echo", "--shape", "8192x8192", "--requests", "6")))
    one, three = ours["one_program_seconds"], ours["three_requests_seconds"]
    say(f"- one program {one * 1e3:.1f} ms, three requests {three * 1e3:.1f} ms: {three / one:.2f} times as fast; "
        f"a raw echo of as many bytes, there and back, {echo / 1e3:.1f} ms")
    done = subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__), "chain_rival.py"), str(side),
                           str(rounds)], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-500:])
    rival = json.loads(done.stdout)["seconds"]
    say(f"- the same in one method of a Python gRPC service over torch: {rival * 1e3:.1f} ms, {rival / one:.2f} times ours")


def rivals():
    path = os.environ.get("WARPLINE_RIVALS")
    say("## Rivals: Python grpcio + torch, Arrow Flight + torch")
    if not path:
        say("not run: WARPLINE_RIVALS is not set")
        return
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if re.search(r" (32x32|8192x8192|4096x4096) f32| req/s", line)]
    say("```\n" + "\n".join(lines or done.stdout.splitlines()[-5:] + done.stderr.splitlines()[-5:]) + "\n```")


def main():
    smi = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                         capture_output=True, text=True).stdout.strip()
    say(f"GPU and driver: {smi}; cores: {os.cpu_count()}; {time.strftime('%Y-%m-%d')}; "
        f"commit {os.environ.get('WARPLINE_COMMIT', 'unknown')}")
    say("Command: tests/gpu/run BUILD_DIR")
    failed = False
    parts = {part.__name__: part for part in (server_models, cpus, lanes, stages, small, large, metrics_cost,
                                              chain, rivals)}
    for part in [parts[name] for name in os.environ.get("WARPLINE_BENCH", ",".join(parts)).split(",")]:
        say()
        try:
            part()
        except Exception as error:  # one figure that fails must not cost the others
            say(f"{part.__name__} FAILED: {error}")
            failed = True
    with open(os.path.join(OUT, "benchmark.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(LINES) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
