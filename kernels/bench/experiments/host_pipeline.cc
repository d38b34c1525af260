#include "kernels/bench/experiments/host_pipeline.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/bench/experiments/pipeline_kernels.h"
#include "kernels/bench/harness/check.h"
#include "kernels/bench/harness/reference.h"
#include "kernels/bench/harness/timing.h"
#include "kernels/bench/suites/cases.h"
#include "kernels/cuda_choice.h"
#include "kernels/gpu/capture.h"
#include "kernels/gpu/pinned_memory.h"
#include "kernels/gpu/random_data.h"

namespace warpline::bench {
namespace {

// A named range on the host's line of a profiler.
class Range {
 public:
  explicit Range(const char* name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

float* Floats(const gpu::DeviceBytes& memory) { return static_cast<float*>(memory.get()); }

}  // namespace

std::vector<gpu::Stream> CreateStreams(int count) {
  std::vector<gpu::Stream> streams;
  for (int i = 0; i < count; ++i) streams.push_back(Value(gpu::CreateStream()));
  return streams;
}

HostPipeline::HostPipeline(const Device& device, const PipelineWork& work)
    : device_(device),
      work_(work),
      transpose_(
          Choose(MakeTranspose(DType::kF32, work.rows, work.columns), {}, device.context.traits, {}).row),
      input_(Value(gpu::AllocateDevice(work.bytes()))),
      expected_(Value(gpu::AllocateDevice(work.bytes()))),
      in_(Value(gpu::AllocateDevice(work.bytes()))),
      out_(Value(gpu::AllocateDevice(work.bytes()))),
      differences_(Value(gpu::AllocateDevice(sizeof(Differences)))) {
  cudaStream_t stream = device.stream.get();
  const std::int64_t count = work.rows * work.columns;
  Check(gpu::FillNumbers(input_.get(), DType::kF32, count, 7, stream), "drawing the input");
  if (work.steps == 0) {
    Check(ReferenceTranspose(MakeTranspose(DType::kF32, work.rows, work.columns), input_.get(),
                             expected_.get(), stream),
          "computing the reference");
    Check(cudaStreamSynchronize(stream), "computing the reference");
    return;
  }
  Check(LaunchIterate(Floats(input_), Floats(expected_), count, work.steps, stream),
        "computing the reference");
  // The same kernel made it: some of it, all over the tensor, is computed by the host too.
  constexpr std::int64_t kSamples = 1000;
  const std::int64_t stride = std::max<std::int64_t>(count / kSamples, 1);
  const std::int64_t samples = count / stride;
  std::vector<float> x(static_cast<std::size_t>(samples)), y(x.size());
  const auto read = [&](const gpu::DeviceBytes& from, std::vector<float>& to) {
    Check(cudaMemcpy2DAsync(to.data(), sizeof(float), from.get(),
                            static_cast<std::size_t>(stride) * sizeof(float), sizeof(float), to.size(),
                            cudaMemcpyDeviceToHost, stream),
          "reading samples");
    Check(cudaStreamSynchronize(stream), "reading samples");
  };
  read(input_, x);
  read(expected_, y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (Iterate(x[i], work.steps) != y[i]) throw Failure("the elementwise kernel is wrong");
  }
}

void HostPipeline::WriteInput(float* in) const {
  Check(cudaMemcpy(in, input_.get(), work_.bytes(), cudaMemcpyDefault), "copying the input");
}

void HostPipeline::EnqueueKernel(const float* in, float* out, std::int64_t rows, cudaStream_t stream) const {
  const Range range("kernel");
  if (work_.steps > 0) {
    Check(LaunchIterate(in, out, rows * work_.columns, work_.steps, stream), "launching the kernel");
    return;
  }
  Operands operands;
  operands.in[0] = in;
  operands.out = out;
  Check(
      transpose_->launch(MakeTranspose(DType::kF32, rows, work_.columns), operands, device_.context, stream),
      "launching the kernel");
}

void HostPipeline::EnqueueRows(const HostTensors& host, std::int64_t begin, std::int64_t end,
                               cudaStream_t stream) const {
  const std::int64_t rows = end - begin, offset = begin * work_.columns;
  const std::size_t bytes = static_cast<std::size_t>(rows * work_.columns) * sizeof(float);
  float* in = Floats(in_) + offset;
  float* out = Floats(out_) + offset;  // the result of the chunk, dense
  {
    const Range range("host to device");
    Check(cudaMemcpyAsync(in, host.in + offset, bytes, cudaMemcpyHostToDevice, stream), "copying in");
  }
  EnqueueKernel(in, out, rows, stream);
  const Range range("device to host");
  if (work_.steps > 0 || rows == work_.rows) {
    Check(cudaMemcpyAsync(host.out + offset, out, bytes, cudaMemcpyDeviceToHost, stream), "copying out");
  } else {
    const std::size_t width = static_cast<std::size_t>(rows) * sizeof(float);
    Check(
        cudaMemcpy2DAsync(host.out + begin, static_cast<std::size_t>(work_.rows) * sizeof(float), out, width,
                          width, static_cast<std::size_t>(work_.columns), cudaMemcpyDeviceToHost, stream),
        "copying out");
  }
}

void HostPipeline::EnqueueChunks(const HostTensors& host, std::size_t chunk_bytes,
                                 std::span<const gpu::Stream> streams, float* between) const {
  const std::size_t row_bytes = static_cast<std::size_t>(work_.columns) * sizeof(float);
  const std::int64_t chunk = std::max<std::int64_t>(static_cast<std::int64_t>(chunk_bytes / row_bytes), 1);
  std::size_t i = 0;
  for (std::int64_t begin = 0; begin < work_.rows; begin += chunk, ++i) {
    EnqueueRows(host, begin, std::min(begin + chunk, work_.rows), streams[i % streams.size()].get());
    if (between != nullptr) Check(LaunchTiny(between, cudaStreamLegacy), "launching in the default stream");
  }
}

gpu::GraphExec HostPipeline::Capture(const HostTensors& host, std::size_t chunk_bytes,
                                     std::span<const gpu::Stream> streams) const {
  cudaStream_t first = streams[0].get();
  const gpu::Event fork = Value(gpu::CreateEvent());
  std::vector<gpu::Event> joins;
  gpu::Capture capture = Value(gpu::Capture::Begin(first));
  Check(cudaEventRecord(fork.get(), first), "forking a capture");
  for (const gpu::Stream& stream : streams.subspan(1)) {
    Check(cudaStreamWaitEvent(stream.get(), fork.get(), 0), "forking a capture");
  }
  EnqueueChunks(host, chunk_bytes, streams);
  for (const gpu::Stream& stream : streams.subspan(1)) {
    const gpu::Event& join = joins.emplace_back(Value(gpu::CreateEvent()));
    Check(cudaEventRecord(join.get(), stream.get()), "joining a capture");
    Check(cudaStreamWaitEvent(first, join.get(), 0), "joining a capture");
  }
  const gpu::Graph graph = Value(std::move(capture).End());
  return Value(gpu::Instantiate(graph));
}

void HostPipeline::PoisonResult(const HostTensors& host) const {
  cudaStream_t stream = device_.stream.get();
  for (const gpu::DeviceBytes* buffer : {&in_, &out_}) {
    Check(gpu::Poison(buffer->get(), work_.bytes(), stream), "poisoning a result");
  }
  Check(cudaStreamSynchronize(stream), "poisoning a result");
  Check(cudaMemcpy(host.out, out_.get(), work_.bytes(), cudaMemcpyDefault), "poisoning a result");
  Check(cudaDeviceSynchronize(), "poisoning a result");
}

void HostPipeline::VerifyResult(const HostTensors& host, const std::string& what) const {
  Check(cudaDeviceSynchronize(), what.c_str());
  cudaStream_t stream = device_.stream.get();
  Differences differences;
  auto* device = static_cast<Differences*>(differences_.get());
  Check(cudaMemcpy(out_.get(), host.out, work_.bytes(), cudaMemcpyDefault), "verifying a result");
  Check(cudaMemcpy(device, &differences, sizeof(differences), cudaMemcpyHostToDevice), "verifying a result");
  Check(cudaDeviceSynchronize(), "verifying a result");  // our stream does not wait for the default one
  Check(CompareBytes(out_.get(), expected_.get(), work_.bytes(), device, stream), "verifying a result");
  Check(cudaStreamSynchronize(stream), "verifying a result");
  Check(cudaMemcpy(&differences, device, sizeof(differences), cudaMemcpyDeviceToHost), "verifying a result");
  if (differences.count != 0) {
    throw Failure(absl::StrCat(work_.name(), ", ", what, ": wrong from byte ", differences.first));
  }
}

int StepsAsLongAsACopy(const Device& device, std::int64_t rows, std::int64_t columns) {
  constexpr int kTrial = 512;
  const std::int64_t count = rows * columns;
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  gpu::PinnedMemory host = Value(gpu::PinnedMemory::Allocate(bytes));
  const gpu::DeviceBytes in = Value(gpu::AllocateDevice(bytes)), out = Value(gpu::AllocateDevice(bytes));
  const double copy = SecondsOfOne(
      [&](int, cudaStream_t stream) {
        return cudaMemcpyAsync(in.get(), host.bytes().data(), bytes, cudaMemcpyHostToDevice, stream);
      },
      device.stream.get());
  const double kernel = SecondsOfOne(
      [&](int, cudaStream_t stream) { return LaunchIterate(Floats(in), Floats(out), count, kTrial, stream); },
      device.stream.get());
  return static_cast<int>(std::clamp(std::round(kTrial * copy / kernel), 1.0, 1e5));
}

}  // namespace warpline::bench
