// A program on one lane: captured as a CUDA graph, or launched as it is.
#ifndef WARPLINE_SERVER_DEVICE_CUDA_PROGRAM_H_
#define WARPLINE_SERVER_DEVICE_CUDA_PROGRAM_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda_variants.h"
#include "kernels/gpu/handle.h"
#include "kernels/program.h"
#include "server/device/backend.h"

namespace warpline {

// Events of a timed launch. As a graph: before and after H2D, after each step, after D2H. Cut into pieces:
// see CutPipeline. A lane has one set, since it runs one program at a time.
struct TimingEvents {
  std::vector<gpu::Event> events;  // as many as the launch needs
};

// Where the regions of a plan begin in an arena, and what is left for workspace.
struct ArenaLayout {
  std::size_t input = 0, output = 0, scratch = 0, workspace = 0;
  explicit ArenaLayout(const MemoryPlan& plan);
};

// Where the regions of a plan are for one launch, as addresses that the device can use.
struct ProgramMemory {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::byte* scratch = nullptr;
  std::span<std::byte> workspace;

  // All of it in an arena.
  ProgramMemory(const MemoryPlan& plan, std::span<std::byte> arena);
};

// Launches the problem by the row of its table that has this name; by the first row that accepts it if
// `variant` is empty. Returns the row's name.
absl::StatusOr<std::string_view> LaunchProblem(const Problem& problem, std::string_view variant,
                                               const Operands& operands, const CudaContext& context,
                                               cudaStream_t stream);

// Records event `index` if `timing` is not null, also while the stream is being captured.
absl::Status RecordTime(const TimingEvents* timing, std::size_t index, cudaStream_t stream);

// Enqueues the steps. Variants that a program leaves open are the first of their table that accept the
// problem; their names go to `variants`. Records timing events 1 + the number of steps so far, beginning
// before the first; `timing` may be null.
absl::Status EnqueueSteps(const StagedProgram& staged, const CudaContext& context,
                          const ProgramMemory& memory, cudaStream_t stream, const TimingEvents* timing,
                          std::vector<std::string_view>& variants);

// One copy in, the steps' kernels, one copy out. Only the copies' host addresses ever change.
class CudaGraph {
 public:
  // Captures on `stream`; the program's memory starts at `arena`. See EnqueueSteps.
  static absl::StatusOr<CudaGraph> Capture(const StagedProgram& staged, const CudaContext& context,
                                           std::span<std::byte> arena, cudaStream_t stream,
                                           const TimingEvents* timing,
                                           std::vector<std::string_view>& variants);
  // About what the graph takes of the device's memory. An estimate by the number of nodes: CUDA does not
  // tell, and what is free changes by whole blocks, for every process.
  std::size_t EstimatedBytes() const { return nodes_ * kEstimatedNodeBytes; }
  // Points the copies at the slots and launches.
  absl::Status Launch(const StagedProgram& staged, std::span<std::byte> arena, cudaStream_t stream);

 private:
  // Graphs of three nodes took 105,120 bytes each on an H200 with driver 580.
  static constexpr std::size_t kEstimatedNodeBytes = 35040;

  gpu::Graph graph_;  // the nodes below belong to it
  std::size_t nodes_ = 0;
  gpu::GraphExec exec_;
  cudaGraphNode_t h2d_ = nullptr;  // null: nothing to copy
  cudaGraphNode_t d2h_ = nullptr;
  // Where the copies point now.
  const std::byte* input_ = nullptr;
  const std::byte* output_ = nullptr;
};

// The most workspace that any variant of any step may ask for, in bytes.
std::size_t WorkspaceBytes(const Program& program, const DeviceTraits& traits);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUDA_PROGRAM_H_
