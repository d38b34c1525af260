"""Adds a row `torch` to the cases of a result of warpline-bench-kernels: the same problem by torch, on this GPU.

Usage: torch_column.py RESULT.json [--out FILE] [--rounds N]

Where torch or a GPU is missing it says so and leaves the file as it is. As in the benchmark: random data (normal; of
transpositions random too), rotating sets of buffers where the case rotated them, launches captured as a CUDA graph
of about 2 ms and timed by events, median of rounds. Each result is compared with one computed in another way.
"""

import argparse
import json
import math
import statistics
import sys


def dtype_of(torch, case):
    names = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "tf32": torch.float32,
             "f64": torch.float64}
    return names[case["dtype"]]


def operation(torch, case):
    """Shapes of the operands, the operation, and what to compare with: the same in f64; of a transposition the
    input."""
    shape = [int(size) for size in case["shape"]]
    if case["op"] == "transpose":
        return [shape], lambda x: x.t().contiguous(), lambda x: x
    if case["op"] == "gemm":
        m, n, k = shape
        return [(m, k), (k, n)], torch.matmul, lambda a, b: torch.matmul(a.double(), b.double())
    axes = {"all": None, "0": 0, "1": 1}[case["axes"]]
    if axes is None:
        return [shape], torch.sum, lambda x: x.double().sum()
    return [shape], lambda x: torch.sum(x, dim=axes), lambda x: x.double().sum(dim=axes)


def agrees(torch, case, got, want):
    if case["op"] == "transpose":
        return got.is_contiguous() and torch.equal(got.t(), want)
    rounding = {"f16": 2 ** -10, "bf16": 2 ** -7, "f32": 1e-4, "tf32": 4e-3, "f64": 1e-12}[case["dtype"]]
    error = (got.double() - want).norm() / want.norm().clamp_min(1)
    # A sum of signed numbers is small against what it was made of.
    slack = math.sqrt(case["flops"]) * 1e-6 if case["op"] == "reduce" else 0
    return bool(error <= rounding + slack)


def measure(torch, case, rounds):
    shapes, run, otherwise = operation(torch, case)
    dtype = dtype_of(torch, case)
    torch.backends.cuda.matmul.allow_tf32 = case["dtype"] == "tf32"
    sets = [[torch.randn(shape, dtype=dtype, device="cuda") for shape in shapes] for _ in range(int(case["slots"]))]
    if not agrees(torch, case, run(*sets[0]), otherwise(*sets[0])):
        raise RuntimeError("torch's result is not what it should be")

    def seconds(call):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    one = min(seconds(lambda: run(*sets[0])) for _ in range(3))
    launches = max(1, min(256, math.ceil(2e-3 / one)))
    if one < 20e-3:
        launches = math.ceil(launches / len(sets)) * len(sets)
    # The caching allocator hands out the same results again: each launch of the graph has its own as long as
    # they are kept, so keep one for each set.
    graph, results = torch.cuda.CUDAGraph(), [None] * len(sets)
    with torch.cuda.graph(graph):
        for i in range(launches):
            results[i % len(sets)] = None
            results[i % len(sets)] = run(*sets[i % len(sets)])
    seconds(graph.replay)
    return [seconds(graph.replay) / launches for _ in range(rounds)], launches


def add_row(case, times, launches):
    median = statistics.median(times)
    rate = (case["flops"] if case["unit"] == "FLOP/s" else case["bytes"]) / median
    row = {"name": "torch", "summary": "torch, the same problem", "is_baseline": True, "status": "ok",
           "seconds": median, "seconds_least": min(times), "seconds_greatest": max(times), "launches": launches,
           "rounds": len(times), "rate": rate, "roof_ratio": rate / case["roof"] if case["roof"] else 0,
           "baseline_ratio": 0}
    for other in case["rows"]:
        if other["status"] == "ok" and other["name"] == case["baseline"]:
            row["baseline_ratio"] = other["seconds"] / median
    case["rows"] = [other for other in case["rows"] if other["name"] != "torch"] + [row]
    for other in case["rows"]:
        if other["status"] == "ok":
            other["torch_ratio"] = median / other["seconds"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result")
    parser.add_argument("--out")
    parser.add_argument("--rounds", type=int, default=15)
    flags = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("skipped: torch is not installed")
        return 0
    if not torch.cuda.is_available():
        print("skipped: torch sees no GPU")
        return 0
    with open(flags.result, encoding="utf-8") as file:
        result = json.load(file)
    result["torch"] = torch.__version__
    failed = False
    for case in result["cases"]:
        try:
            times, launches = measure(torch, case, flags.rounds)
        except (RuntimeError, KeyError) as error:  # one case that fails must not cost the others
            print(f"{case['label']}: FAILED: {error}")
            failed = True
            continue
        row = add_row(case, times, launches)
        best = max((other for other in case["rows"] if other["status"] == "ok" and not other["is_baseline"]),
                   key=lambda other: other["rate"], default=None)
        ours = f"; {best['name']} is {best['torch_ratio']:.2f} times as fast" if best else ""
        print(f"{case['label']}: torch {row['seconds'] * 1e6:.2f} us{ours}")
        torch.cuda.empty_cache()
    with open(flags.out or flags.result, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
