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


def dtype_of(torch, name):
    names = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "tf32": torch.float32,
             "f64": torch.float64, "c64": torch.complex64, "c128": torch.complex128, "bool": torch.bool,
             "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64}
    return names[name]


def is_float(name):
    return name in ("f16", "bf16", "f32", "tf32", "f64")


def transposition(case):
    perm = [int(axis) for axis in case["perm"].split(",")]
    if perm == sorted(perm):
        return lambda x: x.clone()
    return lambda x: x.permute(perm).contiguous()


def reduction(torch, case):
    """What a user of torch would write."""
    axes = tuple(range(len(case["shape"])))
    if case["axes"] != "all":
        axes = tuple(int(axis) for axis in case["axes"].split(","))
    one = axes[0] if len(axes) == 1 else None
    return {
        "sum": lambda x: torch.sum(x, dim=axes),
        "mean": lambda x: torch.mean(x, dim=axes, dtype=None if is_float(case["dtype"]) else torch.float64),
        "prod": lambda x: torch.prod(x, dim=one),
        "min": lambda x: torch.amin(x, dim=axes),
        "max": lambda x: torch.amax(x, dim=axes),
        "argmin": lambda x: torch.argmin(x, dim=one),
        "argmax": lambda x: torch.argmax(x, dim=one),
        "any": lambda x: torch.any(x, dim=axes),
        "all": lambda x: torch.all(x, dim=axes),
        "count_nonzero": lambda x: torch.count_nonzero(x, dim=axes),
        "norm1": lambda x: torch.linalg.vector_norm(x, 1, dim=axes),
        "norm2": lambda x: torch.linalg.vector_norm(x, 2, dim=axes),
        "norminf": lambda x: torch.linalg.vector_norm(x, math.inf, dim=axes),
        "sumsq": lambda x: torch.linalg.vector_norm(x, 2, dim=axes) ** 2,
        "var": lambda x: torch.var(x, dim=axes, correction=0),
        "std": lambda x: torch.std(x, dim=axes, correction=0),
        "logsumexp": lambda x: torch.logsumexp(x, dim=axes),
    }[case["reduce_op"]]


def product(torch, case):
    """With the epilogue fused where torch has a call for it."""
    half = case["dtype"] in ("f16", "bf16")
    batched, activation = case["batch"] > 1, case["activation"]
    if case["dtype"] == "i8" and batched:
        raise KeyError("torch has no batched product of i8")

    def run(a, b, bias=None):
        a, b = a.mT if case["trans_a"] else a, b.mT if case["trans_b"] else b
        if a.dtype == torch.int8:
            return torch._int_mm(a, b)
        if half and a.dtype != torch.float64 and case["out_dtype"] == "f32":
            return torch.mm(a, b, out_dtype=torch.float32)
        if bias is not None and half and activation != "none" and a.dtype != torch.float64:
            return torch._addmm_activation(bias, a, b, use_gelu=activation == "gelu")
        result = torch.matmul(a, b) if bias is None else torch.addmm(bias, a, b)
        if activation == "relu":
            return torch.relu(result)
        return torch.nn.functional.gelu(result, approximate="tanh") if activation == "gelu" else result
    return run


def elementwise(torch, case):
    if case["op"] == "cast":
        return lambda x: x.to(dtype_of(torch, case["out_dtype"]))
    if case["op"] == "scale":
        return lambda x: x * 1  # the factor is not known to the kernel
    return lambda x, y: x + y


def operands(case):
    """Shapes and types of the operands."""
    shape = [int(size) for size in case["shape"]]
    if case["op"] == "gemm":
        m, n, k = shape
        batch = [int(case["batch"])] if case["batch"] > 1 else []
        shapes = [batch + ([k, m] if case["trans_a"] else [m, k]), batch + ([n, k] if case["trans_b"] else [k, n])]
        return [(each, case["dtype"]) for each in shapes] + ([([n], case["out_dtype"])] if case["bias"] else [])
    if case["op"] == "add":
        second = [1 if axis in case["broadcast"] else size for axis, size in enumerate(shape)]
        return [(shape, case["dtype"]), (second, case["dtype"])]
    return [(shape, case["dtype"])]


def operation(torch, case):
    if case["op"] == "transpose":
        return transposition(case)
    if case["op"] == "reduce":
        return reduction(torch, case)
    return product(torch, case) if case["op"] == "gemm" else elementwise(torch, case)


def draw(torch, shape, name):
    dtype = dtype_of(torch, name)
    if is_float(name) or name in ("c64", "c128"):
        return torch.randn(shape, dtype=dtype, device="cuda")
    numbers = (50 * torch.randn(shape, device="cuda")).round()
    low = 0 if name in ("u8", "bool") else -100
    return numbers.clamp(low, 100).to(dtype)


def check(torch, case, inputs, got, run):
    """Whether it is the same problem: the shape, and for floats the values, computed in f64."""
    if case["op"] in ("cast", "scale", "add") or not is_float(case["dtype"]) or not got.is_floating_point():
        return
    if case["op"] == "transpose":
        perm = [int(axis) for axis in case["perm"].split(",")]
        good = got.is_contiguous() and got.permute([perm.index(i) for i in range(len(perm))]).equal(inputs[0])
    else:
        want = run(*(each.double() for each in inputs))
        rounding = {"f16": 2 ** -9, "bf16": 2 ** -6, "f32": 1e-4, "tf32": 4e-3, "f64": 1e-12}[case["dtype"]]
        if case.get("activation") == "gelu":
            rounding += 2 ** -9
        error = (got.double() - want).norm() / want.norm().clamp_min(1)
        # A sum of signed numbers is small against what it was made of.
        slack = math.sqrt(case["flops"]) * 1e-6 if case["op"] == "reduce" else 0
        good = bool(error <= rounding + slack)
    if not good:
        raise RuntimeError("torch's result is not what it should be")


def measure(torch, case, rounds):
    run = operation(torch, case)
    torch.backends.cuda.matmul.allow_tf32 = case["dtype"] == "tf32"
    sets = [[draw(torch, *each) for each in operands(case)] for _ in range(int(case["slots"]))]
    check(torch, case, sets[0], run(*sets[0]), run)

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
        except KeyError as error:  # nothing that torch has
            print(f"{case['label']}: {error}")
            continue
        except (RuntimeError, TypeError) as error:  # one case that fails must not cost the others
            print(f"{case['label']}: FAILED: {error}".splitlines()[0])
            failed = True
            torch.cuda.empty_cache()
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
