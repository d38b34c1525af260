// Combines the accumulators of the threads of a CTA. The order of combination depends only on the plan, so
// every run gives the same bits.
#ifndef WARPLINE_KERNELS_REDUCE_COMBINE_CUH_
#define WARPLINE_KERNELS_REDUCE_COMBINE_CUH_

#include <cstring>

#include "kernels/reduce/task.cuh"
#include "kernels/reduce/tile.cuh"

namespace warpline {

// Shuffles word by word, because the accumulators of some monoids are structs.
template <typename Acc>
__device__ Acc ShuffleDown(Acc acc, int delta, int width) {
  static_assert(sizeof(Acc) % sizeof(unsigned) == 0);
  unsigned words[sizeof(Acc) / sizeof(unsigned)];
  memcpy(words, &acc, sizeof(acc));
#pragma unroll
  for (unsigned& word : words) word = __shfl_down_sync(0xffffffffu, word, delta, width);
  memcpy(&acc, words, sizeof(acc));
  return acc;
}

// Reduces groups of `width` lanes, a power of two. The result is in the first lane of each group. All lanes
// must call it.
template <typename R>
__device__ typename R::Acc ReduceLanes(typename R::Acc acc, int width) {
  for (int delta = width / 2; delta > 0; delta /= 2) acc = R::Combine(acc, ShuffleDown(acc, delta, width));
  return acc;
}

// Reduces the peers of each result by a tree. The total is in the first peer. All threads of the CTA must
// call it.
template <typename R, int kResults>
__device__ void CombineByTree(const ThreadShare& share, typename R::Acc (&acc)[kResults]) {
  __shared__ typename R::Acc shared[kResults][kReduceThreads];
  if (share.peers == 1) return;
#pragma unroll
  for (int c = 0; c < kResults; ++c) shared[c][threadIdx.x] = acc[c];
  __syncthreads();
  for (int half = share.peers / 2; half > 0; half /= 2) {
    if (share.peer < half) {
#pragma unroll
      for (int c = 0; c < kResults; ++c) {
        acc[c] = R::Combine(acc[c], shared[c][threadIdx.x + half * share.stride]);
        shared[c][threadIdx.x] = acc[c];
      }
    }
    __syncthreads();
  }
}

template <typename R>
__device__ void StoreResult(const ReduceTask<R>& task, std::int64_t result, typename R::Acc acc) {
  R::Finish(acc, task.finish, [&](auto value) { StoreReal(task.finish.out_dtype, task.y, result, value); });
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_COMBINE_CUH_
