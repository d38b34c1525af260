// One reduction in the form that the kernels of every rung take, and its launch from the host.
#ifndef WARPLINE_KERNELS_REDUCE_TASK_CUH_
#define WARPLINE_KERNELS_REDUCE_TASK_CUH_

#include "kernels/cuda_variants.h"
#include "kernels/launch_grids.h"
#include "kernels/reduce/tile.cuh"

namespace warpline {

template <typename R>
struct ReduceTask {
  CanonicalReduce reduce;
  RungPlan plan;
  ReduceFinish finish;
  void* y;
  typename R::Acc* partials;  // [result][part]; used if plan.split > 1
};

// Calls launch(tile, task, blocks) unless there is nothing to do. `tile` is std::type_identity of the plan's
// tile type; `blocks` is the number of tiles times the parts of each.
template <typename R, typename Source, typename F>
cudaError_t LaunchTask(const ReduceProblem& problem, const Operands& operands, const CudaContext& context,
                       F&& launch) {
  ReduceTask<R> task{.reduce = Canonicalize(problem),
                     .plan = {},
                     .finish = FinishOf(problem),
                     .y = operands.out,
                     .partials = static_cast<typename R::Acc*>(operands.workspace)};
  if (task.reduce.results == 0) return cudaSuccess;
  task.plan = PlanRung(task.reduce, Source::kVector, context.traits);
  if (task.plan.WorkspaceBytes(task.reduce.results) > operands.workspace_bytes) return cudaErrorInvalidValue;
  const std::int64_t blocks = task.plan.tiles * task.plan.split;
  if (blocks > kMaxGridX) return cudaErrorNotSupported;
  return VisitTile<Source>(task.plan,
                           [&](auto tile) { return launch(tile, task, static_cast<unsigned>(blocks)); });
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_TASK_CUH_
