// Variant `rows`: the elements of a result are contiguous, in rows or in runs of whole vectors.
#ifndef WARPLINE_KERNELS_REDUCE_VECTOR_ROWS_CUH_
#define WARPLINE_KERNELS_REDUCE_VECTOR_ROWS_CUH_

#include "kernels/reduce/vector_task.cuh"

namespace warpline {

// True if adding an element takes no longer than loading it. Products in f64 and exponentials take longer.
template <typename R>
inline constexpr bool kWaitsForLoads = true;
template <typename V>
inline constexpr bool kWaitsForLoads<ProdMonoid<V>> = false;
template <typename V>
inline constexpr bool kWaitsForLoads<LogSumExpMonoid<V>> = false;

// Adds the vectors [begin, end) of a result that belong to `lane` of `lanes`. Element 0 of vector v has index
// first + v * elements.
template <typename R, typename Number, typename F>
__device__ void AddVectors(DType dtype, std::int64_t first, std::int64_t begin, std::int64_t end, int lane,
                           int lanes, F&& address, typename R::Acc& acc) {
  std::int64_t v = begin + lane;
  RawVector<16> raw[kRowLoads];
  for (; v + (kRowLoads - 1) * lanes < end; v += kRowLoads * lanes) {
#pragma unroll
    for (int i = 0; i < kRowLoads; ++i) {
      raw[i] = *reinterpret_cast<const RawVector<16>*>(address(v + i * lanes));
    }
    VisitElements<Number>(dtype, [&]<typename T>(T) {
      constexpr int kElements = 16 / sizeof(T);
      // Adds packs of 16 elements. They have several vectors if indices do not matter.
      constexpr int kVectors = kHasIndices<R> || kElements > 8 ? 1 : kElements == 8 ? 2 : kRowLoads;
      using V = PackValue<R, T, NumberOf<T>>;
#pragma unroll
      for (int pack = 0; pack < kRowLoads; pack += kVectors) {
        V values[kVectors * kElements];
#pragma unroll
        for (int i = 0; i < kVectors * kElements; ++i) {
          values[i] = Widen<V>(Element<T>(raw[pack + i / kElements], i % kElements));
        }
        PackAdder<R>::Add(acc, values, first + (v + pack * lanes) * kElements, 1);
      }
    });
  }
  if constexpr (kWaitsForLoads<R>) {
    // Load the remaining vectors at once too.
#pragma unroll
    for (int i = 0; i < kRowLoads - 1; ++i) {
      if (v + i * lanes < end) raw[i] = *reinterpret_cast<const RawVector<16>*>(address(v + i * lanes));
    }
    VisitElements<Number>(dtype, [&]<typename T>(T) {
      constexpr int kElements = 16 / sizeof(T);
      using V = PackValue<R, T, NumberOf<T>>;
#pragma unroll
      for (int i = 0; i < kRowLoads - 1; ++i) {
        if (v + i * lanes >= end) break;
        V values[kElements];
#pragma unroll
        for (int e = 0; e < kElements; ++e) values[e] = Widen<V>(Element<T>(raw[i], e));
        PackAdder<R>::Add(acc, values, first + (v + i * lanes) * kElements, 1);
      }
    });
  } else {
    const auto add = [&](const RawVector<16>& vector) {
      VisitElements<Number>(dtype, [&]<typename T>(T) {
        constexpr int kElements = 16 / sizeof(T);
        using V = PackValue<R, T, NumberOf<T>>;
        V values[kElements];
#pragma unroll
        for (int e = 0; e < kElements; ++e) values[e] = Widen<V>(Element<T>(vector, e));
        PackAdder<R>::Add(acc, values, first + v * kElements, 1);
      });
    };
    for (; v < end; v += lanes) add(*reinterpret_cast<const RawVector<16>*>(address(v)));
  }
}

template <typename R, typename Number>
__global__ void __launch_bounds__(kVectorThreads, sizeof(typename R::Acc) <= 8 ? kRowCtas : 3)
    ReduceRows(const __grid_constant__ VectorTask<R> task) {
  const VectorPlan& plan = task.plan;
  const AxisList& reduced = task.reduce.reduced;
  const int part = task.Part(), thread = static_cast<int>(threadIdx.x), lanes = plan.lanes;
  const int lane = thread % lanes;
  const std::int64_t result = task.Tile() * plan.results_per_cta + thread / lanes;
  typename R::Acc acc = R::Identity();
  if (result < task.reduce.results) {
    const std::int64_t base = task.reduce.kept.Offset(result), count = task.reduce.reduced_count;
    const std::int64_t run = reduced.dims[reduced.rank - 1];
    std::int64_t begin = part * plan.chunk, end = min(begin + plan.chunk, plan.steps);
    const auto element_bytes = static_cast<std::int64_t>(task.element_bytes);
    const char* x = static_cast<const char*>(task.x) + base * element_bytes;
    const auto add_one = [&](std::int64_t r) {
      VisitElements<Number>(task.dtype, [&]<typename T>(T) {
        const T element = *reinterpret_cast<const T*>(x + reduced.Offset(r) * element_bytes);
        R::Add(acc, Widen<typename R::Value>(element), r);
      });
    };
    if constexpr (kHasShift<R>) {
      VisitElements<Number>(task.dtype, [&]<typename T>(T) {
        if (count > 0) acc = StartOf<R>(*reinterpret_cast<const T*>(x));
      });
    }
    if (reduced.rank == 1) {
      // Single elements up to a multiple of 16 bytes, then vectors, then single elements.
      const std::int64_t vector = 16 / element_bytes;
      const auto misaligned =
          static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(x) % 16) / element_bytes;
      const std::int64_t head = min(count, misaligned == 0 ? std::int64_t{0} : vector - misaligned);
      const std::int64_t vectors = (count - head) / vector;
      if (part == 0) {
        for (std::int64_t r = lane; r < head; r += lanes) add_one(r);
      }
      const char* first = x + head * element_bytes;
      AddVectors<R, Number>(
          task.dtype, head, begin, min(end, vectors), lane, lanes,
          [=](std::int64_t v) { return first + v * 16; }, acc);
      if (part == plan.split - 1) {
        for (std::int64_t r = head + vectors * vector + lane; r < count; r += lanes) add_one(r);
      }
    } else {
      const std::int64_t run_vectors = run * element_bytes / 16;
      AddVectors<R, Number>(
          task.dtype, 0, begin, end, lane, lanes,
          [&](std::int64_t v) {
            const std::int64_t in_run = TakeRemainder(v, run_vectors);
            return x + reduced.OffsetOfRun(v) * element_bytes + in_run * 16;
          },
          acc);
    }
  }
  acc = CombineLanes<R>(acc, lanes);
  if (result < task.reduce.results && lane == 0) task.Store(result, part, acc);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_VECTOR_ROWS_CUH_
