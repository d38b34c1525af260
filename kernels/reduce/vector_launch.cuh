// Launches the kernels of plans. They load 16 bytes of any type at a time, with several loads in flight per
// thread. Short rows and blocks of columns go through shared memory. Small groups of contiguous results are
// processed as one block. If there are few results, as many CTAs as the device holds at the same time share
// them. A second kernel combines their partial results in a fixed order.
//
// Limit: device memory. For bytes, var, argmax and logsumexp also the work per element. For small problems
// the launch of the second kernel.
#ifndef WARPLINE_KERNELS_REDUCE_VECTOR_LAUNCH_CUH_
#define WARPLINE_KERNELS_REDUCE_VECTOR_LAUNCH_CUH_

#include <algorithm>
#include <bit>

#include "kernels/allow_shared_bytes.h"
#include "kernels/launch_grids.h"
#include "kernels/reduce/plan.h"
#include "kernels/reduce/vector_bulk.cuh"
#include "kernels/reduce/vector_columns.cuh"
#include "kernels/reduce/vector_few_rows.cuh"
#include "kernels/reduce/vector_packed.cuh"
#include "kernels/reduce/vector_rows.cuh"
#include "kernels/reduce/vector_runs.cuh"

namespace warpline {

// Number: the class of element types that this launch can have.
template <typename R, typename Number>
cudaError_t LaunchVectors(const ReduceProblem& problem, const ReducePlan& of_problem,
                          const Operands& operands, const CudaContext& context, cudaStream_t stream) {
  VectorTask<R> task{.x = operands.in[0],
                     .y = operands.out,
                     .partials = static_cast<typename R::Acc*>(operands.workspace),
                     .dtype = problem.dtype,
                     .element_bytes = static_cast<std::int32_t>(SizeOf(problem.dtype)),
                     .reduce = of_problem.reduce,
                     .plan = of_problem.vectors,
                     .finish = FinishOf(problem)};
  if (task.reduce.results == 0) return cudaSuccess;
  const VectorPlan& plan = task.plan;
  if (of_problem.WorkspaceBytes() > operands.workspace_bytes) return cudaErrorInvalidValue;
  std::int64_t blocks = plan.tiles * plan.split;
  if (plan.shape == ReduceShape::kBulkColumns) {
    blocks = std::min<std::int64_t>(blocks, std::int64_t{kBulkCtas} * context.traits.multiprocessors);
  }
  if (blocks > kMaxGridX) return cudaErrorNotSupported;
  const auto launch = [&](auto* kernel) {
    const std::size_t shared = plan.SharedBytes(task.reduce.reduced_count * task.element_bytes);
    // More than the limit without opt-in, including the kernel's static memory. The limit belongs to the
    // kernel, not to this launch: it must always be the same, because other threads may be launching the
    // kernel.
    if (plan.shape == ReduceShape::kPackedColumns || plan.shape == ReduceShape::kBulkColumns) {
      const int most = plan.shape == ReduceShape::kPackedColumns ? kPackedSharedBytes : kBulkSharedBytes;
      if (const cudaError_t error = AllowSharedBytes(kernel, most); error != cudaSuccess) return error;
    }
    kernel<<<static_cast<unsigned>(blocks), plan.threads, shared, stream>>>(task);
    return cudaGetLastError();
  };
  cudaError_t error = cudaErrorNotSupported;
  switch (plan.shape) {
    case ReduceShape::kRows:
      error = launch(&ReduceRows<R, Number>);
      break;
    case ReduceShape::kRuns:
      error = launch(&ReduceRuns<R, Number>);
      break;
    case ReduceShape::kPackedRows:
      error = launch(&ReducePackedRows<R, Number>);
      break;
    case ReduceShape::kColumns:
      error = launch(plan.aligned ? &ReduceColumns<R, Number, true> : &ReduceColumns<R, Number, false>);
      break;
    case ReduceShape::kFewRows:
      if constexpr (kHasNumber<R> || kHasShift<R>) error = launch(&ReduceFewRows<R, Number>);
      break;
    case ReduceShape::kShiftedColumns:
      error = launch(&ReduceShiftedColumns<R, Number>);
      break;
    case ReduceShape::kBulkColumns:
      error = launch(&ReduceBulkColumns<R, Number>);
      break;
    case ReduceShape::kPackedColumns:
      error = launch(&ReducePackedColumns<R, Number>);
      break;
    case ReduceShape::kFlatColumns:
      error = launch(&ReduceFlatColumns<R, Number>);
      break;
  }
  if (error != cudaSuccess || plan.split == 1) return error;
  // A thread combines up to four parts of a result.
  const int peers = static_cast<int>(
      std::min<unsigned>(std::bit_ceil(static_cast<unsigned>(CeilDiv(plan.split, 4))), kVectorThreads));
  const int width = kVectorThreads / peers;
  const std::int64_t grid = CeilDiv(task.reduce.results, width);
  CombineVectorParts<R><<<static_cast<unsigned>(grid), kVectorThreads, 0, stream>>>(task, width);
  return cudaGetLastError();
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_VECTOR_LAUNCH_CUH_
