// The kernels of the rung `warp_shuffle`, for any source of elements.
#ifndef WARPLINE_KERNELS_LADDER_REDUCE_BY_SHUFFLES_CUH_
#define WARPLINE_KERNELS_LADDER_REDUCE_BY_SHUFFLES_CUH_

#include "kernels/ladder/reduce/combine.cuh"

namespace warpline {

template <typename Tile, typename R, typename Source>
__global__ void __launch_bounds__(kReduceThreads, 3)
    ReduceByShuffles(Source x, const __grid_constant__ ReduceTask<R> task) {
  const int part = static_cast<int>(blockIdx.x % task.plan.split);
  const ThreadShare share = Tile::ShareOf(task.plan, blockIdx.x / task.plan.split);
  typename R::Acc acc[Tile::kResults];
  Tile::template Accumulate<R>(x, task.reduce, task.plan, share, part, acc);
  CombinePeers<Tile, R>(share, acc);
  StoreShare(task, share, part, acc);
}

// One warp per result combines its partial results.
template <typename R>
__global__ void __launch_bounds__(kReduceThreads)
    FinishByShuffles(const __grid_constant__ ReduceTask<R> task) {
  const std::int64_t result = std::int64_t{blockIdx.x} * (kReduceThreads / kWarp) + threadIdx.x / kWarp;
  if (result >= task.reduce.results) return;  // the whole warp
  const int lane = threadIdx.x % kWarp;
  typename R::Acc acc = R::Identity();
  for (int part = lane; part < task.plan.split; part += kWarp) {
    acc = R::Combine(acc, task.partials[result * task.plan.split + part]);
  }
  acc = ReduceLanes<R>(acc, kWarp);
  if (lane == 0) StoreResult(task, result, acc);
}

template <typename R, typename Source>
cudaError_t LaunchByShuffles(const ReduceProblem& problem, Source x, const Operands& operands,
                             const CudaContext& context, cudaStream_t stream) {
  return LaunchTask<R, Source>(
      problem, operands, context,
      [&]<typename Tile>(std::type_identity<Tile>, const ReduceTask<R>& task, unsigned blocks) {
        ReduceByShuffles<Tile, R><<<blocks, kReduceThreads, 0, stream>>>(x, task);
        const cudaError_t error = cudaGetLastError();
        if (error != cudaSuccess || task.plan.split == 1) return error;
        const auto grid = static_cast<unsigned>(CeilDiv(task.reduce.results, kReduceThreads / kWarp));
        FinishByShuffles<R><<<grid, kReduceThreads, 0, stream>>>(task);
        return cudaGetLastError();
      });
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_LADDER_REDUCE_BY_SHUFFLES_CUH_
