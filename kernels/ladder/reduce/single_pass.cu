// Variant `single_pass`: one kernel. The last CTA to finish a part of a result combines all parts of that
// result, in their order, so every run gives the same bits. No CTA waits for another.
//
// Limit: device memory. For small inputs, the fence and the ticket of every CTA, and clearing the tickets
// before each launch, since the workspace keeps nothing between launches.
// Next, `rows`: 16-byte loads for every type, and a number of CTAs chosen by occupancy.
#include "kernels/ladder/reduce/combine.cuh"
#include "kernels/ladder/reduce/kernels.h"
#include "kernels/reduce/typed.cuh"

namespace warpline {
namespace {

// The ticket of a tile counts its finished parts.
template <typename Tile, typename R, typename Source>
__global__ void __launch_bounds__(kReduceThreads)
    ReduceInOnePass(Source x, const __grid_constant__ ReduceTask<R> task, unsigned* tickets) {
  const int part = static_cast<int>(blockIdx.x % task.plan.split);
  const std::int64_t tile = blockIdx.x / task.plan.split;
  const ThreadShare share = Tile::ShareOf(task.plan, tile);
  typename R::Acc acc[Tile::kResults];
  Tile::template Accumulate<R>(x, task.reduce, task.plan, share, part, acc);
  CombinePeers<Tile, R>(share, acc);
  StoreShare(task, share, part, acc);
  if (task.plan.split == 1) return;  // for the whole CTA

  __shared__ bool is_last;
  __threadfence();  // each thread's partial results become visible before the ticket
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(&tickets[tile], 1u) + 1 == static_cast<unsigned>(task.plan.split);
  __syncthreads();
  if (!is_last) return;  // for the whole CTA
  __threadfence();       // the partial results of other CTAs are visible after this
  const std::int64_t first = tile * task.plan.results_per_cta;
  const std::int64_t end = min(first + task.plan.results_per_cta, task.reduce.results);
  CombinePartials(task, first, end, static_cast<int>(threadIdx.x) / kWarp, kReduceThreads / kWarp);
}

}  // namespace

cudaError_t LaunchReduceSinglePass(const ReduceProblem& problem, const Operands& operands,
                                   const CudaContext& context, cudaStream_t stream) {
  return VisitLadder(problem, operands, [&]<typename R, typename Source>(std::type_identity<R>, Source x) {
    return LaunchTask<R, Source>(
        problem, operands, context,
        [&]<typename Tile>(std::type_identity<Tile>, const ReduceTask<R>& task, unsigned blocks) {
          const std::size_t partial_bytes = task.plan.WorkspaceBytes(task.reduce.results);
          const std::size_t ticket_bytes = task.plan.TicketBytes();
          if (partial_bytes + ticket_bytes > operands.workspace_bytes) return cudaErrorInvalidValue;
          auto* tickets =
              reinterpret_cast<unsigned*>(static_cast<std::byte*>(operands.workspace) + partial_bytes);
          if (ticket_bytes > 0) {
            const cudaError_t error = cudaMemsetAsync(tickets, 0, ticket_bytes, stream);
            if (error != cudaSuccess) return error;
          }
          ReduceInOnePass<Tile, R><<<blocks, kReduceThreads, 0, stream>>>(x, task, tickets);
          return cudaGetLastError();
        });
  });
}

}  // namespace warpline
