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
#include "server/device/cut_program.h"
#include "server/device/kernel_choices.h"
#include "server/plan/address_table.h"

namespace warpline {

// Events of a timed launch: before and after H2D, before the first step, after each step, after D2H. Cut into
// pieces: see CutPipeline. A lane has one set, since it runs one program at a time.
struct TimingEvents {
  static constexpr std::size_t kBeforeCopyIn = 0, kAfterCopyIn = 1;
  static std::size_t BeforeStep(std::size_t step) { return 2 + step; }
  static std::size_t AfterStep(std::size_t step) { return BeforeStep(step + 1); }
  static std::size_t AfterCopyOut(std::size_t steps) { return BeforeStep(steps) + 1; }
  static std::size_t CountFor(std::size_t steps) { return AfterCopyOut(steps) + 1; }

  std::vector<gpu::Event> events;  // as many as the launch needs
};

// A program whose areas lie in one block of device memory, so that one copy brings all staged inputs and
// scalars and one takes all staged outputs away.
struct DeviceImage {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  AddressTable addresses;

  // The block is on the device. The program's plan needs what BlockLayout says; the rest is workspace.
  DeviceImage(const StagedProgram& staged, std::span<std::byte> block);
};

// One copy for what is staged, and one for each tensor in a shared region; nothing is enqueued where there
// are no bytes.
absl::Status CopyIn(const StagedProgram& staged, const DeviceImage& image, cudaStream_t stream);
absl::Status CopyOut(const StagedProgram& staged, const DeviceImage& image, cudaStream_t stream);

// Launches the problem by the variant of this name, or by the server's choice if that is empty or the name of
// a group. Returns the name of what runs. `choices` are those of the context's device.
absl::StatusOr<std::string_view> LaunchProblem(const Problem& problem, std::string_view variant,
                                               const Operands& operands, const CudaContext& context,
                                               KernelChoices& choices, cudaStream_t stream);

// Records event `index` if `timing` is not null, also while the stream is being captured.
absl::Status RecordTime(const TimingEvents* timing, std::size_t index, cudaStream_t stream);

// How steps are launched.
struct StepLaunch {
  const CudaContext& context;
  KernelChoices& choices;
  cudaStream_t stream;
  // Records the events after the copy in and around each step; null: none.
  const TimingEvents* timing = nullptr;
  BadIndexReport bad_index = {};
};

// Enqueues the steps, whose operands are where the table says. The names of what runs go to `variants`.
absl::Status EnqueueSteps(const Program& program, const AddressTable& addresses, const StepLaunch& launch,
                          std::vector<std::string_view>& variants);

// One copy in, the steps' kernels, one copy out. Only the copies' host addresses ever change.
class CudaGraph {
 public:
  // Captures on the launch's stream; `image` stays where it is for as long as the graph is launched. See
  // EnqueueSteps.
  static absl::StatusOr<CudaGraph> Capture(const StagedProgram& staged, const DeviceImage& image,
                                           const StepLaunch& launch, std::vector<std::string_view>& variants);
  // About what the graph takes of the device's memory. An estimate by the number of nodes: CUDA does not
  // tell, and what is free changes by whole blocks, for every process.
  std::size_t EstimatedBytes() const { return EstimatedBytes(nodes_); }
  static std::size_t EstimatedBytes(std::size_t nodes) { return nodes * kEstimatedNodeBytes; }
  // Points the copies at the slots and launches.
  absl::Status Launch(const StagedProgram& staged, cudaStream_t stream);

 private:
  // Graphs of three nodes took 105,120 bytes each on an H200 with driver 580.
  static constexpr std::size_t kEstimatedNodeBytes = 35040;

  gpu::Graph graph_;  // the nodes below belong to it
  std::size_t nodes_ = 0;
  gpu::GraphExec exec_;
  cudaGraphNode_t h2d_ = nullptr;  // null: nothing to copy
  cudaGraphNode_t d2h_ = nullptr;
  // The device's ends of the copies.
  std::byte* device_input_ = nullptr;
  const std::byte* device_output_ = nullptr;
  // The host's ends, as they are now.
  const std::byte* input_ = nullptr;
  const std::byte* output_ = nullptr;
};

// Returns the bytes that a program takes of the device's pool. Returns 0 if a lane that has `lane_bytes` of
// its own can run it there. The bytes are enough for pieces of CutProgram too.
std::size_t PoolBytes(const Program& program, const MemoryPlan& plan, const DeviceTraits& traits,
                      std::size_t lane_bytes, const CutOptions& cutting);

// The most workspace that any variant that may run the problem asks for, in bytes; of a program, for any
// step. `variant` is what the step names.
std::size_t WorkspaceBytes(const Problem& problem, const DeviceTraits& traits, std::string_view variant = {});
std::size_t WorkspaceBytes(const Program& program, const DeviceTraits& traits);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUDA_PROGRAM_H_
