// Checks the kernel times that the server reports. Compares warpline_kernel_duration_seconds of a job with
// the time of the same kernel in a row of launches, without any event between them. Prints one line per
// problem; needs a GPU.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/bench/harness/check.h"
#include "kernels/bench/harness/device.h"
#include "kernels/bench/harness/timing.h"
#include "kernels/gpu/random_data.h"
#include "server/device/cuda_program.h"
#include "tests/bench/engine.h"

namespace warpline::bench {
namespace {

// The sum of all samples of a metric, whatever their labels.
double SumOfSamples(const std::string& text, std::string_view name) {
  double sum = 0;
  const std::string begin = std::string(name) + "{";
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    double value = 0;
    if (line.starts_with(begin) && absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value)) sum += value;
  }
  return sum;
}

// Returns what the server reports for a job of this program: the mean over jobs that run one after the other.
double Reported(const Program& program) {
  constexpr std::size_t kMinStaging = std::size_t{32} << 20;
  const std::size_t slot = std::max(program.tensors[0].bytes, program.tensors[1].bytes);
  // Jobs run as graphs, whatever the size: kernels on slots are bound by PCIe, and pieces are many kernels.
  CudaBackendOptions options{.timing_sample = 1};
  options.paths = {.mapped_bytes = 0,
                   .mapped_bytes_alone = 0,
                   .mapped_scattered_bytes = 0,
                   .cut_bytes = std::numeric_limits<std::size_t>::max()};
  Engine engine(options, {.lanes = 1, .staging_bytes = std::max(kMinStaging, 8 * slot)});
  constexpr int kJobs = 40;
  engine.Throughput(program, kJobs, 1);  // warm-up, and what the first job prepares
  const std::string before = engine.Scrape();
  engine.Throughput(program, kJobs, 1);
  const std::string after = engine.Scrape();
  const auto rise = [&](std::string_view name) {
    return SumOfSamples(after, name) - SumOfSamples(before, name);
  };
  return rise("warpline_kernel_duration_seconds_sum") / rise("warpline_kernel_duration_seconds_count");
}

// Seconds of one of many launches in a row.
double InARow(const Device& device, const Program& program) {
  constexpr std::size_t kWorkspace = std::size_t{256} << 20;
  constexpr int kRounds = 15;
  const auto in = Value(gpu::AllocateDevice(program.tensors[0].bytes));
  const auto out = Value(gpu::AllocateDevice(program.tensors[1].bytes));
  const auto workspace = Value(gpu::AllocateDevice(kWorkspace));
  const auto scalars = Value(gpu::AllocateDevice(sizeof(StepScalars)));
  const StepScalars values;
  // The input is as random as a job's: constant data takes less power, and so less time.
  const auto count = static_cast<std::int64_t>(program.tensors[0].bytes / sizeof(float));
  Check(gpu::FillNumbers(in.get(), DType::kF32, count, 7, device.stream.get()), "drawing the input");
  Check(cudaMemcpy(scalars.get(), &values, sizeof(values), cudaMemcpyHostToDevice), "copying scalars");
  Operands operands;
  operands.in[0] = in.get();
  operands.in[1] = in.get();
  operands.out = out.get();
  operands.scalars = static_cast<StepScalars*>(scalars.get());
  operands.workspace = workspace.get();
  operands.workspace_bytes = kWorkspace;
  KernelChoices choices;
  const Launcher launch = [&](int, cudaStream_t stream) {
    Value(LaunchProblem(program.steps[0].problem, {}, operands, device.context, choices, stream));
    return cudaSuccess;
  };
  return TimeInTurns({&launch, 1}, 1, kRounds, device.stream.get())[0].median;
}

void Compare(const Device& device, const std::string& what, const Program& program) {
  const double row = InARow(device, program), reported = Reported(program), error = reported - row;
  std::printf("%-28s %9.2f us in a row %9.2f us reported %+6.2f us %+6.1f %%%s\n", what.c_str(), row * 1e6,
              reported * 1e6, error * 1e6, 100 * error / row,
              std::abs(error) <= std::max(1e-6, 0.1 * row) ? "" : "  more than 1 us and 10 %");
}

Program Transpose(std::int64_t side) {
  return OneStep(TransposeProblem{DType::kF32, {side, side}, {1, 0}}, {side, side}, {side, side});
}

Program Sum(std::int64_t rows, std::int64_t columns, std::uint32_t axes) {
  return OneStep(ReduceProblem{ReduceOp::kSum, DType::kF32, {rows, columns}, axes, {}, 0, 0}, {rows, columns},
                 {axes == 3   ? 1
                  : axes == 2 ? rows
                              : columns});
}

// A matrix times itself.
Program Product(std::int64_t side, Precision precision) {
  GemmProblem problem{
      .dtype = DType::kF32, .m = side, .n = side, .k = side, .lda = side, .ldb = side, .ldc = side};
  problem.precision = precision;
  Program program = OneStep(problem, {side, side}, {side, side});
  program.steps[0].inputs = {0, 0};
  return program;
}

int Main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::string why_not;
  const std::optional<Device> device = OpenDevice(&why_not);
  if (!device) {
    std::printf("skipped: %s\n", why_not.c_str());
    return 0;
  }
  for (const std::int64_t side : {32, 256, 512, 1024, 2048, 4096}) {
    Compare(*device, absl::StrCat("transpose of ", side, "^2"), Transpose(side));
  }
  Compare(*device, "sum of 2^20", Sum(1024, 1024, 3));
  Compare(*device, "sum of 2^24", Sum(4096, 4096, 3));
  Compare(*device, "sums of 4096 rows of 4096", Sum(4096, 4096, 2));
  Compare(*device, "sums of 4096 columns of 4096", Sum(4096, 4096, 1));
  for (const std::int64_t side : {512, 1024, 4096}) {
    Compare(*device, absl::StrCat("tf32 product of ", side, "^3"), Product(side, Precision::kTf32));
  }
  Compare(*device, "f32 product of 4096^3", Product(4096, Precision::kIeee));
  return 0;
}

}  // namespace
}  // namespace warpline::bench

int main() { return warpline::bench::Main(); }
