// The launches of a program: copies in, steps, copies out.
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
#include "server/device/cuda_plan.h"
#include "server/plan/address_table.h"

namespace warpline {

// Events of a timed launch: before and after H2D, before the first step, after each step, after D2H. Programs
// in pieces use other events: see CutPipeline. A lane has one set, because it runs one program at a time.
struct TimingEvents {
  static constexpr std::size_t kBeforeCopyIn = 0, kAfterCopyIn = 1;
  static std::size_t BeforeStep(std::size_t step) { return 2 + step; }
  static std::size_t AfterStep(std::size_t step) { return BeforeStep(step + 1); }
  static std::size_t AfterCopyOut(std::size_t steps) { return BeforeStep(steps) + 1; }
  static std::size_t CountFor(std::size_t steps) { return AfterCopyOut(steps) + 1; }

  std::vector<gpu::Event> events;  // as many as the launch needs
};

// A program whose areas lie in one block of device memory, so that all staged inputs and scalars are copied
// in by one copy, and all staged outputs are copied out by another.
struct DeviceImage {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  AddressTable addresses;

  // `block` is device memory, and at least as long as BlockLayout says for the program's plan. The rest of it
  // is workspace.
  DeviceImage(const StagedProgram& staged, std::span<std::byte> block);
};

// Enqueue one copy for everything that is staged, and one for each tensor in a shared region. Empty copies
// are skipped.
absl::Status CopyIn(const StagedProgram& staged, const DeviceImage& image, cudaStream_t stream);
absl::Status CopyOut(const StagedProgram& staged, const DeviceImage& image, cudaStream_t stream);

// Launches the choice that was made for the problem. If it refuses, launches the next row of its table for
// which the workspace is enough, unless the step names a `variant`. Returns the name of the variant that
// runs.
absl::StatusOr<std::string_view> LaunchProblem(const Problem& problem, std::string_view variant,
                                               const StepChoice& choice, const Operands& operands,
                                               const CudaContext& context, cudaStream_t stream);
// The same for a piece, which never names a variant.
absl::StatusOr<std::string_view> LaunchPiece(const TransposeProblem& problem,
                                             const CudaChoice<TransposeProblem>& choice,
                                             const Operands& operands, const CudaContext& context,
                                             cudaStream_t stream);

// Records event `index` if `timing` is not null.
absl::Status RecordTime(const TimingEvents* timing, std::size_t index, cudaStream_t stream);

// How steps are launched.
struct StepLaunch {
  const CudaPlan& plan;
  const CudaContext& context;
  cudaStream_t stream;
  // Records the events after the copy in and around each step; null: none.
  const TimingEvents* timing = nullptr;
  BadIndexReport bad_index = {};
};

// Enqueues the steps, with their operands at the addresses of the table. Replaces the contents of `variants`
// by the names of the variants that run.
absl::Status EnqueueSteps(const Program& program, const AddressTable& addresses, const StepLaunch& launch,
                          VariantNames& variants);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUDA_PROGRAM_H_
