// Variant `few_rows`: neighbouring results are contiguous in memory, and each has few elements.
#ifndef WARPLINE_KERNELS_REDUCE_VECTOR_FEW_ROWS_CUH_
#define WARPLINE_KERNELS_REDUCE_VECTOR_FEW_ROWS_CUH_

#include "kernels/reduce/vector_task.cuh"

namespace warpline {

// A thread computes the results for 16 bytes of elements, with all of their elements. With two or three rows,
// results are a third of all bytes, so they are stored as a vector too.
template <typename R, typename Number>
__global__ void __launch_bounds__(kVectorThreads, kHasNumber<R> ? kFewRowsCtas : kFewRowsCtas - 1)
    ReduceFewRows(const __grid_constant__ VectorTask<R> task) {
  const CanonicalReduce& reduce = task.reduce;
  const auto rows = static_cast<int>(reduce.reduced_count);
  const std::int64_t stride = reduce.reduced.strides[0];
  VisitElements<Number>(task.dtype, [&]<typename T>(T) {
    // A thread with more than 4 columns has registers for only one number per column.
    if constexpr (kHasNumber<R> || sizeof(T) >= 4) {
      constexpr int kColumns = 16 / sizeof(T), kLoads = 4;
      using V = PackValue<R, T, NumberOf<T>>;
      const std::int64_t first = (std::int64_t{blockIdx.x} * kVectorThreads + threadIdx.x) * kColumns;
      if (first >= reduce.results) return;
      const T* const from = static_cast<const T*>(task.x) + reduce.kept.Offset(first);
      typename R::Acc acc[kColumns];
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        acc[c] = R::Identity();
        if constexpr (kHasShift<R>) acc[c] = StartOf<R>(from[c]);
      }
      for (int row = 0; row < rows; row += kLoads) {
        RawVector<16> raw[kLoads] = {};
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
          if (row + i < rows) raw[i] = *reinterpret_cast<const RawVector<16>*>(from + (row + i) * stride);
        }
        if (row + kLoads <= rows) {
#pragma unroll
          for (int c = 0; c < kColumns; ++c) {
            V values[kLoads];
#pragma unroll
            for (int i = 0; i < kLoads; ++i) values[i] = Widen<V>(Element<T>(raw[i], c));
            PackAdder<R>::Add(acc[c], values, row, 1);
          }
          continue;
        }
#pragma unroll
        for (int i = 0; i < kLoads - 1; ++i) {
          if (row + i >= rows) break;
#pragma unroll
          for (int c = 0; c < kColumns; ++c) {
            R::Add(acc[c], Widen<typename R::Value>(Element<T>(raw[i], c)), row + i);
          }
        }
      }
      T* const to = static_cast<T*>(task.y) + first;
      if (task.finish.out_dtype == task.dtype && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
        RawVector<16> results = {};
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          R::Finish(acc[c], task.finish, [&](auto value) { SetElement(results, c, Narrow<T>(value)); });
        }
        *reinterpret_cast<RawVector<16>*>(to) = results;
        return;
      }
#pragma unroll
      for (int c = 0; c < kColumns; ++c) task.Finish(first + c, acc[c]);
    }
  });
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_VECTOR_FEW_ROWS_CUH_
