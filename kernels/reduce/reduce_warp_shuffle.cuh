// Variant `warp_shuffle`: the kernels. Partial results are combined in an order fixed by the plan alone (no
// atomics), so that every run gives the same bits.
#ifndef WARPLINE_KERNELS_REDUCE_REDUCE_WARP_SHUFFLE_CUH_
#define WARPLINE_KERNELS_REDUCE_REDUCE_WARP_SHUFFLE_CUH_

#include <cstring>

#include "kernels/cuda_variants.h"
#include "kernels/gpu/real.cuh"
#include "kernels/launch_grids.h"
#include "kernels/reduce/monoids.h"
#include "kernels/reduce/plan.h"

namespace warpline {

inline constexpr int kWarp = 32;
inline constexpr int kChains = 4;  // independent accumulators, and 16-byte loads in flight, of a thread

template <typename T>
struct alignas(16) ReduceVector {
  T elements[16 / sizeof(T)];
};

// Elements of a type known to the compiler, which are loaded in vectors.
template <typename T>
struct TypedSource {
  using Element = T;
  static constexpr int kVector = 16 / sizeof(T);
  const T* data;

  __device__ TypedSource operator+(std::int64_t offset) const { return {data + offset}; }
  template <typename V>
  __device__ V Load(std::int64_t i) const {
    return Widen<V>(data[i]);
  }
};

// Elements of any type, one at a time.
struct AnySource {
  static constexpr int kVector = 1;
  const void* data;
  DType dtype;
  std::int64_t offset = 0;

  __device__ AnySource operator+(std::int64_t more) const { return {data, dtype, offset + more}; }
  template <typename V>
  __device__ V Load(std::int64_t i) const {
    return LoadReal<V>(dtype, data, offset + i);
  }
};

// Word by word: the accumulators of some monoids are structs.
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

// Over groups of `width` lanes, a power of two; the result is in the first lane of each. All lanes call it.
template <typename R>
__device__ typename R::Acc ReduceLanes(typename R::Acc acc, int width) {
  for (int delta = width / 2; delta > 0; delta /= 2) acc = R::Combine(acc, ShuffleDown(acc, delta, width));
  return acc;
}

// Adds elements src[0, count), whose indices start at `first`, that fall to `lane` of `lanes`.
template <typename R, typename T>
__device__ void AccumulateRun(const T* src, std::int64_t first, std::int64_t count, int lane, int lanes,
                              typename R::Acc (&acc)[kChains]) {
  using Vector = ReduceVector<T>;
  constexpr int kVector = 16 / sizeof(T);
  auto add = [&](int chain, T x, std::int64_t i) {
    R::Add(acc[chain], Widen<typename R::Value>(x), first + i);
  };
  // Elements before the first 16-byte boundary.
  const std::int64_t misaligned = reinterpret_cast<std::uintptr_t>(src) % 16 / sizeof(T);
  const std::int64_t head = min(count, misaligned == 0 ? std::int64_t{0} : kVector - misaligned);
  for (std::int64_t i = lane; i < head; i += lanes) add(0, src[i], i);

  const Vector* vectors = reinterpret_cast<const Vector*>(src + head);
  const std::int64_t vector_count = (count - head) / kVector;
  std::int64_t v = lane;
  for (; v + (kChains - 1) * lanes < vector_count; v += kChains * lanes) {
    Vector loaded[kChains];
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) loaded[chain] = vectors[v + chain * lanes];
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) {
#pragma unroll
      for (int e = 0; e < kVector; ++e) {
        add(chain, loaded[chain].elements[e], head + (v + chain * lanes) * kVector + e);
      }
    }
  }
  for (; v < vector_count; v += lanes) {
    const Vector loaded = vectors[v];
#pragma unroll
    for (int e = 0; e < kVector; ++e) add(e % kChains, loaded.elements[e], head + v * kVector + e);
  }
  for (std::int64_t i = head + vector_count * kVector + lane; i < count; i += lanes) add(0, src[i], i);
}

// Adds elements [begin, end) of the result at `x` that fall to `lane` of `lanes`; the innermost reduced axis
// has stride 1.
template <typename R, typename Source>
__device__ void AccumulateRow(Source x, const AxisList& reduced, std::int64_t begin, std::int64_t end,
                              int lane, int lanes, typename R::Acc (&acc)[kChains]) {
  if constexpr (Source::kVector > 1) {
    const std::int64_t inner = reduced.dims[reduced.rank - 1];
    if (reduced.rank == 1 || inner >= lanes * std::int64_t{Source::kVector}) {
      for (std::int64_t r = begin; r < end;) {
        const std::int64_t count = min(inner - r % inner, end - r);
        AccumulateRun<R>(x.data + reduced.Offset(r), r, count, lane, lanes, acc);
        r += count;
      }
      return;
    }
  }
  // Runs too short to occupy every lane, or elements of any type: find each by its index.
  for (std::int64_t r = begin + lane; r < end; r += kChains * lanes) {
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) {
      const std::int64_t i = r + chain * lanes;
      if (i < end) R::Add(acc[chain], x.template Load<typename R::Value>(reduced.Offset(i)), i);
    }
  }
}

// Where a CTA leaves a result: y if it is whole, else partials[result][part].
template <typename R>
__device__ void Store(typename R::Acc acc, std::int64_t result, int part, void* y, typename R::Acc* partials,
                      const ReduceFinish& finish, const ReducePlan& plan) {
  if (plan.split == 1) {
    R::Finish(acc, finish, [&](auto value) { StoreReal(finish.out_dtype, y, result, value); });
  } else {
    partials[result * plan.split + part] = acc;
  }
}

template <typename R, typename Source>
__global__ void __launch_bounds__(kReduceThreads)
    ReduceRows(Source x, void* y, typename R::Acc* partials, const __grid_constant__ CanonicalReduce reduce,
               const __grid_constant__ ReducePlan plan, const __grid_constant__ ReduceFinish finish) {
  using Acc = typename R::Acc;
  const int part = static_cast<int>(blockIdx.x % plan.split);
  const int lane = threadIdx.x % plan.lanes;
  const std::int64_t result =
      std::int64_t{blockIdx.x / plan.split} * plan.results_per_cta + threadIdx.x / plan.lanes;
  Acc acc[kChains];
#pragma unroll
  for (int chain = 0; chain < kChains; ++chain) acc[chain] = R::Identity();
  if (result < reduce.results) {
    const std::int64_t begin = part * plan.chunk;
    const std::int64_t end = min(begin + plan.chunk, reduce.reduced_count);
    AccumulateRow<R>(x + reduce.kept.Offset(result), reduce.reduced, begin, end, lane, plan.lanes, acc);
  }
  Acc total = R::Combine(R::Combine(acc[0], acc[1]), R::Combine(acc[2], acc[3]));
  total = ReduceLanes<R>(total, min(plan.lanes, kWarp));
  if (plan.lanes > kWarp) {
    __shared__ Acc warp_totals[kReduceThreads / kWarp];
    if (threadIdx.x % kWarp == 0) warp_totals[threadIdx.x / kWarp] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int warp = 1; warp < kReduceThreads / kWarp; ++warp) total = R::Combine(total, warp_totals[warp]);
    }
  }
  if (lane == 0 && result < reduce.results) Store<R>(total, result, part, y, partials, finish, plan);
}

// kColumns neighbours. (Every load of a launch is as aligned as its base: see AreVectors in plan.cc.)
template <typename V, typename Source, int kColumns>
__device__ void LoadColumns(Source x, V (&columns)[kColumns]) {
  if constexpr (kColumns > 1) {
    if (reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0) {
      const auto vector = *reinterpret_cast<const ReduceVector<typename Source::Element>*>(x.data);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) columns[c] = Widen<V>(vector.elements[c]);
      return;
    }
  }
#pragma unroll
  for (int c = 0; c < kColumns; ++c) columns[c] = x.template Load<V>(c);
}

template <typename R, typename Source, int kColumns>
__global__ void __launch_bounds__(kReduceThreads)
    ReduceColumns(Source x, void* y, typename R::Acc* partials,
                  const __grid_constant__ CanonicalReduce reduce, const __grid_constant__ ReducePlan plan,
                  const __grid_constant__ ReduceFinish finish) {
  using Acc = typename R::Acc;
  using Value = typename R::Value;
  constexpr int kLoads = 4;  // in flight a thread; also for kColumns == 1, where they are narrow
  __shared__ Acc shared[kColumns][kReduceThreads];
  const int part = static_cast<int>(blockIdx.x % plan.split);
  const int lane = threadIdx.x % plan.lanes, row = threadIdx.x / plan.lanes;
  const int rows = kReduceThreads / plan.lanes;
  const std::int64_t result =
      std::int64_t{blockIdx.x / plan.split} * plan.results_per_cta + std::int64_t{lane} * kColumns;
  Acc acc[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) acc[c] = R::Identity();

  if (result < reduce.results) {
    const Source first = x + reduce.kept.Offset(result);
    const std::int64_t begin = part * plan.chunk;
    const std::int64_t end = min(begin + plan.chunk, reduce.reduced_count);
    for (std::int64_t base = begin + row; base < end; base += kLoads * rows) {
      Value loaded[kLoads][kColumns];
#pragma unroll
      for (int load = 0; load < kLoads; ++load) {
        const std::int64_t r = base + load * rows;
        if (r < end) LoadColumns(first + reduce.reduced.Offset(r), loaded[load]);
      }
#pragma unroll
      for (int load = 0; load < kLoads; ++load) {
        const std::int64_t r = base + load * rows;
        if (r >= end) continue;
#pragma unroll
        for (int c = 0; c < kColumns; ++c) R::Add(acc[c], loaded[load][c], r);
      }
    }
  }
  if (rows > 1) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) shared[c][threadIdx.x] = acc[c];
    __syncthreads();
    for (int half = rows / 2; half > 0; half /= 2) {
      if (row < half) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          acc[c] = R::Combine(acc[c], shared[c][threadIdx.x + half * plan.lanes]);
          shared[c][threadIdx.x] = acc[c];
        }
      }
      __syncthreads();
    }
  }
  if (row == 0 && result < reduce.results) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) Store<R>(acc[c], result + c, part, y, partials, finish, plan);
  }
}

// One warp a result: combines its `split` partial results.
template <typename R>
__global__ void __launch_bounds__(kReduceThreads)
    FinishReduce(const typename R::Acc* partials, void* y, std::int64_t results, int split,
                 const __grid_constant__ ReduceFinish finish) {
  const std::int64_t result = std::int64_t{blockIdx.x} * (kReduceThreads / kWarp) + threadIdx.x / kWarp;
  if (result >= results) return;  // the whole warp
  const int lane = threadIdx.x % kWarp;
  typename R::Acc acc = R::Identity();
  for (int part = lane; part < split; part += kWarp) acc = R::Combine(acc, partials[result * split + part]);
  acc = ReduceLanes<R>(acc, kWarp);
  if (lane == 0) {
    R::Finish(acc, finish, [&](auto value) { StoreReal(finish.out_dtype, y, result, value); });
  }
}

template <typename R, typename Source>
cudaError_t LaunchWarpShuffle(const ReduceProblem& problem, Source x, const Operands& operands,
                              const CudaContext& context, cudaStream_t stream) {
  const CanonicalReduce reduce = Canonicalize(problem);
  if (reduce.results == 0) return cudaSuccess;
  const ReducePlan plan = PlanReduce(reduce, Source::kVector, context.traits);
  if (plan.WorkspaceBytes(reduce.results) > operands.workspace_bytes) return cudaErrorInvalidValue;
  const ReduceFinish finish = FinishOf(problem);
  auto* partials = static_cast<typename R::Acc*>(operands.workspace);
  const std::int64_t blocks = plan.tiles * plan.split;
  if (blocks > kMaxGridX) return cudaErrorNotSupported;
  auto* kernel = plan.rows           ? &ReduceRows<R, Source>
                 : plan.columns == 1 ? &ReduceColumns<R, Source, 1>
                                     : &ReduceColumns<R, Source, Source::kVector>;
  kernel<<<static_cast<unsigned>(blocks), kReduceThreads, 0, stream>>>(x, operands.out, partials, reduce,
                                                                       plan, finish);
  if (cudaError_t error = cudaGetLastError(); error != cudaSuccess || plan.split == 1) return error;
  const auto grid = static_cast<unsigned>(CeilDiv(reduce.results, kReduceThreads / kWarp));
  FinishReduce<R>
      <<<grid, kReduceThreads, 0, stream>>>(partials, operands.out, reduce.results, plan.split, finish);
  return cudaGetLastError();
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_REDUCE_WARP_SHUFFLE_CUH_
