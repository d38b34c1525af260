// A program compiled for GPUs: for each kind of them the kernels, and how it is run.
#ifndef WARPLINE_SERVER_DEVICE_CUDA_PLAN_H_
#define WARPLINE_SERVER_DEVICE_CUDA_PLAN_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "kernels/cuda_choice.h"
#include "kernels/program.h"
#include "kernels/variant.h"
#include "server/device/choose_path.h"
#include "server/device/cut_program.h"
#include "server/plan/cost.h"
#include "server/plan/device_program.h"

namespace warpline {

template <typename AnyProblem>
struct ChoiceOf;
template <typename... ProblemT>
struct ChoiceOf<std::variant<ProblemT...>> {
  using Type = std::variant<CudaChoice<ProblemT>...>;
};
// The choice for a step, of the same alternative as its problem.
using StepChoice = ChoiceOf<Problem>::Type;

// The properties of a GPU that count when a program is compiled for it.
struct CudaKind {
  DeviceTraits traits;
  bool uses_host_pointers = false;
};
bool operator==(const CudaKind& a, const CudaKind& b);

// For one kind of GPU.
struct CudaPlan {
  std::vector<StepChoice> steps;
  Path alone = Path::kCopied;  // with the device to itself, and beside other jobs
  Path among_others = Path::kCopied;
  std::optional<Cutting> cutting;                  // if either is kBlocks
  std::vector<CudaChoice<TransposeProblem>> cuts;  // for its pieces, which have few different problems
  std::vector<std::size_t> cut_of;                 // number among `cuts`, for each piece

  const CudaChoice<TransposeProblem>& ChoiceOfPiece(std::size_t piece) const { return cuts[cut_of[piece]]; }
};

struct CudaProgram : DeviceProgram {
  CudaProgram(std::size_t kinds, std::size_t devices) : plans(kinds), launches(devices) {}
  std::size_t bytes() const override;

  std::vector<CudaPlan> plans;  // for each kind of GPU of the node
  // The bytes of a device's pool that it takes, in pieces or whole; 0 if a lane's memory is enough.
  std::size_t device_bytes = 0;
  // Successful launches so far on each device, as far as lanes count them.
  mutable std::vector<std::atomic<int>> launches;
};

struct CudaPlanOptions {
  std::size_t lane_bytes = 0;
  PathLimits paths;
  CutOptions cutting;
};

// Compiles a valid program for the node's `devices` GPUs, which are of these kinds. The operands of its steps
// begin at multiples of kTensorAlignment, but for their offsets.
std::unique_ptr<CudaProgram> CompileForCuda(const Program& program, const MemoryPlan& memory,
                                            std::span<const CudaKind> kinds, std::size_t devices,
                                            const CudaPlanOptions& options);

// The cost of a step by its choice.
VariantCost CostOf(const Problem& problem, const StepChoice& choice, const DeviceTraits& traits);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUDA_PLAN_H_
