// Variants `packed_rows` and `packed_columns`: the data of a CTA is contiguous and fits its shared memory.
// These are short rows, and blocks of few or short columns.
#ifndef WARPLINE_KERNELS_REDUCE_VECTOR_PACKED_CUH_
#define WARPLINE_KERNELS_REDUCE_VECTOR_PACKED_CUH_

#include <cuda_pipeline_primitives.h>

#include "kernels/reduce/vector_task.cuh"

namespace warpline {

// CTAs per multiprocessor. It has 2048 threads, but 1536 for compute capability 8.6 to 8.9 or 12.
#if defined(__CUDA_ARCH__) && \
    (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
inline constexpr int kMaxCtas = 1536 / kVectorThreads;
#else
inline constexpr int kMaxCtas = 2048 / kVectorThreads;
#endif
template <typename R>
inline constexpr int kPackedCtas = sizeof(typename R::Acc) <= 8 ? kMaxCtas : 4;

// Copies `bytes` of x, which begins at a multiple of 16 bytes, into shared memory. All threads of the CTA
// must call it. Vectors may extend into the data of the next CTA, but not past `left`, the number of bytes up
// to the input's end.
__device__ inline void CopyPacked(const char* x, int bytes, std::int64_t left, RawVector<16>* vectors) {
  const int thread = static_cast<int>(threadIdx.x);
  const int whole = static_cast<int>(min(left / 16, std::int64_t{(bytes + 15) / 16}));
  for (int i = thread; i < whole; i += kVectorThreads) __pipeline_memcpy_async(&vectors[i], x + i * 16, 16);
  for (int i = whole * 16 + thread; i < bytes; i += kVectorThreads) {
    reinterpret_cast<char*>(vectors)[i] = x[i];
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
}

// The rows of a CTA have the same layout in shared memory as in global memory, from a multiple of 16 bytes
// on. Rows that are multiples of 16 bytes are read in vectors, others element by element. In the latter case
// neighbouring rows begin in different banks. If vectors of several rows lie in one bank, there are few such
// rows.
template <typename R, typename Number>
__global__ void __launch_bounds__(kVectorThreads, kPackedCtas<R>)
    ReducePackedRows(const __grid_constant__ VectorTask<R> task) {
  extern __shared__ RawVector<16> vectors[];
  const VectorPlan& plan = task.plan;
  const int thread = static_cast<int>(threadIdx.x), lanes = plan.lanes, lane = thread % lanes;
  const std::int64_t first_row = task.Tile() * plan.results_per_cta;
  const auto rows = static_cast<int>(min(plan.results_per_cta, task.reduce.results - first_row));
  const auto length = static_cast<int>(task.reduce.reduced_count);
  const std::int64_t row_bytes = std::int64_t{length} * task.element_bytes;
  const std::int64_t begin = first_row * row_bytes;  // in the input, in bytes from an aligned address
  const int lead = static_cast<int>(begin % 16), bytes = lead + static_cast<int>(rows * row_bytes);
  const char* x = static_cast<const char*>(task.x) + (begin - lead);
  CopyPacked(x, bytes, task.reduce.results * row_bytes - (begin - lead), vectors);
  VisitElements<Number>(task.dtype, [&]<typename T>(T) {
    constexpr int kPack = 4;
    using V = PackValue<R, T, NumberOf<T>>;
    const T* elements = reinterpret_cast<const T*>(reinterpret_cast<const char*>(vectors) + lead);
    // All threads of a warp stay in the loop, because they exchange values.
    const int at_once = kVectorThreads / lanes;
    for (int base = 0; base < rows; base += at_once) {
      const int row = base + thread / lanes;
      const T* from = elements + row * length;
      typename R::Acc acc = R::Identity();
      if (row < rows) {
        acc = StartOf<R>(from[0]);
        int i = lane;
        if (plan.aligned) {
          constexpr int kElements = 16 / sizeof(T);
          for (; i < length / kElements; i += lanes) {
            const auto raw = reinterpret_cast<const RawVector<16>*>(from)[i];
            V values[kElements];
#pragma unroll
            for (int e = 0; e < kElements; ++e) values[e] = Widen<V>(Element<T>(raw, e));
            PackAdder<R>::Add(acc, values, i * kElements, 1);
          }
          i = length;
        }
        for (; i + (kPack - 1) * lanes < length; i += kPack * lanes) {
          V values[kPack];
#pragma unroll
          for (int p = 0; p < kPack; ++p) values[p] = Widen<V>(from[i + p * lanes]);
          PackAdder<R>::Add(acc, values, i, lanes);
        }
        for (; i < length; i += lanes) R::Add(acc, Widen<typename R::Value>(from[i]), i);
      }
      acc = ReduceLanes<R>(acc, lanes);
      if (row < rows && lane == 0) task.Finish(first_row + row, acc);
    }
  });
}

// Blocks of columns are contiguous; a CTA copies whole blocks into shared memory. A thread computes a result,
// or `peers` threads share it, row by row, so that neighbouring threads read neighbouring elements.
template <typename R, typename Number>
__global__ void __launch_bounds__(kVectorThreads, kPackedCtas<R>)
    ReducePackedColumns(const __grid_constant__ VectorTask<R> task) {
  extern __shared__ RawVector<16> vectors[];
  const VectorPlan& plan = task.plan;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t first_result = task.Tile() * plan.results_per_cta;
  const auto results = static_cast<int>(min(plan.results_per_cta, task.reduce.results - first_result));
  const auto inner = static_cast<int>(plan.inner), rows = static_cast<int>(task.reduce.reduced_count);
  const std::int64_t column_bytes = std::int64_t{rows} * task.element_bytes;
  const std::int64_t begin = first_result * column_bytes;  // in the input, in bytes from an aligned address
  const int lead = static_cast<int>(begin % 16), bytes = lead + static_cast<int>(results * column_bytes);
  const char* x = static_cast<const char*>(task.x) + (begin - lead);
  CopyPacked(x, bytes, task.reduce.results * column_bytes - (begin - lead), vectors);
  __shared__ typename R::Acc shared[kVectorThreads];  // [peer][result]; used if peers share results
  const int peers = plan.lanes,
            at_once = peers == 1 ? kVectorThreads : static_cast<int>(plan.results_per_cta);
  const int peer = thread / at_once;
  VisitElements<Number>(task.dtype, [&]<typename T>(T) {
    constexpr int kPack = sizeof(T) == 1 ? 8 : 4;
    using V = PackValue<R, T, NumberOf<T>>;
    const T* elements = reinterpret_cast<const T*>(reinterpret_cast<const char*>(vectors) + lead);
    for (int base = 0; base < results; base += at_once) {
      const int result = base + thread % at_once;
      typename R::Acc acc = R::Identity();
      if (result < results && peer < peers) {
        const T* from = elements + result / inner * (rows * inner) + result % inner;
        acc = StartOf<R>(from[0]);
        const int step = peers * inner;
        const T* at = from + peer * inner;
        int i = peer;
        for (; i + (kPack - 1) * peers < rows; i += kPack * peers, at += kPack * step) {
          V values[kPack];
#pragma unroll
          for (int p = 0; p < kPack; ++p) values[p] = Widen<V>(at[p * step]);
          PackAdder<R>::Add(acc, values, i, peers);
        }
        for (; i < rows; i += peers, at += step) R::Add(acc, Widen<typename R::Value>(*at), i);
      }
      if (peers > 1) {
        shared[thread] = acc;
        __syncthreads();  // only once: with peers there is only one round
        if (peer == 0) {
          for (int p = 1; p < peers; ++p) acc = R::Combine(acc, shared[thread + p * at_once]);
        }
      }
      if (result < results && peer == 0) task.Finish(first_result + result, acc);
    }
  });
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_VECTOR_PACKED_CUH_
