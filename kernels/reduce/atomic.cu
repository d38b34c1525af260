// Variant `atomic`: sums by atomic additions. Each thread adds its sum to its warp's accumulator in shared
// memory, and each CTA adds its total to that of the result in the workspace. (Separate accumulators are
// needed: if all threads added to one address of device memory, the additions would be serialised.) A small
// kernel converts the totals to results.
//
// Limit: atomic additions to one address are serialised: 32 to a warp's accumulator, and one per CTA to a
// result's. It can only compute sums. The order of additions differs from run to run, and so do the last bits
// of a floating-point sum. (An addition to device memory also treats f32 below the normal range as 0.)
// Next, `shared`: combined in a fixed order.
#include "kernels/reduce/combine.cuh"
#include "kernels/reduce/kernels.h"
#include "kernels/reduce/typed.cuh"

namespace warpline {
namespace {

__device__ void AtomicAdd(float* to, float x) { atomicAdd(to, x); }
__device__ void AtomicAdd(double* to, double x) { atomicAdd(to, x); }
__device__ void AtomicAdd(std::uint64_t* to, std::uint64_t x) {
  static_assert(sizeof(unsigned long long) == sizeof(std::uint64_t));
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(x));
}

// Writes the totals of results to task.partials if CTAs share them, otherwise writes results.
template <typename Tile, typename R, typename Source>
__global__ void __launch_bounds__(kReduceThreads)
    ReduceAtomically(Source x, const __grid_constant__ ReduceTask<R> task) {
  using Acc = typename R::Acc;
  constexpr int kThreads = kReduceThreads;
  __shared__ Acc totals[kThreads * Tile::kResults];  // `copies` neighbouring accumulators per result
  for (int i = static_cast<int>(threadIdx.x); i < kThreads * Tile::kResults; i += kThreads) totals[i] = 0;
  __syncthreads();

  const std::int64_t tile = blockIdx.x / task.plan.split;
  const int part = static_cast<int>(blockIdx.x % task.plan.split);
  const ThreadShare share = Tile::ShareOf(task.plan, tile);
  Acc acc[Tile::kResults];
  Tile::template Accumulate<R>(x, task.reduce, task.plan, share, part, acc);

  const std::int64_t first = tile * task.plan.results_per_cta;
  // If a CTA has one row, there is one accumulator per warp. Otherwise the threads of a warp mostly belong to
  // different results.
  const int copies = Tile::kRows && share.peers > kWarp ? kThreads / kWarp : 1;
  const int own = static_cast<int>(share.result - first) * copies + share.peer / kWarp % copies;
#pragma unroll
  for (int c = 0; c < Tile::kResults; ++c) AtomicAdd(&totals[own + c * copies], acc[c]);
  __syncthreads();

  for (int i = static_cast<int>(threadIdx.x); i < task.plan.results_per_cta; i += kThreads) {
    if (first + i >= task.reduce.results) break;
    Acc total = totals[i * copies];
    for (int copy = 1; copy < copies; ++copy) total += totals[i * copies + copy];
    if (task.plan.split == 1) {
      StoreResult(task, first + i, total);
    } else {
      AtomicAdd(&task.partials[first + i], total);
    }
  }
}

template <typename R>
__global__ void __launch_bounds__(kReduceThreads) FinishTotals(const __grid_constant__ ReduceTask<R> task) {
  const std::int64_t result = std::int64_t{blockIdx.x} * kReduceThreads + threadIdx.x;
  if (result < task.reduce.results) StoreResult(task, result, task.partials[result]);
}

}  // namespace

cudaError_t LaunchReduceAtomic(const ReduceProblem& problem, const Operands& operands,
                               const CudaContext& context, cudaStream_t stream) {
  return VisitLadder(problem, operands, [&]<typename R, typename Source>(std::type_identity<R>, Source x) {
    if constexpr (!kIsSum<R>) {
      return cudaErrorNotSupported;
    } else {
      return LaunchTask<R, Source>(
          problem, operands, context,
          [&]<typename Tile>(std::type_identity<Tile>, const ReduceTask<R>& task, unsigned blocks) {
            const bool shared_results = task.plan.split > 1;
            if (shared_results) {
              const auto bytes = static_cast<std::size_t>(task.reduce.results) * sizeof(*task.partials);
              const cudaError_t error = cudaMemsetAsync(task.partials, 0, bytes, stream);
              if (error != cudaSuccess) return error;
            }
            ReduceAtomically<Tile, R><<<blocks, kReduceThreads, 0, stream>>>(x, task);
            const cudaError_t error = cudaGetLastError();
            if (error != cudaSuccess || !shared_results) return error;
            const auto grid = static_cast<unsigned>(CeilDiv(task.reduce.results, kReduceThreads));
            FinishTotals<R><<<grid, kReduceThreads, 0, stream>>>(task);
            return cudaGetLastError();
          });
    }
  });
}

}  // namespace warpline
