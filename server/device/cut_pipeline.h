// Runs a program in pieces: copies in, kernels and copies out on a stream each.
#ifndef WARPLINE_SERVER_DEVICE_CUT_PIPELINE_H_
#define WARPLINE_SERVER_DEVICE_CUT_PIPELINE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/cuda_variants.h"
#include "kernels/gpu/handle.h"
#include "server/device/cuda_program.h"
#include "server/device/cut_program.h"

namespace warpline {

// The two copy streams of one device. They belong to the job that has the device to itself, of which there is
// one at most, so the lanes share them: streams of their own would take hardware queues from each other's
// kernels. Not thread-safe.
//
// Plain calls on streams and not a graph: both take the same time on the device (6.35 ms for 8192 x 8192
// f32), and dozens of copy nodes would have to be pointed at the slots of each job.
class CutPipeline {
 public:
  struct Launch {
    const Cutting& cutting;
    std::span<const std::byte> input;  // the slots
    std::span<std::byte> output;
    std::span<std::byte> arena;  // at least cutting.arena_bytes
    const CudaContext& context;
    cudaStream_t kernels;  // the lane's
    // May be null. Events: 0 and 1 before the first copy in and after the last; 2 and 3 the same of copies
    // out; 4 + 2 i and 5 + 2 i before and after the kernels of piece i.
    const TimingEvents* timing;
  };
  static std::size_t TimingEventsOf(const Cutting& cutting) { return 4 + 2 * cutting.pieces.size(); }

  // On the current device.
  static absl::StatusOr<CutPipeline> Create();

  // The streams are idle, also the one for kernels. Returns the variant that runs. After an error some of it
  // may still be running: see Drain.
  absl::StatusOr<std::string_view> Enqueue(const Launch& launch);
  // The stream whose last work ends after all of what was enqueued.
  cudaStream_t last() const { return out_.get(); }
  // Waits for the two copy streams.
  void Drain();

 private:
  CutPipeline() = default;

  gpu::Stream in_, out_;
  // Of a piece. A wait refers to the record before it, so the next piece records the same events again.
  gpu::Event copied_in_, computed_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUT_PIPELINE_H_
