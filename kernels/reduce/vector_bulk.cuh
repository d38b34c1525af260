// Variant `bulk_columns`: neighbouring results are contiguous in memory, and the device itself copies rows
// (sm_90 and later).
#ifndef WARPLINE_KERNELS_REDUCE_VECTOR_BULK_CUH_
#define WARPLINE_KERNELS_REDUCE_VECTOR_BULK_CUH_

#include "kernels/gpu/mbarrier.cuh"
#include "kernels/reduce/vector_columns.cuh"

namespace warpline {

// A ring of stages in shared memory. The last warp of a CTA fills them, one row per lane, by copies that need
// no thread's time. Copies begin at multiples of 16 bytes, up to 15 bytes before the row. The other threads
// add the rows that have arrived, with up to ColumnsOf columns per thread. A CTA processes several tiles
// without emptying the ring.
template <typename R, typename Number>
__global__ void __launch_bounds__(kMaxBulkThreads, kBulkCtas)
    ReduceBulkColumns(const __grid_constant__ VectorTask<R> task) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  constexpr int kColumns = kColumnsOf<Number>;
  extern __shared__ RawVector<16> vectors[];
  __shared__ Mbarrier full[kBulkStages], empty[kBulkStages];
  __shared__ int4 starts[kBulkStages][kMaxBulkRows / 4];  // offsets of rows in the ring, in bytes
  const VectorPlan& plan = task.plan;
  const CanonicalReduce& reduce = task.reduce;
  const int thread = static_cast<int>(threadIdx.x), takers = plan.threads - kWarp;
  char* const ring = reinterpret_cast<char*>(vectors);
  if (thread < kBulkStages) {
    full[thread].Init(kWarp);
    empty[thread].Init(takers / kWarp);
    FenceMbarrierInit();
  }
  __syncthreads();
  const std::int64_t tiles_across = (plan.inner + plan.results_per_cta - 1) / plan.results_per_cta;
  const std::int64_t shares = plan.tiles * plan.split;
  struct Share {                            // a part of one tile
    std::int64_t first_result, begin, end;  // rows
    int columns, part;
  };
  const auto share_of = [&](std::int64_t i) {
    Share share;
    share.part = static_cast<int>(TakeRemainder(i, plan.split));
    const std::int64_t column = TakeRemainder(i, tiles_across) * plan.results_per_cta;
    share.first_result = i * plan.inner + column;
    share.columns = static_cast<int>(min(plan.results_per_cta, plan.inner - column));
    share.begin = share.part * plan.chunk;
    share.end = min(share.begin + plan.chunk, plan.steps);
    return share;
  };
  int stage = 0;
  std::uint32_t parity = 0;
  const auto to_next_stage = [&] {
    if (++stage == kBulkStages) {
      stage = 0;
      parity ^= 1;
    }
  };
  if (thread >= takers) {
    const int lane = thread - takers;
    const char* x = static_cast<const char*>(task.x);
    // The end of the input, in bytes.
    const std::int64_t x_end =
        (reduce.kept.Offset(reduce.results - 1) + reduce.reduced.Offset(reduce.reduced_count - 1) + 1) *
        task.element_bytes;
    for (std::int64_t i = blockIdx.x; i < shares; i += gridDim.x) {
      const Share share = share_of(i);
      const std::int64_t offset = reduce.kept.Offset(share.first_result);
      for (std::int64_t base = share.begin; base < share.end; base += plan.rows_per_stage, to_next_stage()) {
        empty[stage].Wait(parity ^ 1);
        const std::int64_t row = base + lane;
        if (lane >= plan.rows_per_stage || row >= share.end) {
          full[stage].Arrive();
          continue;
        }
        const std::int64_t begin = (offset + reduce.reduced.Offset(row)) * task.element_bytes;
        const int lead = static_cast<int>(begin % 16), bytes = lead + share.columns * task.element_bytes;
        const std::int64_t from = begin - lead;
        const auto whole = static_cast<int>(min(std::int64_t{(bytes + 15) / 16}, (x_end - from) / 16) * 16);
        const int to = (stage * plan.rows_per_stage + lane) * plan.pitch;
        reinterpret_cast<int*>(starts[stage])[lane] = to + lead;
        // Copies the last bytes of the input, if they are not a multiple of 16.
        if (whole < bytes) {
          for (int b = whole; b < bytes; ++b) ring[to + b] = x[from + b];
          FenceBeforeCopies();
        }
        full[stage].ArriveExpectBytes(static_cast<std::uint32_t>(whole));
        if (whole > 0) CopyBulk(ring + to, x + from, static_cast<std::uint32_t>(whole), full[stage]);
      }
    }
    return;
  }
  VisitElements<Number>(task.dtype, [&]<typename T>(T) {
    constexpr int kPack = 4;
    using V = PackValue<R, T, NumberOf<T>>;
    for (std::int64_t i = blockIdx.x; i < shares; i += gridDim.x) {
      const Share share = share_of(i);
      typename R::Acc acc[kColumns];
      int places[kColumns];  // offsets in a row, in bytes
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        // A thread without a column here uses the last column, but does not store it.
        const int column = min(thread + c * takers, share.columns - 1);
        places[c] = column * static_cast<int>(sizeof(T));
        acc[c] = R::Identity();
        if constexpr (kHasShift<R>) {
          acc[c] = StartOf<R>(static_cast<const T*>(task.x)[reduce.kept.Offset(share.first_result) + column]);
        }
      }
      for (std::int64_t base = share.begin; base < share.end; base += plan.rows_per_stage, to_next_stage()) {
        const int rows = static_cast<int>(min(std::int64_t{plan.rows_per_stage}, share.end - base));
        const auto element = [&](int start, int c) {
          return *reinterpret_cast<const T*>(ring + start + places[c]);
        };
        full[stage].Wait(parity);
        int r = 0;
        for (; r + kPack <= rows; r += kPack) {
          const int4 four = starts[stage][r / kPack];
          const int begins[kPack] = {four.x, four.y, four.z, four.w};
          V values[kColumns][kPack];
#pragma unroll
          for (int c = 0; c < kColumns; ++c) {
#pragma unroll
            for (int p = 0; p < kPack; ++p) values[c][p] = Widen<V>(element(begins[p], c));
          }
#pragma unroll
          for (int c = 0; c < kColumns; ++c) PackAdder<R>::Add(acc[c], values[c], base + r, 1);
        }
        for (; r < rows; ++r) {
          const int begin = reinterpret_cast<const int*>(starts[stage])[r];
#pragma unroll
          for (int c = 0; c < kColumns; ++c) {
            R::Add(acc[c], Widen<typename R::Value>(element(begin, c)), base + r);
          }
        }
        __syncwarp();
        if (thread % kWarp == 0) empty[stage].Arrive();
      }
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const int column = thread + c * takers;
        if (column < share.columns) task.Store(share.first_result + column, share.part, acc[c]);
      }
    }
  });
#else
  __trap();  // only launched if the device copies rows (copies_bulk)
#endif
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_VECTOR_BULK_CUH_
