// Variant `cooperative`: one kernel. If its CTAs share results, all of them wait for each other between
// computing and combining partial results. So all CTAs must be resident at once. Therefore there are only as
// many as the device holds, and each processes several tiles.
//
// Limit: every CTA waits for the slowest, at least twice the L2 latency. No other kernel may occupy the place
// of a CTA, so the launch waits for an idle device.
// Next, `single_pass`: only the last CTA of each result combines, and no CTA waits.
#include <cooperative_groups.h>

#include <algorithm>

#include "kernels/ladder/reduce/combine.cuh"
#include "kernels/ladder/reduce/kernels.h"
#include "kernels/reduce/typed.cuh"

namespace warpline {
namespace {

template <typename Tile, typename R, typename Source>
__global__ void __launch_bounds__(kReduceThreads)
    ReduceCooperatively(Source x, const __grid_constant__ ReduceTask<R> task) {
  const int split = task.plan.split;
  const std::int64_t blocks = task.plan.tiles * split;
  for (std::int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const std::int64_t tile = block / split;
    const int part = static_cast<int>(block - tile * split);
    const ThreadShare share = Tile::ShareOf(task.plan, tile);
    typename R::Acc acc[Tile::kResults];
    Tile::template Accumulate<R>(x, task.reduce, task.plan, share, part, acc);
    CombinePeers<Tile, R>(share, acc);
    StoreShare(task, share, part, acc);
    __syncthreads();  // the next block's accumulators overwrite this one's in shared memory
  }
  if (split == 1) return;  // for the whole grid
  cooperative_groups::this_grid().sync();
  constexpr int kWarps = kReduceThreads / kWarp;
  CombinePartials(task, 0, task.reduce.results, static_cast<int>(blockIdx.x * kWarps + threadIdx.x / kWarp),
                  static_cast<int>(gridDim.x) * kWarps);
}

// Launches as many CTAs as can be resident on the current device. This number depends on the kernel. (The
// query costs less than a launch, so the number is not cached.) If no CTA waits for another, an ordinary
// launch is enough.
template <typename Kernel>
cudaError_t LaunchCooperatively(Kernel* kernel, unsigned blocks, bool wait, int multiprocessors,
                                cudaStream_t stream, const auto&... arguments) {
  int per_multiprocessor = 0;
  const cudaError_t error =
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel, kReduceThreads, 0);
  if (error != cudaSuccess) return error;
  const auto resident = static_cast<unsigned>(per_multiprocessor * multiprocessors);
  if (resident == 0) return cudaErrorNotSupported;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = std::min(blocks, resident);
  config.blockDim = kReduceThreads;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = wait ? 1 : 0;
  const cudaError_t launched = cudaLaunchKernelEx(&config, kernel, arguments...);
  if (launched != cudaErrorCooperativeLaunchTooLarge && launched != cudaErrorNotSupported) return launched;
  cudaGetLastError();
  return cudaErrorNotSupported;
}

}  // namespace

cudaError_t LaunchReduceCooperative(const ReduceProblem& problem, const Operands& operands,
                                    const CudaContext& context, cudaStream_t stream) {
  return VisitLadder(problem, operands, [&]<typename R, typename Source>(std::type_identity<R>, Source x) {
    return LaunchTask<R, Source>(
        problem, operands, context,
        [&]<typename Tile>(std::type_identity<Tile>, const ReduceTask<R>& task, unsigned blocks) {
          return LaunchCooperatively(&ReduceCooperatively<Tile, R, Source>, blocks, task.plan.split > 1,
                                     context.traits.multiprocessors, stream, x, task);
        });
  });
}

}  // namespace warpline
