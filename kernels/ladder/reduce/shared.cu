// Variant `shared`: the threads of a result combine their accumulators by a tree in shared memory. If several
// CTAs share a result, they write partial results, which a second kernel combines by the same tree.
//
// Limit: a barrier of the whole CTA at each of the tree's eight levels, with half of the threads idle after
// each; every value goes through shared memory; and the second launch.
// Next, `warp_shuffle`: a warp exchanges registers, which needs no barrier.
#include "kernels/ladder/reduce/combine.cuh"
#include "kernels/ladder/reduce/kernels.h"
#include "kernels/reduce/typed.cuh"

namespace warpline {
namespace {

template <typename Tile, typename R, typename Source>
__global__ void __launch_bounds__(kReduceThreads)
    ReduceByTree(Source x, const __grid_constant__ ReduceTask<R> task) {
  const int part = static_cast<int>(blockIdx.x % task.plan.split);
  const ThreadShare share = Tile::ShareOf(task.plan, blockIdx.x / task.plan.split);
  typename R::Acc acc[Tile::kResults];
  Tile::template Accumulate<R>(x, task.reduce, task.plan, share, part, acc);
  CombineByTree<R>(share, acc);
  StoreShare(task, share, part, acc);
}

// Uses 32 threads per result.
template <typename R>
__global__ void __launch_bounds__(kReduceThreads) FinishByTree(const __grid_constant__ ReduceTask<R> task) {
  const int thread = static_cast<int>(threadIdx.x);
  const ThreadShare share = {.result = std::int64_t{blockIdx.x} * (kReduceThreads / kWarp) + thread / kWarp,
                             .peer = thread % kWarp,
                             .peers = kWarp,
                             .stride = 1};
  typename R::Acc acc[1] = {R::Identity()};
  if (share.result < task.reduce.results) {  // all threads must reach the barriers below
    const typename R::Acc* parts = task.partials + share.result * task.plan.split;
    for (int part = share.peer; part < task.plan.split; part += share.peers) {
      acc[0] = R::Combine(acc[0], parts[part]);
    }
  }
  CombineByTree<R>(share, acc);
  if (share.peer == 0 && share.result < task.reduce.results) StoreResult(task, share.result, acc[0]);
}

}  // namespace

cudaError_t LaunchReduceShared(const ReduceProblem& problem, const Operands& operands,
                               const CudaContext& context, cudaStream_t stream) {
  return VisitLadder(problem, operands, [&]<typename R, typename Source>(std::type_identity<R>, Source x) {
    return LaunchTask<R, Source>(
        problem, operands, context,
        [&]<typename Tile>(std::type_identity<Tile>, const ReduceTask<R>& task, unsigned blocks) {
          ReduceByTree<Tile, R><<<blocks, kReduceThreads, 0, stream>>>(x, task);
          const cudaError_t error = cudaGetLastError();
          if (error != cudaSuccess || task.plan.split == 1) return error;
          const auto grid = static_cast<unsigned>(CeilDiv(task.reduce.results, kReduceThreads / kWarp));
          FinishByTree<R><<<grid, kReduceThreads, 0, stream>>>(task);
          return cudaGetLastError();
        });
  });
}

}  // namespace warpline
