// One reduction in the form that the kernels of plans take, and the last steps of these kernels.
#ifndef WARPLINE_KERNELS_REDUCE_VECTOR_TASK_CUH_
#define WARPLINE_KERNELS_REDUCE_VECTOR_TASK_CUH_

#include "kernels/reduce/combine.cuh"
#include "kernels/reduce/vector_loads.cuh"

namespace warpline {

// True if the accumulator of a result is one number.
template <typename R>
inline constexpr bool kHasNumber = std::is_arithmetic_v<typename R::Acc>;

template <typename R>
struct VectorTask {
  const void* x;
  void* y;
  typename R::Acc* partials;  // [part][result]; used if plan.split > 1
  DType dtype;
  std::int32_t element_bytes;
  CanonicalReduce reduce;
  VectorPlan plan;
  ReduceFinish finish;

  __device__ int Part() const { return static_cast<int>(blockIdx.x % plan.split); }
  __device__ std::int64_t Tile() const { return blockIdx.x / plan.split; }

  // Stores what one CTA accumulated for a result.
  __device__ void Store(std::int64_t result, int part, const typename R::Acc& acc) const {
    if (plan.split > 1) {
      partials[part * reduce.results + result] = acc;
    } else {
      Finish(result, acc);
    }
  }
  __device__ void Finish(std::int64_t result, const typename R::Acc& acc) const {
    R::Finish(acc, finish, [&](auto value) { StoreReal(finish.out_dtype, y, result, value); });
  }
};

// The initial accumulator of the threads of a result. `first` is the first element of that result.
template <typename R, typename T>
__device__ typename R::Acc StartOf(T first) {
  typename R::Acc acc = R::Identity();
  if constexpr (kHasShift<R>) acc.shift = Widen<double>(first);
  return acc;
}

// Combines the accumulators of neighbouring threads that share a result, in groups of `lanes`, a power of two
// up to the whole CTA. The total is in the first thread. All threads of the CTA must call it, only once per
// kernel.
template <typename R>
__device__ typename R::Acc CombineLanes(typename R::Acc acc, int lanes) {
  acc = ReduceLanes<R>(acc, min(lanes, kWarp));
  if (lanes <= kWarp) return acc;
  __shared__ typename R::Acc warp_totals[kVectorThreads / kWarp];
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  if (threadIdx.x % kWarp == 0) warp_totals[warp] = acc;
  __syncthreads();
  if (threadIdx.x % lanes == 0) {
    for (int i = 1; i < lanes / kWarp; ++i) acc = R::Combine(acc, warp_totals[warp + i]);
  }
  return acc;
}

// Combines partial results: `width` neighbouring results per CTA, whose threads share the parts.
template <typename R>
__global__ void __launch_bounds__(kVectorThreads)
    CombineVectorParts(const __grid_constant__ VectorTask<R> task, int width) {
  const int thread = static_cast<int>(threadIdx.x), peer = thread / width, peers = kVectorThreads / width;
  const std::int64_t result = std::int64_t{blockIdx.x} * width + thread % width;
  typename R::Acc acc[1] = {R::Identity()};
  if (result < task.reduce.results) {
    for (int part = peer; part < task.plan.split; part += peers) {
      acc[0] = R::Combine(acc[0], task.partials[part * task.reduce.results + result]);
    }
  }
  CombineByTree<R>({result, peer, peers, width}, acc);
  if (result < task.reduce.results && peer == 0) task.Finish(result, acc[0]);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_VECTOR_TASK_CUH_
