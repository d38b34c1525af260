// A tensor in host memory that goes to the device, through a kernel and back: the ways to do it.
#ifndef WARPLINE_KERNELS_BENCH_EXPERIMENTS_HOST_PIPELINE_H_
#define WARPLINE_KERNELS_BENCH_EXPERIMENTS_HOST_PIPELINE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/bench/harness/device.h"
#include "kernels/cuda_variants.h"
#include "kernels/gpu/handle.h"

namespace warpline::bench {

// The work on a rows x columns f32 tensor.
struct PipelineWork {
  std::int64_t rows = 0, columns = 0;
  int steps = 0;  // of the long elementwise kernel; 0: the work is a transposition

  std::string name() const { return steps > 0 ? "elementwise" : "transpose"; }
  std::size_t bytes() const { return static_cast<std::size_t>(rows * columns) * sizeof(float); }
};

// Host addresses of a tensor and of its result; not owned.
struct HostTensors {
  const float* in = nullptr;
  float* out = nullptr;
};

std::vector<gpu::Stream> CreateStreams(int count);

// Chunks are blocks of rows. Of a transposition the result of one is a block of columns, which the copy back
// puts in place (cudaMemcpy2DAsync, one row of the block at a time).
class HostPipeline {
 public:
  // The input is drawn once, and its result computed by reference kernels.
  HostPipeline(const Device& device, const PipelineWork& work);

  const PipelineWork& work() const { return work_; }
  // Writes the input to `in`, in any kind of memory.
  void WriteInput(float* in) const;

  // The whole tensor: one copy, one kernel, one copy.
  void Enqueue(const HostTensors& host, cudaStream_t stream) const {
    EnqueueRows(host, 0, work_.rows, stream);
  }
  // Chunk i in stream i modulo their number. between, if any, is a word that a tiny kernel in the legacy
  // default stream writes after each chunk.
  void EnqueueChunks(const HostTensors& host, std::size_t chunk_bytes, std::span<const gpu::Stream> streams,
                     float* between = nullptr) const;
  // The same, captured as one graph.
  gpu::GraphExec Capture(const HostTensors& host, std::size_t chunk_bytes,
                         std::span<const gpu::Stream> streams) const;
  // The kernel alone, on addresses that the device can use.
  void EnqueueKernel(const float* in, float* out, std::int64_t rows, cudaStream_t stream) const;

  // Fills the result with NaN; throws Failure unless it is right. Waits for the device.
  void PoisonResult(const HostTensors& host) const;
  void VerifyResult(const HostTensors& host, const std::string& what) const;

 private:
  void EnqueueRows(const HostTensors& host, std::int64_t begin, std::int64_t end, cudaStream_t stream) const;

  const Device& device_;
  const PipelineWork work_;
  const CudaVariant<TransposeProblem>* transpose_ = nullptr;
  gpu::DeviceBytes input_, expected_;  // pristine
  gpu::DeviceBytes in_, out_, differences_;
};

// Steps for which the elementwise kernel takes about as long as copying its input to the device from pinned
// memory.
int StepsAsLongAsACopy(const Device& device, std::int64_t rows, std::int64_t columns);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_EXPERIMENTS_HOST_PIPELINE_H_
