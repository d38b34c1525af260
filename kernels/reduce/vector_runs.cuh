// Variant `runs`: the elements of a result lie in several runs. Each run is contiguous, but may begin and end
// within a 16-byte vector.
#ifndef WARPLINE_KERNELS_REDUCE_VECTOR_RUNS_CUH_
#define WARPLINE_KERNELS_REDUCE_VECTOR_RUNS_CUH_

#include "kernels/reduce/vector_task.cuh"

namespace warpline {

// A neutral element, which does not change the accumulator, if there is one.
template <typename R, typename T>
inline constexpr bool kHasNeutral = false;
template <typename R, typename T>
struct Neutral;
template <typename V, Lift kLift, typename T>
inline constexpr bool kHasNeutral<SumMonoid<V, kLift>, T> = true;
template <typename V, Lift kLift, typename T>
struct Neutral<SumMonoid<V, kLift>, T> {
  __device__ static T Value() { return Narrow<T>(0); }
};
template <typename V, typename T>
inline constexpr bool kHasNeutral<ProdMonoid<V>, T> = true;
template <typename V, typename T>
struct Neutral<ProdMonoid<V>, T> {
  __device__ static T Value() { return Narrow<T>(1); }
};
template <typename V, bool kGreatest, bool kAbs, typename T>
inline constexpr bool kHasNeutral<ExtremeMonoid<V, kGreatest, kAbs>, T> = true;
template <typename V, bool kGreatest, bool kAbs, typename T>
struct Neutral<ExtremeMonoid<V, kGreatest, kAbs>, T> {
  __device__ static T Value() {
    if constexpr (kAbs) return Narrow<T>(0);
    if constexpr (std::is_same_v<T, DeviceBool>) return Narrow<T>(kGreatest ? 0 : 1);
    if constexpr (std::is_integral_v<T>) {
      return kWorst<T, kGreatest>;
    } else {
      return Narrow<T>(kWorst<NumberOf<T>, kGreatest>);
    }
  }
};

// Returns a word with all bits set in bytes [0, count), for any count.
__device__ inline std::uint32_t FirstBytes(int count) {
  return count >= 4 ? ~0u : count <= 0 ? 0u : (1u << 8 * count) - 1;
}

// Replaces the elements outside of [low, high) by `element`.
template <typename T>
__device__ void KeepOnly(int low, int high, T element, RawVector<16>& raw) {
  RawVector<16> others = {};
#pragma unroll
  for (int e = 0; e < 16 / static_cast<int>(sizeof(T)); ++e) SetElement(others, e, element);
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    constexpr int kBytes = sizeof(T);
    const std::uint32_t kept = FirstBytes(high * kBytes - 4 * w) & ~FirstBytes(low * kBytes - 4 * w);
    raw.words[w] = (raw.words[w] & kept) | (others.words[w] & ~kept);
  }
}

// Returns element i of a vector in registers. Registers cannot be indexed by a variable.
template <typename T>
__device__ T ElementAt(const RawVector<16>& raw, int i) {
  constexpr int kPer = sizeof(T) == 8 ? 1 : 4 / sizeof(T);  // elements per word, or per two words
  const int place = i / kPer;
  RawVector<8> word = {};
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if constexpr (sizeof(T) == 8) {
      if (w / 2 == place) word.words[w % 2] = raw.words[w];
    } else {
      if (w == place) word.words[0] = raw.words[w] >> (i % kPer * 8 * static_cast<int>(sizeof(T)));
    }
  }
  return Element<T>(word, 0);
}

// Loads elements [low, high) of a vector that is not completely in memory, one by one.
template <typename T>
__device__ RawVector<16> LoadPartly(const T* at, int low, int high) {
  RawVector<16> raw = {};
#pragma unroll 1
  for (int e = low; e < high; ++e) {
    RawVector<8> element = {};
    SetElement(element, 0, at[e]);
    constexpr int kBytes = sizeof(T);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      if (w == e * kBytes / 4) raw.words[w] |= element.words[0] << (e * kBytes % 4 * 8);
      if (kBytes == 8 && w == 2 * e + 1) raw.words[w] = element.words[1];
    }
  }
  return raw;
}

// Runs are processed by the vectors that they touch, in pieces of kRowLoads vectors for each thread of a
// group. The `lanes` threads that share a result form several groups. At both ends of a run, a vector also
// contains other elements. These are replaced by neutral elements. If there is no neutral element, the run's
// elements are added one by one.
template <typename R, typename Number>
__global__ void __launch_bounds__(kVectorThreads, kHasNumber<R> ? kRowCtas : kRowCtas - 1)
    ReduceRuns(const __grid_constant__ VectorTask<R> task) {
  const VectorPlan& plan = task.plan;
  const AxisList& reduced = task.reduce.reduced;
  const int part = task.Part(), thread = static_cast<int>(threadIdx.x);
  const int lane = thread % plan.lanes, in_group = lane % plan.group, groups = plan.lanes / plan.group;
  const std::int64_t result = task.Tile() * plan.results_per_cta + thread / plan.lanes;
  typename R::Acc acc = R::Identity();
  if (result < task.reduce.results) {
    const std::int64_t base = task.reduce.kept.Offset(result), run = reduced.dims[reduced.rank - 1];
    const std::int64_t begin = part * plan.chunk, end = min(begin + plan.chunk, plan.steps);
    VisitElements<Number>(task.dtype, [&]<typename T>(T) {
      constexpr int kElements = 16 / sizeof(T);
      using V = PackValue<R, T, NumberOf<T>>;
      const T* const x = static_cast<const T*>(task.x);
      if constexpr (kHasShift<R>) {
        if (plan.steps > 0) acc = StartOf<R>(x[base]);
      }
      // Steps from piece to piece without a division: the next piece is a fixed number of runs and pieces
      // further.
      std::int64_t number = begin + lane / plan.group;
      std::int64_t piece = TakeRemainder(number, plan.pieces);
      std::int64_t runs_further = groups;
      const std::int64_t pieces_further = TakeRemainder(runs_further, plan.pieces);
      for (std::int64_t step = begin + lane / plan.group; step < end; step += groups) {
        const T* const first = x + base + reduced.OffsetOfRun(number);
        const int before = static_cast<int>(reinterpret_cast<std::uintptr_t>(first) / sizeof(T) % kElements);
        // The position of element 0 of this thread's vector i, counted from the beginning of the run.
        const auto place_of = [&](int i) {
          return ((piece * kRowLoads + i) * plan.group + in_group) * kElements - before;
        };
        const auto low_of = [&](int i) { return static_cast<int>(max(std::int64_t{0}, -place_of(i))); };
        const auto high_of = [&](int i) {
          return static_cast<int>(min(std::int64_t{kElements}, run - place_of(i)));
        };
        RawVector<16> raw[kRowLoads] = {};
#pragma unroll
        for (int i = 0; i < kRowLoads; ++i) {
          if (low_of(i) >= high_of(i)) continue;
          const T* const at = first + place_of(i);
          raw[i] = at >= x && at + kElements <= x + plan.extent ? *reinterpret_cast<const RawVector<16>*>(at)
                                                                : LoadPartly(at, low_of(i), high_of(i));
        }
#pragma unroll
        for (int i = 0; i < kRowLoads; ++i) {
          const int low = low_of(i), high = high_of(i);
          if (low >= high) continue;
          const std::int64_t index = number * run + place_of(i);
          if constexpr (kHasNeutral<R, T>) {
            if (high - low < kElements) KeepOnly(low, high, Neutral<R, T>::Value(), raw[i]);
          } else if (high - low < kElements) {
            // A loop, because sixteen inlined additions would make up most of the code for bytes.
#pragma unroll 1
            for (int e = low; e < high; ++e) {
              R::Add(acc, Widen<typename R::Value>(ElementAt<T>(raw[i], e)), index + e);
            }
            continue;
          }
          V values[kElements];
#pragma unroll
          for (int e = 0; e < kElements; ++e) values[e] = Widen<V>(Element<T>(raw[i], e));
          PackAdder<R>::Add(acc, values, index, 1);
        }
        number += runs_further;
        piece += pieces_further;
        if (piece >= plan.pieces) {
          piece -= plan.pieces;
          ++number;
        }
      }
    });
  }
  acc = CombineLanes<R>(acc, plan.lanes);
  if (result < task.reduce.results && lane == 0) task.Store(result, part, acc);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_VECTOR_RUNS_CUH_
