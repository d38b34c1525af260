#include "kernels/ladder/rungs.h"

#include "kernels/ladder/reduce/kernels.h"
#include "kernels/reduce/rungs.h"

namespace warpline {
namespace {

constexpr CudaVariant<ReduceProblem> Rung(
    int step, std::string_view name, std::string_view summary, CudaLaunch<ReduceProblem>* launch,
    decltype(CudaVariant<ReduceProblem>::workspace_bytes) workspace_bytes = PartialBytes) {
  return {.name = name,
          .summary = summary,
          .reproducible = true,
          .supports_dtype = HasRungs,
          .supports = SupportsRungs,
          .workspace_bytes = workspace_bytes,
          .launch = launch,
          .step = step};
}

constexpr CudaVariant<ReduceProblem> kRungs[] = {
    Rung(3, "shared", "a tree in shared memory, in two kernels where few results have many elements",
         LaunchReduceShared),
    Rung(4, "warp_shuffle",
         "warp shuffles over rows or columns, in two kernels where few results have many elements",
         LaunchReduceWarpShuffle),
    Rung(5, "cooperative",
         "one kernel, which the whole grid synchronises before partial results are combined",
         LaunchReduceCooperative),
    Rung(6, "single_pass", "one kernel, in which the last CTA of a result combines its parts in their order",
         LaunchReduceSinglePass,
         [](const ReduceProblem& problem, const DeviceTraits& traits) {
           return PartialBytes(problem, traits) + RungPlanOf(problem, traits).TicketBytes();
         }),
};

}  // namespace

std::span<const CudaVariant<ReduceProblem>> LadderRungs(const ReduceProblem&) { return kRungs; }

}  // namespace warpline
