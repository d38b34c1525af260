// Whether the server says the truth about kernels: what warpline_kernel_duration_seconds says of a job,
// beside what the same kernel takes in a row of launches, without any event between them. Prints one line a
// problem; needs a GPU.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/gemm/cublaslt.h"
#include "kernels/gpu/capture.h"
#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"
#include "server/device/cuda_program.h"
#include "tests/bench/engine.h"

namespace warpline::bench {
namespace {

template <typename T>
T Value(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(value.status());
  return *std::move(value);
}
void Check(absl::Status status) {
  if (!status.ok()) Fail(status);
}

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

// What the server says of a job of this program: the mean over jobs one after the other.
double Reported(const Program& program) {
  constexpr std::size_t kLeastStaging = std::size_t{32} << 20;
  const std::size_t slot = std::max(program.tensors[0].bytes, program.tensors[1].bytes);
  // As graphs, whatever the size: kernels on slots are bound by PCIe, and pieces are many kernels.
  CudaBackendOptions options{.timing_sample = 1};
  options.paths = {.mapped_bytes = 0,
                   .mapped_bytes_alone = 0,
                   .mapped_scattered_bytes = 0,
                   .cut_bytes = std::numeric_limits<std::size_t>::max()};
  Engine engine(options, {.lanes = 1, .staging_bytes = std::max(kLeastStaging, 8 * slot)});
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

// Seconds of a launch among others like it: the difference of a long row of launches and a short one.
class Rows {
 public:
  explicit Rows(const Problem& problem, std::size_t in_bytes, std::size_t out_bytes) {
    cudaDeviceProp properties;
    Check(gpu::ToStatus(cudaGetDeviceProperties(&properties, 0), "reading device properties"));
    std::string why_not;
    cublaslt_ = CublasLt::Load(&why_not);
    context_.cublaslt = cublaslt_.get();
    context_.traits = {.compute_capability = properties.major * 10 + properties.minor,
                       .multiprocessors = properties.multiProcessorCount,
                       .has_cublaslt = cublaslt_ != nullptr};
    constexpr std::size_t kWorkspace = std::size_t{256} << 20;
    in_ = Value(gpu::AllocateDevice(in_bytes));
    out_ = Value(gpu::AllocateDevice(out_bytes));
    workspace_ = Value(gpu::AllocateDevice(kWorkspace));
    scalars_ = Value(gpu::AllocateDevice(sizeof(StepScalars)));
    const StepScalars scalars;
    Check(gpu::ToStatus(cudaMemset(in_.get(), 0x3c, in_bytes), "filling the input"));
    Check(gpu::ToStatus(cudaMemcpy(scalars_.get(), &scalars, sizeof(scalars), cudaMemcpyHostToDevice),
                        "copying scalars"));
    stream_ = Value(gpu::CreateStream());
    for (gpu::Event& event : events_) event = Value(gpu::CreateTimedEvent());
    Operands operands;
    operands.in[0] = in_.get();
    operands.in[1] = in_.get();
    operands.out = out_.get();
    operands.scalars = static_cast<StepScalars*>(scalars_.get());
    operands.workspace = workspace_.get();
    operands.workspace_bytes = kWorkspace;
    launch_ = [this, problem, operands] {
      Check(LaunchProblem(problem, {}, operands, context_, stream_.get()).status());
    };
    launch_();
    Check(gpu::ToStatus(cudaStreamSynchronize(stream_.get()), "launching"));
  }

  double SecondsOfOne() {
    constexpr int kShort = 6, kLong = 24, kRounds = 15;
    const gpu::GraphExec rows[] = {Row(kShort), Row(kLong)};
    std::vector<double> seconds;
    for (int round = 0; round < kRounds; ++round) {
      double elapsed[2];
      for (int i : {0, 1}) {
        Check(gpu::ToStatus(cudaEventRecord(events_[0].get(), stream_.get()), "timing"));
        Check(gpu::ToStatus(cudaGraphLaunch(rows[i].get(), stream_.get()), "timing"));
        Check(gpu::ToStatus(cudaEventRecord(events_[1].get(), stream_.get()), "timing"));
        Check(gpu::ToStatus(cudaStreamSynchronize(stream_.get()), "timing"));
        float milliseconds = 0;
        Check(
            gpu::ToStatus(cudaEventElapsedTime(&milliseconds, events_[0].get(), events_[1].get()), "timing"));
        elapsed[i] = milliseconds * 1e-3;
      }
      seconds.push_back((elapsed[1] - elapsed[0]) / (kLong - kShort));
    }
    std::nth_element(seconds.begin(), seconds.begin() + kRounds / 2, seconds.end());
    return seconds[kRounds / 2];
  }

 private:
  gpu::GraphExec Row(int count) {
    gpu::Capture capture = Value(gpu::Capture::Begin(stream_.get()));
    for (int i = 0; i < count; ++i) launch_();
    const gpu::Graph graph = Value(std::move(capture).End());
    return Value(gpu::Instantiate(graph));
  }

  std::unique_ptr<CublasLt> cublaslt_;
  CudaContext context_;
  gpu::DeviceBytes in_, out_, workspace_, scalars_;
  gpu::Stream stream_;
  gpu::Event events_[2];
  std::function<void()> launch_;
};

void Compare(const std::string& what, const Program& program) {
  const double reported = Reported(program);  // first: it ends the program where there is no GPU
  const double row =
      Rows(program.steps[0].problem, program.tensors[0].bytes, program.tensors[1].bytes).SecondsOfOne();
  const double error = reported - row;
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
  for (const std::int64_t side : {32, 256, 512, 1024, 2048, 4096}) {
    Compare(absl::StrCat("transpose of ", side, "^2"), Transpose(side));
  }
  Compare("sum of 2^20", Sum(1024, 1024, 3));
  Compare("sum of 2^24", Sum(4096, 4096, 3));
  Compare("sums of 4096 rows of 4096", Sum(4096, 4096, 2));
  Compare("sums of 4096 columns of 4096", Sum(4096, 4096, 1));
  for (const std::int64_t side : {512, 1024, 4096}) {
    Compare(absl::StrCat("tf32 product of ", side, "^3"), Product(side, Precision::kTf32));
  }
  Compare("f32 product of 4096^3", Product(4096, Precision::kIeee));
  return 0;
}

}  // namespace
}  // namespace warpline::bench

int main() { return warpline::bench::Main(); }
