// Memory of the device for what is tried on it while it is tuned.
#ifndef WARPLINE_SERVER_DEVICE_TRIAL_MEMORY_H_
#define WARPLINE_SERVER_DEVICE_TRIAL_MEMORY_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/align.h"
#include "kernels/gpu/status.h"
#include "kernels/operand_sizes.h"
#include "kernels/status_macros.h"
#include "server/device/cuda_program.h"

namespace warpline {

// A block of the device's memory on a stream, which nobody else's allocations wait for.
class TrialBlock {
 public:
  static absl::StatusOr<TrialBlock> Take(std::size_t bytes, cudaStream_t stream) {
    TrialBlock block;
    RETURN_IF_ERROR(gpu::ToStatus(cudaMallocAsync(&block.data_, bytes, stream), "taking memory to tune"));
    block.stream_ = stream;
    return block;
  }
  TrialBlock(TrialBlock&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), stream_(other.stream_) {}
  TrialBlock& operator=(TrialBlock&&) = delete;
  // Waits for the stream, as the runtime gives memory back to the device only then.
  ~TrialBlock() {
    if (data_ == nullptr) return;
    cudaFreeAsync(data_, stream_);
    cudaStreamSynchronize(stream_);
  }

  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  TrialBlock() = default;
  void* data_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

// The offsets of all parts of one block: `sets` sets of operands and results, the result to compare with,
// workspace, scalars, a counter.
struct TrialLayout {
  std::size_t set = 0;  // bytes of one
  int sets = 1;
  std::size_t want = 0, workspace = 0, workspace_bytes = 0, scalars = 0, different = 0, end = 0;

  TrialLayout(const Problem& problem, const DeviceTraits& traits, std::size_t l2_bytes) {
    const std::size_t out = AlignUp(OutputSize(problem).Bytes(), kTensorAlignment);
    for (const OperandSize& input : InputSizes(problem)) set += AlignUp(input.Bytes(), kTensorAlignment);
    set += out;
    // A set that leaves room in the L2 is found there by the next launch, as that of a chain's next step is;
    // one several times as large leaves nothing of itself; those between take turns.
    const bool takes_turns = set > l2_bytes / 4 * 3 && set < 4 * l2_bytes;
    if (takes_turns) sets = static_cast<int>(3 * l2_bytes / set) + 1;
    want = static_cast<std::size_t>(sets) * set;
    workspace = want + out;
    workspace_bytes = WorkspaceBytes(problem, traits);
    scalars = AlignUp(workspace + workspace_bytes, kTensorAlignment);
    different = scalars + AlignUp(static_cast<std::size_t>(ScalarCount(problem)) * sizeof(StepScalars),
                                  kTensorAlignment);
    end = different + kTensorAlignment;
  }
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_TRIAL_MEMORY_H_
