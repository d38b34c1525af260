// Accumulates the elements of results in the threads of a CTA. All rungs of the reduction ladder share this
// part. They differ in how threads and CTAs combine their accumulators: see reduce/combine.cuh.
#ifndef WARPLINE_KERNELS_REDUCE_TILE_CUH_
#define WARPLINE_KERNELS_REDUCE_TILE_CUH_

#include "kernels/gpu/real.cuh"
#include "kernels/gpu/vector16.h"
#include "kernels/reduce/monoids.h"
#include "kernels/reduce/rung_plan.h"

namespace warpline {

inline constexpr int kWarp = 32;
inline constexpr int kChains = 4;  // independent accumulators, and 16-byte loads in flight, per thread

// Elements of a type known to the compiler, which are loaded in vectors.
template <typename T>
struct TypedSource {
  using Element = T;
  static constexpr int kVector = Vector16<T>::kSize;
  const T* data;

  __device__ TypedSource operator+(std::int64_t offset) const { return {data + offset}; }
  template <typename V>
  __device__ V Load(std::int64_t i) const {
    return Widen<V>(data[i]);
  }
};

// Adds the elements of src[0, count), whose indices start at `first`, that belong to `lane` of `lanes`.
template <typename R, typename T>
__device__ void AccumulateRun(const T* src, std::int64_t first, std::int64_t count, int lane, int lanes,
                              typename R::Acc (&acc)[kChains]) {
  using Vector = Vector16<T>;
  constexpr int kVector = Vector::kSize;
  auto add = [&](int chain, T x, std::int64_t i) {
    R::Add(acc[chain], Widen<typename R::Value>(x), first + i);
  };
  // The elements before the first 16-byte boundary.
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

// Adds the elements [begin, end) of the result at `x` that belong to `lane` of `lanes`. The innermost reduced
// axis must have stride 1.
template <typename R, typename Source>
__device__ void AccumulateRow(Source x, const AxisList& reduced, std::int64_t begin, std::int64_t end,
                              int lane, int lanes, typename R::Acc (&acc)[kChains]) {
  const std::int64_t inner = reduced.dims[reduced.rank - 1];
  if (reduced.rank == 1 || inner >= lanes * std::int64_t{Source::kVector}) {
    for (std::int64_t r = begin; r < end;) {
      const std::int64_t count = min(inner - r % inner, end - r);
      AccumulateRun<R>(x.data + reduced.Offset(r), r, count, lane, lanes, acc);
      r += count;
    }
    return;
  }
  // If runs are too short to occupy every lane, each element is located by its index.
  for (std::int64_t r = begin + lane; r < end; r += kChains * lanes) {
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) {
      const std::int64_t i = r + chain * lanes;
      if (i < end) R::Add(acc[chain], x.template Load<typename R::Value>(reduced.Offset(i)), i);
    }
  }
}

// Loads kColumns neighbours. (Every load of a launch has the same alignment as its base: see AreVectors in
// rung_plan.cc.)
template <typename V, typename Source, int kColumns>
__device__ void LoadColumns(Source x, V (&columns)[kColumns]) {
  if constexpr (kColumns > 1) {
    if (reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0) {
      const auto vector = *reinterpret_cast<const Vector16<typename Source::Element>*>(x.data);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) columns[c] = Widen<V>(vector.elements[c]);
      return;
    }
  }
#pragma unroll
  for (int c = 0; c < kColumns; ++c) columns[c] = x.template Load<V>(c);
}

// The position of a thread in its CTA. The `peers` threads of the same results are numbered. Consecutive
// peers are `stride` threads apart.
struct ThreadShare {
  std::int64_t result;  // the thread's first; past the last result in the last tile
  int peer, peers, stride;
};

// For rows: the elements of a result are contiguous, and so are the threads that add them.
struct RowTile {
  static constexpr bool kRows = true;
  static constexpr int kResults = 1;  // per thread

  __device__ static ThreadShare ShareOf(const RungPlan& plan, std::int64_t tile) {
    const int thread = static_cast<int>(threadIdx.x);
    return {tile * plan.results_per_cta + thread / plan.lanes, thread % plan.lanes, plan.lanes, 1};
  }

  // Adds the thread's share of part `part` of its result.
  template <typename R, typename Source>
  __device__ static void Accumulate(Source x, const CanonicalReduce& reduce, const RungPlan& plan,
                                    const ThreadShare& share, int part, typename R::Acc (&acc)[kResults]) {
    typename R::Acc chains[kChains];
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) chains[chain] = R::Identity();
    if (share.result < reduce.results) {
      const std::int64_t begin = part * plan.chunk;
      const std::int64_t end = min(begin + plan.chunk, reduce.reduced_count);
      AccumulateRow<R>(x + reduce.kept.Offset(share.result), reduce.reduced, begin, end, share.peer,
                       share.peers, chains);
    }
    acc[0] = R::Combine(R::Combine(chains[0], chains[1]), R::Combine(chains[2], chains[3]));
  }
};

// For columns: neighbouring results are contiguous in memory. A thread has kColumns of them, the next thread
// the next ones.
template <int kColumns>
struct ColumnTile {
  static constexpr bool kRows = false;
  static constexpr int kResults = kColumns;

  __device__ static ThreadShare ShareOf(const RungPlan& plan, std::int64_t tile) {
    const int thread = static_cast<int>(threadIdx.x);
    const std::int64_t result = tile * plan.results_per_cta + std::int64_t{thread % plan.lanes} * kColumns;
    return {result, thread / plan.lanes, kReduceThreads / plan.lanes, plan.lanes};
  }

  template <typename R, typename Source>
  __device__ static void Accumulate(Source x, const CanonicalReduce& reduce, const RungPlan& plan,
                                    const ThreadShare& share, int part, typename R::Acc (&acc)[kResults]) {
    constexpr int kLoads = 4;  // in flight per thread; also for kColumns == 1, where loads are narrow
#pragma unroll
    for (int c = 0; c < kColumns; ++c) acc[c] = R::Identity();
    if (share.result >= reduce.results) return;
    const Source first = x + reduce.kept.Offset(share.result);
    const std::int64_t begin = part * plan.chunk;
    const std::int64_t end = min(begin + plan.chunk, reduce.reduced_count);
    for (std::int64_t base = begin + share.peer; base < end; base += kLoads * share.peers) {
      typename R::Value loaded[kLoads][kColumns];
#pragma unroll
      for (int load = 0; load < kLoads; ++load) {
        const std::int64_t r = base + load * share.peers;
        if (r < end) LoadColumns(first + reduce.reduced.Offset(r), loaded[load]);
      }
#pragma unroll
      for (int load = 0; load < kLoads; ++load) {
        const std::int64_t r = base + load * share.peers;
        if (r >= end) continue;
#pragma unroll
        for (int c = 0; c < kColumns; ++c) R::Add(acc[c], loaded[load][c], r);
      }
    }
  }
};

// Calls f with std::type_identity of the plan's tile, and returns what it returns.
template <typename Source, typename F>
auto VisitTile(const RungPlan& plan, F&& f) {
  if (plan.rows) return f(std::type_identity<RowTile>());
  if constexpr (Source::kVector > 1) {
    if (plan.columns > 1) return f(std::type_identity<ColumnTile<Source::kVector>>());
  }
  return f(std::type_identity<ColumnTile<1>>());
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_TILE_CUH_
