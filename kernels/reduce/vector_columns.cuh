// Variants `columns`, `shifted_columns` and `flat_columns`: neighbouring results are contiguous in memory.
#ifndef WARPLINE_KERNELS_REDUCE_VECTOR_COLUMNS_CUH_
#define WARPLINE_KERNELS_REDUCE_VECTOR_COLUMNS_CUH_

#include "kernels/reduce/vector_task.cuh"

namespace warpline {

// The columns of a thread, equal to ColumnsOf the class.
template <typename Number>
inline constexpr int kColumnsOf = sizeof(Number) == 8 ? 2 : 4;

// Adds steps begin, begin + stride, ... below `end`, kLoads at a time, all in flight at once, while that many
// are left. Returns the first remaining step. For the other parameters see AddColumns.
template <typename R, typename T, int kLoads, int kColumns, typename Load, typename IndexOf>
__device__ std::int64_t AddSteps(std::int64_t begin, std::int64_t end, std::int64_t stride,
                                 std::int64_t index_step, Load&& load, IndexOf&& index_of,
                                 typename R::Acc (&acc)[kColumns]) {
  using V = PackValue<R, T, NumberOf<T>>;
  std::int64_t step = begin;
  for (; step + (kLoads - 1) * stride < end; step += kLoads * stride) {
    decltype(load(step)) raw[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) raw[i] = load(step + i * stride);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      V values[kLoads];
#pragma unroll
      for (int i = 0; i < kLoads; ++i) values[i] = Widen<V>(Element<T>(raw[i], c));
      PackAdder<R>::Add(acc[c], values, index_of(c, step), index_step);
    }
  }
  return step;
}

// Adds steps begin, begin + stride, ... below `end`. load(step) returns a raw vector with an element of each
// column; index_of(column, step) returns the index of one.
template <typename R, typename T, int kColumns, typename Load, typename IndexOf>
__device__ void AddColumns(std::int64_t begin, std::int64_t end, std::int64_t stride, std::int64_t index_step,
                           Load&& load, IndexOf&& index_of, typename R::Acc (&acc)[kColumns]) {
  constexpr int kBytes = kColumns * sizeof(T);
  constexpr int kInFlight = 64;  // bytes per thread
  // A thread has registers for this many bytes of widened elements.
  constexpr int kWidened = 256 / (kColumns * static_cast<int>(sizeof(PackValue<R, T, NumberOf<T>>)));
  constexpr int kLoaded = kInFlight / kBytes < 16 ? kInFlight / kBytes : 16;
  constexpr int kLoads = kLoaded < kWidened ? kLoaded : kWidened;
  std::int64_t step = AddSteps<R, T, kLoads>(begin, end, stride, index_step, load, index_of, acc);
  // Processes the remaining steps in smaller groups. If a few threads share a hundred steps, processing the
  // rest one by one takes as long as all the others.
  if constexpr (kHasNumber<R> && kLoads >= 8) {
    step = AddSteps<R, T, kLoads / 4>(step, end, stride, index_step, load, index_of, acc);
  }
  // The rest is loaded at once too. One by one, the last three of 31 rows would need three waits, as many as
  // twelve other rows. This is not done if adding takes longer than loading.
  constexpr int kRest = !kHasNumber<R> || kLoads >= 8 ? 1 : kLoads;
  for (; step < end; step += kRest * stride) {
    decltype(load(step)) raw[kRest] = {};
#pragma unroll
    for (int i = 0; i < kRest; ++i) {
      if (step + i * stride < end) raw[i] = load(step + i * stride);
    }
#pragma unroll
    for (int i = 0; i < kRest; ++i) {
      if (step + i * stride >= end) break;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        R::Add(acc[c], Widen<typename R::Value>(Element<T>(raw[i], c)), index_of(c, step + i * stride));
      }
    }
  }
}

// kAligned equals plan.aligned.
template <typename R, typename Number, bool kAligned>
__global__ void __launch_bounds__(kVectorThreads, ColumnCtas(kAligned, kHasNumber<R>))
    ReduceColumns(const __grid_constant__ VectorTask<R> task) {
  constexpr int kColumns = kColumnsOf<Number>;
  const VectorPlan& plan = task.plan;
  const CanonicalReduce& reduce = task.reduce;
  const int part = task.Part(), thread = static_cast<int>(threadIdx.x);
  const int lane = thread % plan.lanes, peer = thread / plan.lanes, peers = kVectorThreads / plan.lanes;
  // Column c of this thread is result first + c * apart.
  const std::int64_t first = task.Tile() * plan.results_per_cta + (kAligned ? lane * kColumns : lane);
  const int apart = kAligned ? 1 : plan.lanes;
  const std::int64_t begin = part * plan.chunk, end = min(begin + plan.chunk, plan.steps);
  typename R::Acc acc[kColumns];
  std::int64_t offsets[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    // Past the last result, the first one is read again.
    const std::int64_t result = first + c * apart;
    offsets[c] = reduce.kept.Offset(result < reduce.results ? result : 0);
  }
  VisitElements<Number>(task.dtype, [&]<typename T>(T) {
    const T* x = static_cast<const T*>(task.x);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      acc[c] = kHasShift<R> && end > begin ? StartOf<R>(x[offsets[c]]) : R::Identity();
    }
    // Processes one run of the innermost reduced axis after another, so that there are only additions between
    // loads.
    const AxisList& reduced = reduce.reduced;
    const std::int64_t run = reduced.dims[reduced.rank - 1], apart_in_run = reduced.strides[reduced.rank - 1];
    for (std::int64_t start = begin; start < end;) {
      std::int64_t outer = start;
      const std::int64_t in_run = reduced.rank > 1 ? TakeRemainder(outer, run) : start;
      const std::int64_t steps = reduced.rank > 1 ? min(end - start, run - in_run) : end - start;
      const T* from = x + (reduced.rank > 1 ? reduced.OffsetOfRun(outer) : 0) + in_run * apart_in_run;
      const auto load = [&](std::int64_t step) {
        const T* at = from + step * apart_in_run;
        RawVector<kColumns * sizeof(T)> raw = {};
        if constexpr (kAligned) {
          raw = *reinterpret_cast<const RawVector<kColumns * sizeof(T)>*>(at + offsets[0]);
        } else {
#pragma unroll
          for (int c = 0; c < kColumns; ++c) SetElement(raw, c, at[offsets[c]]);
        }
        return raw;
      };
      const auto index_of = [start](int, std::int64_t step) { return start + step; };
      AddColumns<R, T, kColumns>(peer, steps, peers, peers, load, index_of, acc);
      start += steps;
    }
  });
  CombineByTree<R>({first, peer, peers, plan.lanes}, acc);
  if (peer != 0) return;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const std::int64_t result = first + c * apart;
    if (result < reduce.results) task.Store(result, part, acc[c]);
  }
}

// Rows may begin at any element. A thread takes rows that all begin at the same position within a vector, and
// loads whole vectors. Example: rows of 129 elements, vectors of 4, and 8 threads per result. Thread 0 takes
// columns 0 to 3 of rows 0, 8, 16, and so on. The first of the threads for rows 1, 9, 17, ... takes columns
// -1 to 2, of which the first is not in the tile. The columns are combined in shared memory.
template <typename R, typename Number>
__global__ void __launch_bounds__(kVectorThreads, ColumnCtas(/*whole_loads=*/true, kHasNumber<R>))
    ReduceShiftedColumns(const __grid_constant__ VectorTask<R> task) {
  constexpr int kColumns = kColumnsOf<Number>;
  const VectorPlan& plan = task.plan;
  const CanonicalReduce& reduce = task.reduce;
  const int part = task.Part(), thread = static_cast<int>(threadIdx.x);
  const int lane = thread % plan.lanes, peer = thread / plan.lanes, peers = kVectorThreads / plan.lanes;
  // The tile: columns [0, columns) from `column` on, of one row of results.
  std::int64_t outer = task.Tile();
  const std::int64_t column =
      TakeRemainder(outer, (plan.inner + plan.results_per_cta - 1) / plan.results_per_cta) *
      plan.results_per_cta;
  const std::int64_t first = outer * plan.inner + column, offset = reduce.kept.Offset(first);
  const int columns = static_cast<int>(min(plan.results_per_cta, plan.inner - column));
  // This thread has rows row, row + peers, ... of the part. `lead` elements of the first vector lie before
  // the tile.
  const std::int64_t row = part * plan.chunk + peer, end = min(part * plan.chunk + plan.chunk, plan.steps);
  const std::int64_t apart = peers * reduce.reduced.strides[0];
  const std::int64_t of_row = offset + row * reduce.reduced.strides[0];
  const int lead = static_cast<int>(of_row % kColumns), place = lane * kColumns - lead;
  const std::int64_t rows = row < end && place < columns ? (end - row + peers - 1) / peers : 0;
  // In the last row, vectors may extend beyond the input. This can happen in the last tile, and in the one
  // before if the last has less than a vector. They are then loaded element by element.
  const bool is_last =
      rows > 0 && first + place + kColumns > reduce.results && row + (rows - 1) * peers == plan.steps - 1;
  const std::int64_t whole = is_last ? rows - 1 : rows;
  __shared__ typename R::Acc shared[kVectorThreads * kColumns];  // [peer][column]
  VisitElements<Number>(task.dtype, [&]<typename T>(T) {
    const T* x = static_cast<const T*>(task.x);
    typename R::Acc acc[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      acc[c] = R::Identity();
      if constexpr (kHasShift<R>) {
        if (rows > 0) acc[c] = StartOf<R>(x[offset + min(max(place + c, 0), columns - 1)]);
      }
    }
    const T* from = x + of_row + place;
    const auto load = [&](std::int64_t step) {
      return *reinterpret_cast<const RawVector<kColumns * sizeof(T)>*>(from + step * apart);
    };
    const auto index_of = [&](int, std::int64_t step) { return row + step * peers; };
    AddColumns<R, T, kColumns>(0, whole, 1, peers, load, index_of, acc);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      if (place + c < 0 || place + c >= columns) continue;
      if (is_last) R::Add(acc[c], Widen<typename R::Value>(from[whole * apart + c]), plan.steps - 1);
      shared[peer * plan.lanes * kColumns + place + c] = acc[c];
    }
  });
  __syncthreads();
  for (int c = thread; c < columns; c += kVectorThreads) {
    typename R::Acc total = shared[c];
    for (int p = 1; p < peers; ++p) total = R::Combine(total, shared[p * plan.lanes * kColumns + c]);
    task.Store(first + c, part, total);
  }
}

// Blocks may begin at any element. Vectors begin at the first multiple of their size. The elements before
// that are processed one by one.
template <typename R, typename Number>
__global__ void __launch_bounds__(kVectorThreads, ColumnCtas(/*whole_loads=*/true, kHasNumber<R>))
    ReduceFlatColumns(const __grid_constant__ VectorTask<R> task) {
  constexpr int kColumns = kColumnsOf<Number>;
  const VectorPlan& plan = task.plan;
  const CanonicalReduce& reduce = task.reduce;
  const int part = task.Part(), thread = static_cast<int>(threadIdx.x), inner = static_cast<int>(plan.inner);
  const std::int64_t first_result = task.Tile() * plan.inner;
  const std::int64_t offset = reduce.kept.Offset(first_result);
  // The number of elements of the block before its first vector.
  const int misaligned = static_cast<int>(
      (reinterpret_cast<std::uintptr_t>(task.x) / task.element_bytes + static_cast<std::uint64_t>(offset)) %
      kColumns);
  const int lead = misaligned == 0 ? 0 : kColumns - misaligned;
  const std::int64_t block = reduce.reduced_count * plan.inner - lead;
  // A step of all threads covers `stride` elements, which is a multiple of a row. So position p, counted from
  // the first vector, belongs to column (lead + p) mod inner at every step.
  const std::int64_t stride = std::int64_t{plan.lanes} * kColumns;
  const std::int64_t begin = part * plan.chunk, end = min(begin + plan.chunk, plan.steps);
  typename R::Acc acc[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) acc[c] = R::Identity();
  if (thread < plan.lanes) {
    const int place = thread * kColumns;
    const std::int64_t rows_a_step = stride / plan.inner;
    // The number of whole packs of this thread.
    const std::int64_t whole = block < place + kColumns ? 0 : (block - place - kColumns) / stride + 1;
    VisitElements<Number>(task.dtype, [&]<typename T>(T) {
      const T* x = static_cast<const T*>(task.x) + offset;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const int column = (lead + place + c) % inner;
        // The shift is the column's element in the first row, wherever in the block this thread begins.
        if constexpr (kHasShift<R>) acc[c] = StartOf<R>(x[column]);
        // Elements before the first vector are added at the first positions of the same columns.
        if (part != 0 || place + c >= inner) continue;
        for (int i = column; i < lead; i += inner) R::Add(acc[c], Widen<typename R::Value>(x[i]), i / inner);
      }
      x += lead + place;
      const auto index_of = [&](int c, std::int64_t step) {
        return (lead + place + c) / inner + step * rows_a_step;
      };
      const auto load = [&](std::int64_t step) {
        return *reinterpret_cast<const RawVector<kColumns * sizeof(T)>*>(x + step * stride);
      };
      AddColumns<R, T, kColumns>(begin, min(end, whole), 1, rows_a_step, load, index_of, acc);
      // Adds the tail of a block whose size is not a multiple of a pack.
      if (part == plan.split - 1) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          if (whole * stride + place + c < block) {
            R::Add(acc[c], Widen<typename R::Value>(x[whole * stride + c]), index_of(c, whole));
          }
        }
      }
    });
  }
  __shared__ typename R::Acc shared[kVectorThreads * kColumns];  // indexed by position
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    if (thread < plan.lanes) shared[thread * kColumns + c] = acc[c];
  }
  __syncthreads();
  const int places = static_cast<int>(stride);
  const auto first_place = [lead, inner](int column) {
    const int before = lead % inner;
    return column >= before ? column - before : column - before + inner;
  };
  if (inner >= 2 * kWarp) {
    // A thread adds a column: there are many columns, with few positions each.
    for (int column = thread; column < inner; column += plan.threads) {
      int p = first_place(column);
      typename R::Acc total = shared[p];
      for (p += inner; p < places; p += inner) total = R::Combine(total, shared[p]);
      task.Store(first_result + column, part, total);
    }
    return;
  }
  // A warp adds a column; its lanes have different positions.
  for (int column = thread / kWarp; column < inner; column += plan.threads / kWarp) {
    typename R::Acc total = R::Identity();
    for (int p = first_place(column) + thread % kWarp * inner; p < places; p += kWarp * inner) {
      total = R::Combine(total, shared[p]);
    }
    total = ReduceLanes<R>(total, kWarp);
    if (thread % kWarp == 0) task.Store(first_result + column, part, total);
  }
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_VECTOR_COLUMNS_CUH_
