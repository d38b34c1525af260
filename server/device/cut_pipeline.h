// Runs a program in pieces, with one stream each for copies in, kernels and copies out if the device is idle.
#ifndef WARPLINE_SERVER_DEVICE_CUT_PIPELINE_H_
#define WARPLINE_SERVER_DEVICE_CUT_PIPELINE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/cuda_variants.h"
#include "kernels/gpu/handle.h"
#include "server/device/cuda_plan.h"
#include "server/device/cuda_program.h"
#include "server/device/cut_program.h"

namespace warpline {

// The two copy streams of one device. At most one job at a time has the device to itself and may use them, so
// all lanes share them. Copy streams per lane would take hardware queues away from the kernels of other
// lanes. Not thread-safe.
//
// The pieces are enqueued by plain calls on streams. A graph takes the same time on the device (6.35 ms for
// 8192 x 8192 f32), but dozens of copy nodes would have to be pointed at the slots of each job.
class CutPipeline {
 public:
  struct Launch {
    const CudaPlan& plan;              // with a cutting
    std::span<const std::byte> input;  // the job's slot, or a slice of a shared region
    std::span<std::byte> output;       // a slot or a slice too
    std::span<std::byte> arena;        // at least plan.cutting->arena_bytes
    const CudaContext& context;
    cudaStream_t kernels;  // the stream of the lane
    // Every piece whose number is `part` modulo `parts` is run.
    int part = 0, parts = 1;
    // The job has the device to itself. Otherwise all is enqueued on the stream of the lane.
    bool pipelined = false;
    // Null if nothing is timed. Otherwise these events are recorded: 0 and 1 before the first and after the
    // last copy in, 2 and 3 before the first and after the last copy out, 4 + 2 i and 5 + 2 i before and
    // after the kernels of piece i.
    const TimingEvents* timing = nullptr;
  };
  static std::size_t TimingEventsOf(const Cutting& cutting) { return 4 + 2 * cutting.pieces.size(); }

  // Makes its streams and events on the current device.
  static absl::StatusOr<CutPipeline> Create();

  // All three streams must be idle if the launch is pipelined. Returns the variant that runs. After an error
  // some of the enqueued work may still be running; Drain waits for it.
  absl::StatusOr<std::string_view> Enqueue(const Launch& launch);
  // The stream on which the last of all pipelined work ends.
  cudaStream_t last() const { return out_.get(); }
  // Waits for the two copy streams.
  void Drain();

 private:
  CutPipeline() = default;

  gpu::Stream in_, out_;
  // Recorded for each piece in turn. One event serves all pieces, since a wait refers to the last record
  // before it.
  gpu::Event copied_in_, computed_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUT_PIPELINE_H_
