// A program compiled for GPUs: its kernels and its paths, for each kind of GPU.
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
// The choice for a step, with the same alternative as its Problem.
using StepChoice = ChoiceOf<Problem>::Type;

// The properties of a GPU that matter when a program is compiled for it.
struct CudaKind {
  DeviceTraits traits;
  bool uses_host_pointers = false;
};
bool operator==(const CudaKind& a, const CudaKind& b);

// The kernels and paths of a program on one kind of GPU.
struct CudaPlan {
  std::vector<StepChoice> steps;
  Path alone = Path::kCopied;  // the path if no other job runs; below: if others do
  Path among_others = Path::kCopied;
  std::optional<Cutting> cutting;                  // set if one of the two is kBlocks
  std::vector<CudaChoice<TransposeProblem>> cuts;  // kernels for its pieces, one per distinct problem
  std::vector<std::size_t> cut_of;                 // index into `cuts`, for each piece

  const CudaChoice<TransposeProblem>& ChoiceOfPiece(std::size_t piece) const { return cuts[cut_of[piece]]; }
};

struct CudaProgram : DeviceProgram {
  CudaProgram(std::size_t kinds, std::size_t devices) : plans(kinds), launches(devices) {}
  std::size_t bytes() const override;

  std::vector<CudaPlan> plans;  // for each kind of GPU of the node
  // The bytes of a device's pool that the program uses, cut or uncut; 0 if a lane's memory is enough.
  std::size_t device_bytes = 0;
  // Successful launches so far on each device. Lanes stop counting at a small number.
  mutable std::vector<std::atomic<int>> launches;
};

struct CudaPlanOptions {
  std::size_t lane_bytes = 0;
  PathLimits paths;
  CutOptions cutting;
};

// Compiles a valid program for the node's `devices` GPUs, which are of these kinds. The operands of its steps
// must begin at multiples of kTensorAlignment, plus their offsets.
std::unique_ptr<CudaProgram> CompileForCuda(const Program& program, const MemoryPlan& memory,
                                            std::span<const CudaKind> kinds, std::size_t devices,
                                            const CudaPlanOptions& options);

// The cost of a step if `choice` runs it.
VariantCost CostOf(const Problem& problem, const StepChoice& choice, const DeviceTraits& traits);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CUDA_PLAN_H_
