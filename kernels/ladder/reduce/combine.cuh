// Combines the accumulators of threads into results: within a CTA by shuffles, between CTAs through partial
// results in the workspace. The order of combination depends only on the plan.
#ifndef WARPLINE_KERNELS_LADDER_REDUCE_COMBINE_CUH_
#define WARPLINE_KERNELS_LADDER_REDUCE_COMBINE_CUH_

#include <cstdint>

#include "kernels/reduce/combine.cuh"

namespace warpline {

// Same as CombineByTree by shuffles, if the peers are the lanes of a warp, or a whole CTA. There must be a
// __syncthreads() between two calls.
template <typename R>
__device__ void CombineByShuffles(const ThreadShare& share, typename R::Acc (&acc)[1]) {
  acc[0] = ReduceLanes<R>(acc[0], min(share.peers, kWarp));
  if (share.peers > kWarp) {
    __shared__ typename R::Acc warp_totals[kReduceThreads / kWarp];
    if (threadIdx.x % kWarp == 0) warp_totals[threadIdx.x / kWarp] = acc[0];
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int warp = 1; warp < kReduceThreads / kWarp; ++warp)
        acc[0] = R::Combine(acc[0], warp_totals[warp]);
    }
  }
}

// Combines the peers of a row by shuffles. The peers of a column are not neighbouring lanes: a tree combines
// them.
template <typename Tile, typename R>
__device__ void CombinePeers(const ThreadShare& share, typename R::Acc (&acc)[Tile::kResults]) {
  if constexpr (Tile::kRows) {
    CombineByShuffles<R>(share, acc);
  } else {
    CombineByTree<R>(share, acc);
  }
}

// Stores the totals of a CTA: complete results in y, or partial ones if several CTAs share a result.
template <typename R, int kResults>
__device__ void StoreShare(const ReduceTask<R>& task, const ThreadShare& share, int part,
                           typename R::Acc (&acc)[kResults]) {
  if (share.peer != 0 || share.result >= task.reduce.results) return;
#pragma unroll
  for (int c = 0; c < kResults; ++c) {
    if (task.plan.split == 1) {
      StoreResult(task, share.result + c, acc[c]);
    } else {
      task.partials[(share.result + c) * task.plan.split + part] = acc[c];
    }
  }
}

// Combines the partial results of results [first, end), by `warps` warps, of which this is number `warp`. A
// group of lanes combines one result. The group has as many lanes as there are parts, rounded up, at most a
// warp. All lanes must call it.
template <typename R>
__device__ void CombinePartials(const ReduceTask<R>& task, std::int64_t first, std::int64_t end, int warp,
                                int warps) {
  const int split = task.plan.split;
  const int width = split >= kWarp ? kWarp : 1 << (kWarp - __clz(split - 1));  // split > 1
  const int lane = static_cast<int>(threadIdx.x) % kWarp, groups = kWarp / width;
  for (std::int64_t base = first + std::int64_t{warp} * groups; base < end;
       base += std::int64_t{warps} * groups) {
    const std::int64_t result = base + lane / width;
    typename R::Acc acc = R::Identity();
    if (result < end) {
      const typename R::Acc* parts = task.partials + result * split;
      for (int part = lane % width; part < split; part += width) acc = R::Combine(acc, parts[part]);
    }
    acc = ReduceLanes<R>(acc, width);
    if (lane % width == 0 && result < end) StoreResult(task, result, acc);
  }
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_LADDER_REDUCE_COMBINE_CUH_
