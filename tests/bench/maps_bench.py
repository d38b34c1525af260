#!/usr/bin/env python3
"""Maps on a daemon against PyTorch on the same GPU, or against NumPy on the CPU: device time of the program and p50 of
the request, with resident operands and results.

    tests/bench/maps_bench.py ADDRESS [--cpu] [--repeat 30]

Prints one line for each problem: device time, the other stages on the server and p50 in us, the rival's time, and how
many times as long it is as the device time.
"""

import argparse
import statistics
import sys
import time

import numpy as np

import warpline


def problems(gpu):
    """(name, arrays, expression of their tensors, function of the rival's module and arrays)."""
    rng = np.random.default_rng(1)
    normal = lambda *shape: rng.standard_normal(shape, dtype="f4")  # noqa: E731
    big = 64 << 20 if gpu else 4 << 20
    yield ("x*a+b, of 16 elements", [normal(16)], lambda t: t * 1.5 + 2.0, lambda m, x: x * 1.5 + 2.0)
    yield ("x*a+b", [normal(big)], lambda t: t * 1.5 + 2.0, lambda m, x: x * 1.5 + 2.0)
    yield ("where(x>0, exp(-x)*y, y/(x*x+1))", [normal(big), normal(big)],
           lambda t, u: warpline.where(t > 0, np.exp(-t) * u, u / (t * t + 1)),
           lambda m, x, y: m.where(x > 0, m.exp(-x) * y, y / (x * x + 1)))
    yield ("x+y", [normal(big), normal(big)], lambda t, u: t + u, lambda m, x, y: x + y)
    yield ("x to f16", [normal(big)], lambda t: t.astype("f2"),
           lambda m, x: x.astype("f2") if m is np else x.half())
    rows, columns = (1 << 20, 50) if gpu else (100_000, 50)
    yield ("standardise columns", [normal(rows, columns)],
           lambda t: (t - t.mean(axis=0)) / t.std(axis=0),
           lambda m, x: (x - x.mean(0)) / (x.std(0) if m is np else x.std(0, correction=0)))
    rows, columns = (16384, 4096) if gpu else (4096, 1000)
    yield ("softmax rows", [normal(rows, columns)],
           lambda t: np.exp(t - t.reduce("logsumexp", axis=1, keepdims=True)),
           lambda m, x: softmax(x) if m is np else m.softmax(x, 1))
    images = rng.integers(0, 256, (64 if gpu else 8, 512, 512, 3), dtype="u1")
    scale, shift = normal(3, 1, 1), normal(3, 1, 1)
    yield ("u8 NHWC to f32 NCHW, affine", [images, scale, shift],
           lambda t, a, b: t.transpose((0, 3, 1, 2)).astype("f4") * a + b,
           lambda m, x, a, b: x.transpose(0, 3, 1, 2) * a + b if m is np else x.permute(0, 3, 1, 2).float() * a + b)
    yield ("concat of two", [normal(rows, columns), normal(rows, columns)], lambda t, u: np.concatenate([t, u], axis=1),
           lambda m, x, y: np.concatenate([x, y], 1) if m is np else m.cat([x, y], 1))
    yield ("x[:, 1::2]", [normal(rows, columns)], lambda t: t[:, 1::2],
           lambda m, x: np.ascontiguousarray(x[:, 1::2]) if m is np else x[:, 1::2].contiguous())
    yield ("x[::-1] + y", [normal(rows, columns), normal(rows, columns)], lambda t, u: t[::-1] + u,
           lambda m, x, y: x[::-1] + y if m is np else x.flip(0) + y)
    yield ("lower triangle", [normal(rows, columns)], lambda t: np.tril(t), lambda m, x: m.tril(x))
    count = 64 << 20 if gpu else 10_000_000
    yield ("masked mean", [normal(count)],
           lambda t: warpline.where(t > 0, t, 0).sum() / (t > 0).reduce("count_nonzero"),
           lambda m, x: x.mean(where=x > 0) if m is np else m.where(x > 0, x, 0).sum() / (x > 0).sum())


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--repeat", type=int, default=30)
    flags = parser.parse_args()
    module = np
    if not flags.cpu:
        import torch
        module = torch
    print(f"{'problem':<34} {'device us':>10} {'stages us':>10} {'p50 us':>10} {module.__name__ + ' us':>10} {'ratio':>6}")
    with warpline.connect(flags.address) as c:
        for name, arrays, ours, theirs in problems(not flags.cpu):
            tensors = [c.put(x) for x in arrays]
            expression = ours(*tensors)
            program = warpline.program(expression)
            device, stages, whole = [], [], []
            for i in range(flags.repeat + 5):
                reports = []
                start = time.perf_counter()
                kept = c.run(program, keep=True, report=reports.append)
                end = time.perf_counter()
                if i == 0:
                    got = kept.numpy()
                kept.drop()
                if i >= 5:
                    times = reports[0].stage_times
                    device.append(times.device)
                    stages.append(times.convert + times.admission + times.queue + times.stage)
                    whole.append(end - start)
            rival, want = time_of(module, theirs, arrays, flags.repeat)
            np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-5)
            p50, mid, rest = (statistics.median(x) for x in (whole, device, stages))
            print(f"{name:<34} {mid * 1e6:10.0f} {rest * 1e6:10.0f} {p50 * 1e6:10.0f} {rival * 1e6:10.0f} {rival / mid:6.2f}", flush=True)
            for t in tensors:
                t.drop()


def time_of(module, function, arrays, repeat):
    """Median seconds of the rival, and its result."""
    times = []
    if module is np:
        for _ in range(repeat):
            start = time.perf_counter()
            want = function(module, *arrays)
            times.append(time.perf_counter() - start)
        return statistics.median(times), want
    tensors = [module.from_numpy(x).cuda() for x in arrays]
    for i in range(repeat + 5):
        begin, end = (module.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        want = function(module, *tensors)
        end.record()
        module.cuda.synchronize()
        if i >= 5:
            times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times), want.cpu().numpy()


if __name__ == "__main__":
    sys.exit(main())
