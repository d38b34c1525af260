// Variant `vectorized` where neighbouring results are neighbours in memory.
#ifndef WARPLINE_KERNELS_REDUCE_VECTOR_COLUMNS_CUH_
#define WARPLINE_KERNELS_REDUCE_VECTOR_COLUMNS_CUH_

#include "kernels/reduce/vector_task.cuh"

namespace warpline {

template <typename R, bool kAligned>
inline constexpr int kCtasOfColumns =
    kAligned&& std::is_arithmetic_v<typename R::Acc> ? kNumberColumnCtas : kColumnCtas;

// Columns of a thread, as ColumnsOf says of the class.
template <typename Number>
inline constexpr int kColumnsOf = sizeof(Number) == 8 ? 2 : 4;

// Adds steps begin, begin + stride, ... below `end`, kLoads at a time, all in flight at once, as long as
// there are so many; gives the first that is left. The rest as AddColumns.
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

// Steps begin, begin + stride, ... below `end`: load(step) is a raw vector with an element of each column,
// index_of(column, step) the index of one.
template <typename R, typename T, int kColumns, typename Load, typename IndexOf>
__device__ void AddColumns(std::int64_t begin, std::int64_t end, std::int64_t stride, std::int64_t index_step,
                           Load&& load, IndexOf&& index_of, typename R::Acc (&acc)[kColumns]) {
  constexpr int kBytes = kColumns * sizeof(T);
  constexpr bool kIsNumber = std::is_arithmetic_v<typename R::Acc>;
  constexpr int kInFlight = 64;  // bytes of a thread
  constexpr int kLoads = kInFlight / kBytes < 16 ? kInFlight / kBytes : 16;
  std::int64_t step = AddSteps<R, T, kLoads>(begin, end, stride, index_step, load, index_of, acc);
  // Of a hundred steps that a few threads share, what is left over takes as long as the others if it is taken
  // one by one.
  if constexpr (kIsNumber && kLoads >= 8) {
    step = AddSteps<R, T, kLoads / 4>(step, end, stride, index_step, load, index_of, acc);
  }
  for (; step < end; step += stride) {
    const auto raw = load(step);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      R::Add(acc[c], Widen<typename R::Value>(Element<T>(raw, c)), index_of(c, step));
    }
  }
}

// Whether columns that begin anywhere are loaded in words.
template <typename R, typename T>
inline constexpr bool kHasWords = std::is_arithmetic_v<typename R::Acc> && sizeof(T) < 4;

// kBytes of a row, from any byte on, out of the words that they touch.
template <int kBytes>
class ShiftedColumns {
 public:
  // `first` is the byte of the row that the thread begins with, so many bytes from `row`; what it takes later
  // must be multiples of 4 bytes from it.
  __device__ ShiftedColumns(const void* row, std::int64_t first)
      : lead_(static_cast<int>((reinterpret_cast<std::uintptr_t>(row) + static_cast<std::uint64_t>(first)) %
                               4)),
        last_(lead_ == 0 ? kWords - 1 : kWords),
        words_(static_cast<const char*>(row) - lead_) {}

  __device__ RawVector<kBytes> Load(std::int64_t offset) const {
    const auto* at = reinterpret_cast<const std::uint32_t*>(words_ + offset);
    RawVector<kBytes> raw;
    std::uint32_t word = at[0];
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const std::uint32_t next = at[i + 1 < kWords ? i + 1 : last_];
      raw.words[i] = __funnelshift_r(word, next, lead_ * 8);
      word = next;
    }
    return raw;
  }

 private:
  static constexpr int kWords = kBytes < 4 ? 1 : kBytes / 4;
  int lead_;  // bytes of the first word that are before
  int last_;  // the last word that is touched; none behind it is read
  const char* words_;
};

// kAligned is plan.aligned.
template <typename R, typename Number, bool kAligned>
__global__ void __launch_bounds__(kVectorThreads, kCtasOfColumns<R, kAligned>)
    ReduceColumns(const __grid_constant__ VectorTask<R> task) {
  constexpr int kColumns = kColumnsOf<Number>;
  const VectorPlan& plan = task.plan;
  const CanonicalReduce& reduce = task.reduce;
  const int part = task.Part(), thread = static_cast<int>(threadIdx.x);
  const int lane = thread % plan.lanes, peer = thread / plan.lanes, peers = kVectorThreads / plan.lanes;
  // Of column c: first + c * apart.
  const bool neighbours = kAligned || (std::is_arithmetic_v<typename R::Acc> && task.element_bytes < 4);
  const std::int64_t first = task.Tile() * plan.results_per_cta + (neighbours ? lane * kColumns : lane);
  const int apart = neighbours ? 1 : plan.lanes;
  const std::int64_t begin = part * plan.chunk, end = min(begin + plan.chunk, plan.steps);
  typename R::Acc acc[kColumns];
  std::int64_t offsets[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    // Past the last result the first one is read once more.
    const std::int64_t result = first + c * apart;
    offsets[c] = reduce.kept.Offset(result < reduce.results ? result : 0);
  }
  // Whether words may be loaded: not where these columns are of two rows, nor what is beyond the first
  // element of the input and the last.
  const bool words = offsets[kColumns - 1] == offsets[0] + kColumns - 1 && first > 0 &&
                     first + kColumns + 3 <= reduce.results;
  VisitElements<Number>(task.dtype, [&]<typename T>(T) {
    const T* x = static_cast<const T*>(task.x);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      acc[c] = kHasShift<R> && end > begin ? StartOf<R>(x[offsets[c]]) : R::Identity();
    }
    // Run by run of the innermost reduced axis, so that there is nothing between loads but an addition.
    const AxisList& reduced = reduce.reduced;
    const std::int64_t run = reduced.dims[reduced.rank - 1], apart_in_run = reduced.strides[reduced.rank - 1];
    for (std::int64_t start = begin; start < end;) {
      std::int64_t outer = start;
      const std::int64_t in_run = reduced.rank > 1 ? TakeRemainder(outer, run) : start;
      const std::int64_t steps = reduced.rank > 1 ? min(end - start, run - in_run) : end - start;
      const T* from = x + (reduced.rank > 1 ? reduced.OffsetOfRun(outer) : 0) + in_run * apart_in_run;
      const auto index_of = [start](int, std::int64_t step) { return start + step; };
      const auto add = [&](auto load) {
        AddColumns<R, T, kColumns>(peer, steps, peers, peers, load, index_of, acc);
      };
      constexpr int kBytes = kColumns * sizeof(T);
      if constexpr (kAligned) {
        add([&](std::int64_t step) {
          return *reinterpret_cast<const RawVector<kBytes>*>(from + step * apart_in_run + offsets[0]);
        });
      } else {
        // All steps of a thread begin at the same byte of a word.
        const std::int64_t step_bytes = apart_in_run * static_cast<int>(sizeof(T));
        if (kHasWords<R, T> && words && peers * step_bytes % 4 == 0) {
          if constexpr (kHasWords<R, T>) {
            const ShiftedColumns<kBytes> columns(from + offsets[0], peer * step_bytes);
            add([&](std::int64_t step) { return columns.Load(step * step_bytes); });
          }
        } else {
          add([&](std::int64_t step) {
            const T* at = from + step * apart_in_run;
            RawVector<kBytes> raw = {};
#pragma unroll
            for (int c = 0; c < kColumns; ++c) SetElement(raw, c, at[offsets[c]]);
            return raw;
          });
        }
      }
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

// Blocks begin at any element: vectors begin at the first multiple of their size, and what is before it is
// taken element by element.
template <typename R, typename Number>
__global__ void __launch_bounds__(kVectorThreads, kCtasOfColumns<R, true>)
    ReduceFlatColumns(const __grid_constant__ VectorTask<R> task) {
  constexpr int kColumns = kColumnsOf<Number>;
  const VectorPlan& plan = task.plan;
  const CanonicalReduce& reduce = task.reduce;
  const int part = task.Part(), thread = static_cast<int>(threadIdx.x), inner = static_cast<int>(plan.inner);
  const std::int64_t first_result = task.Tile() * plan.inner;
  const std::int64_t offset = reduce.kept.Offset(first_result);
  // Elements of the block before its first vector.
  const int misaligned = static_cast<int>(
      (reinterpret_cast<std::uintptr_t>(task.x) / task.element_bytes + static_cast<std::uint64_t>(offset)) %
      kColumns);
  const int lead = misaligned == 0 ? 0 : kColumns - misaligned;
  const std::int64_t block = reduce.reduced_count * plan.inner - lead;
  // Steps of all threads; a thread's packs are `stride` elements apart, which is a multiple of a row, so that
  // place p, counted from the first vector, is of column (lead + p) mod inner at every step.
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
        // The elements of the first row, wherever in the block this thread begins.
        if constexpr (kHasShift<R>) acc[c] = StartOf<R>(x[column]);
        // What is before the first vector goes to the first places of the same columns.
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
      // What is left of a block that is no multiple of a pack.
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
  __shared__ typename R::Acc shared[kVectorThreads * kColumns];  // [place]
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
    // A thread takes a column: there are many of them, of few places each.
    for (int column = thread; column < inner; column += plan.threads) {
      int p = first_place(column);
      typename R::Acc total = shared[p];
      for (p += inner; p < places; p += inner) total = R::Combine(total, shared[p]);
      task.Store(first_result + column, part, total);
    }
    return;
  }
  // A warp takes a column, its lanes the places of it.
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
