// How far estimates are from what programs take: cost_bench [cpu|cuda]
//
// Each line is one step on a large array. The array is made on the device, from a broadcast addition and a
// cast, and the greatest element of the result is found there, so that little is transferred;
// the time of the same program without the step is taken off. A ratio above 1 means that the estimate is too
// high.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/map/pair.h"
#include "kernels/operand_sizes.h"
#include "tests/bench/timed_lane.h"

namespace warpline {
namespace {

using bench::Fail;
using bench::MakeBackend;
using bench::Now;
using Bench = bench::TimedLane;

TensorSpec Spec(DType dtype, const Shape& shape) {
  return {dtype, shape, static_cast<std::size_t>(shape.Count()) * SizeOf(dtype)};
}

// Adds a step whose result is a tensor of its own; returns the tensor.
int Append(Program& program, Problem problem, std::vector<int> inputs, const TensorSpec& result,
           std::string_view variant = "") {
  program.tensors.push_back(result);
  const int output = static_cast<int>(program.tensors.size()) - 1;
  program.steps.push_back({.problem = std::move(problem),
                           .variant = std::string(variant),
                           .inputs = std::move(inputs),
                           .output = output,
                           .scalars = {}});
  return output;
}

int AppendMax(Program& program, int x) {
  const TensorSpec spec = program.tensors[x];
  const ReduceProblem max{.op = ReduceOp::kMax,
                          .dtype = spec.dtype,
                          .shape = spec.shape,
                          .axes_mask = (1u << spec.shape.rank) - 1};
  return Append(program, max, {x}, Spec(max.OutDType(), {}));
}

// rows x cols of `dtype`, from a column and a row of f32.
Program Made(DType dtype, const Shape& shape) {
  Program program;
  program.num_inputs = 2;
  program.tensors = {Spec(DType::kF32, {shape[0], 1}), Spec(DType::kF32, {1, shape[1]})};
  int x =
      Append(program, ToMap({.op = PairOp::kAdd, .shape = shape, .x_strides = {1, 0}, .y_strides = {0, 1}}),
             {0, 1}, Spec(DType::kF32, shape));
  if (dtype != DType::kF32) {
    x = Append(program,
               ToMap({.op = PairOp::kCast,
                      .dtype = DType::kF32,
                      .out_dtype = dtype,
                      .shape = shape,
                      .x_strides = RowMajorStrides(shape)}),
               {x}, Spec(dtype, shape));
  }
  return program;
}

void Report(Bench& bench, const std::string& name, DType dtype, const Shape& shape, const Problem& problem,
            const TensorSpec& result, std::string_view variant) {
  Program base = Made(dtype, shape);
  const int x = static_cast<int>(base.tensors.size()) - 1;
  Program with = base;
  base.outputs = {AppendMax(base, x)};
  if (result.bytes == base.tensors[x].bytes) base.outputs.push_back(AppendMax(base, x));
  const bool binary = InputSizes(problem).size() > 1;
  const int y = Append(with, problem, binary ? std::vector<int>{x, x} : std::vector<int>{x}, result, variant);
  with.outputs = {AppendMax(with, x), AppendMax(with, y)};
  if (!bench.backend().CheckVariant(problem, variant).ok()) return;
  if (!bench.backend().Compile(with, PlanMemory(with)).ok()) {
    std::printf("| %s | does not fit |\n", name.c_str());
    return;
  }
  const double estimate = bench.Estimate(with) - bench.Estimate(base);
  if (estimate > 100) {
    std::printf("| %s %s | estimate %.0f s |\n", name.c_str(), std::string(variant).c_str(), estimate);
    return;
  }
  const double seconds = bench.Seconds(with) - bench.Seconds(base);
  std::printf("| %s | %s | %.3f | %.3f | %.2f |\n", name.c_str(),
              variant.empty() ? "choice" : std::string(variant).c_str(), estimate * 1e3, seconds * 1e3,
              estimate / seconds);
  std::fflush(stdout);
}

void ForEachVariant(Bench& bench, Op op, DType dtype, const std::function<void(std::string_view)>& f) {
  for (const VariantInfo& variant : bench.backend().Variants()) {
    if (variant.op != op) continue;
    if (std::find(variant.dtypes.begin(), variant.dtypes.end(), dtype) != variant.dtypes.end()) {
      f(variant.name);
    }
  }
}

std::string Title(std::string_view op, DType dtype, const Shape& shape, const std::string& more = "") {
  return std::string(op) + " " + std::string(Name(dtype)) + " " + ToString(shape) + more;
}

void Transposes(Bench& bench, std::int64_t n) {
  for (DType dtype : {DType::kF32, DType::kU8, DType::kF64}) {
    for (const Shape& shape : {Shape{n, n}, Shape{n * n / 2, 2}, Shape{2, n * n / 2}}) {
      TransposeProblem problem{.dtype = dtype, .shape = shape};
      problem.perm = {1, 0};
      ForEachVariant(bench, Op::kTranspose, dtype, [&](std::string_view variant) {
        Report(bench, Title(Name(Op::kTranspose), dtype, shape), dtype, shape, problem,
               Spec(dtype, problem.OutputShape()), variant);
      });
    }
  }
}

void Gemms(Bench& bench, std::int64_t n) {
  const bool cuda = bench.backend().name() == "cuda";
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8}) {
    const GemmProblem problem{.dtype = dtype, .m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
    const Shape shape{n, n};
    ForEachVariant(bench, Op::kGemm, dtype, [&](std::string_view variant) {
      Report(bench, Title(Name(Op::kGemm), dtype, shape), dtype, shape, problem,
             Spec(problem.OutDType(), shape), variant);
    });
  }
  if (!cuda) {
    const GemmProblem large{.m = 2048, .n = 2048, .k = 2048, .lda = 2048, .ldb = 2048, .ldc = 2048};
    for (const char* variant : {"openblas", "reference"}) {
      Report(bench, "gemm f32 [2048,2048]", DType::kF32, {2048, 2048}, large, Spec(DType::kF32, {2048, 2048}),
             variant);
    }
  }
  // Many small products, and long thin ones.
  const std::int64_t count = n * n / 64;
  GemmProblem small{.m = 8, .n = 8, .k = 8, .lda = 8, .ldb = 8, .ldc = 8};
  small.batch = GemmBatch::Dense(count);
  const GemmProblem thin{.m = n * 8, .n = 8, .k = 8, .lda = 8, .ldb = 8, .ldc = 8};
  GemmProblem dot{.m = n, .n = n, .k = 8, .lda = n, .ldb = n, .ldc = n};
  dot.trans_a = true;
  ForEachVariant(bench, Op::kGemm, DType::kF32, [&](std::string_view variant) {
    Report(bench, "gemm f32 8 x 8, batch " + std::to_string(count), DType::kF32, {count * 8, 8}, small,
           Spec(DType::kF32, {count * 8, 8}), variant);
    Report(bench, "gemm f32 thin", DType::kF32, {n * 8, 8}, thin, Spec(DType::kF32, {n * 8, 8}), variant);
    Report(bench, "gemm f32 outer", DType::kF32, {n, n}, dot, Spec(DType::kF32, {n, n}), variant);
  });
}

void Reductions(Bench& bench, std::int64_t n) {
  const auto report = [&](ReduceOp op, DType dtype, const Shape& shape, std::uint32_t axes) {
    ReduceProblem problem{.op = op, .dtype = dtype, .shape = shape, .axes_mask = axes};
    ForEachVariant(bench, Op::kReduce, dtype, [&](std::string_view variant) {
      Report(bench,
             Title(Name(Op::kReduce), dtype, shape,
                   " " + std::string(Name(op)) +
                       (axes == 3   ? " all"
                        : axes == 1 ? " axis 0"
                                    : " axis 1")),
             dtype, shape, problem, Spec(problem.OutDType(), problem.OutputShape(false)), variant);
    });
  };
  const Shape square{n, n};
  for (std::uint32_t axes : {3u, 1u, 2u}) report(ReduceOp::kSum, DType::kF32, square, axes);
  for (DType dtype : {DType::kF16, DType::kF64, DType::kI32, DType::kU8}) {
    report(ReduceOp::kSum, dtype, square, 2);
  }
  for (ReduceOp op :
       {ReduceOp::kMax, ReduceOp::kProd, ReduceOp::kArgmax, ReduceOp::kVar, ReduceOp::kLogSumExp}) {
    report(op, DType::kF32, square, 2);
  }
  report(ReduceOp::kSum, DType::kF32, {n * n / 2, 2}, 2);
  report(ReduceOp::kSum, DType::kF32, {2, n * n / 2}, 1);
}

void Elementwise(Bench& bench, std::int64_t n) {
  const Shape shape{n, n};
  const Strides dense = RowMajorStrides(shape);
  for (DType dtype : {DType::kF32, DType::kU8, DType::kF64, DType::kF16}) {
    Report(bench, Title("add", dtype, shape), dtype, shape,
           ToMap({.op = PairOp::kAdd,
                  .dtype = dtype,
                  .out_dtype = dtype,
                  .shape = shape,
                  .x_strides = dense,
                  .y_strides = dense}),
           Spec(dtype, shape), "");
    Report(bench, Title("cast", dtype, shape, " to f16"), dtype, shape,
           ToMap({.op = PairOp::kCast,
                  .dtype = dtype,
                  .out_dtype = DType::kF16,
                  .shape = shape,
                  .x_strides = dense}),
           Spec(DType::kF16, shape), "");
  }
}

// 64 KiB from the client: review A5 of the engine's first form.
void Bomb(Bench& bench, std::int64_t n, std::string_view variant) {
  Program program = Made(DType::kF32, {n, n});
  const int x = static_cast<int>(program.tensors.size()) - 1;
  ReduceProblem sum{.dtype = DType::kF32, .shape = {n, n}, .axes_mask = 3};
  for (int i = 0; i < 62; ++i) {
    program.outputs.push_back(Append(program, sum, {x}, Spec(DType::kF32, {}), variant));
  }
  const double estimate = bench.Estimate(program);
  std::printf("| bomb, %d x %d, 62 %s sums | | %.0f |", static_cast<int>(n), static_cast<int>(n),
              std::string(variant).c_str(), estimate * 1e3);
  if (estimate < 60) {
    const double seconds = bench.Seconds(program);
    std::printf(" %.0f | %.2f |", seconds * 1e3, estimate / seconds);
  }
  std::printf("\n");
}

int Main(bool cuda) {
  const double start = Now(/*thread=*/true);
  auto backend = MakeBackend(cuda);
  if (!backend.ok()) Fail(backend.status());
  std::printf("backend made in %.3f s of this thread\n\n", Now(/*thread=*/true) - start);
  Bench bench(std::move(*backend));
  std::printf("| step | variant | estimate ms | measured ms | ratio |\n|---|---|---|---|---|\n");
  Transposes(bench, cuda ? 8192 : 4096);
  Gemms(bench, cuda ? 4096 : 768);
  Reductions(bench, cuda ? 8192 : 4096);
  Elementwise(bench, cuda ? 8192 : 4096);
  Bomb(bench, cuda ? 1024 : 8192, cuda ? "naive" : "reference");
  return 0;
}

}  // namespace
}  // namespace warpline

int main(int argc, char** argv) { return warpline::Main(argc > 1 && std::strcmp(argv[1], "cuda") == 0); }
