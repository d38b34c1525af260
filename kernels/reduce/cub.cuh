// Variant `cub`: the reductions of CUB (CCCL), which ships with the CUDA toolkit. The earlier rungs are
// compared with it. (It uses our operators and 64-bit counts, for which CUB has no tunings.) One result uses
// DeviceReduce (two kernels), several use DeviceSegmentedReduce (one CTA each).
//
// What limits it: the library supports pointers and iterators, not axes. Contiguous elements are read through
// a pointer, in vectors if they are plain. Others are read through an iterator that divides for every
// element. One CTA per result is too much for a few elements and too little for millions.
// This is the last rung, and the server's choice for sums of all elements. For other problems PlanReduce
// plans by the shape instead.
#ifndef WARPLINE_KERNELS_REDUCE_CUB_CUH_
#define WARPLINE_KERNELS_REDUCE_CUB_CUH_

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>

#include "kernels/cuda_variants.h"
#include "kernels/gpu/real.cuh"
#include "kernels/reduce/canonical.h"
#include "kernels/reduce/monoids.h"

namespace warpline {

template <typename R>
struct CubCombine {
  WARPLINE_HOST_DEVICE typename R::Acc operator()(const typename R::Acc& a, const typename R::Acc& b) const {
    return R::Combine(a, b);
  }
};

// Converts element numbers to elements, as accumulators.
template <typename R, typename T>
struct CubElement {
  const T* x;
  CanonicalReduce reduce;
  bool neighbours;  // true: numbers are offsets; false: they count through one result after another

  WARPLINE_HOST_DEVICE typename R::Acc operator()(std::int64_t i) const {
    const Place place = neighbours ? Place{i, i} : Find(i);
    typename R::Acc acc = R::Identity();
    R::Add(acc, static_cast<typename R::Value>(x[place.offset]), place.index);
    return acc;
  }

 private:
  struct Place {
    std::int64_t offset, index;
  };
  // Not inlined: CUB unrolls its loops, and then compiling these divisions takes minutes.
  WARPLINE_HOST_DEVICE __noinline__ Place Find(std::int64_t i) const {
    const std::int64_t result = i / reduce.reduced_count, index = i - result * reduce.reduced_count;
    return {reduce.kept.Offset(result) + reduce.reduced.Offset(index), index};
  }
};

// Returns the number of a result's first element, or of the one after its last.
struct CubSegment {
  AxisList kept;
  std::int64_t reduced_count;
  bool neighbours, end;

  WARPLINE_HOST_DEVICE std::int64_t operator()(std::int64_t result) const {
    return (neighbours ? kept.Offset(result) : result * reduced_count) + (end ? reduced_count : 0);
  }
};

template <typename R>
struct CubStore {
  ReduceFinish finish;
  void* y;

  __device__ void operator()(std::int64_t result, const typename R::Acc& acc) const {
    R::Finish(acc, finish, [&](auto value) { StoreReal(finish.out_dtype, y, result, value); });
  }
};

// True if elements can be used as accumulators except for their type. CUB reads such elements in vectors.
template <typename R>
inline constexpr bool kIsPlain = false;
template <typename V>
inline constexpr bool kIsPlain<SumMonoid<V, Lift::kIdentity>> = true;
template <typename V, bool kGreatest>
inline constexpr bool kIsPlain<ExtremeMonoid<V, kGreatest>> = true;
// True if the monoid needs each element's index within its result: for argmin and argmax.
template <typename R>
inline constexpr bool kNeedsIndex = false;
template <typename V, bool kGreatest>
inline constexpr bool kNeedsIndex<ArgMonoid<V, kGreatest>> = true;

// Asks CUB for the size of its storage, then runs it. `call` has the parameters of CUB's functions.
template <typename F>
cudaError_t RunCub(const Operands& operands, F&& call) {
  std::size_t bytes = 0;
  if (cudaError_t error = call(nullptr, bytes); error != cudaSuccess) return error;
  if (bytes > operands.workspace_bytes) return cudaErrorNotSupported;
  return call(operands.workspace, bytes);
}

template <typename R, typename T>
cudaError_t LaunchCub(const ReduceProblem& problem, const Operands& operands, cudaStream_t stream) {
  const CanonicalReduce reduce = Canonicalize(problem);
  if (reduce.results == 0) return cudaSuccess;
  const auto* x = static_cast<const T*>(operands.in[0]);
  const auto y = thrust::make_tabulate_output_iterator(CubStore<R>{FinishOf(problem), operands.out});
  const thrust::counting_iterator<std::int64_t> numbers(0);
  const bool in_rows = reduce.reduced.rank == 0 || (reduce.reduced.rank == 1 && reduce.InnermostReduced());
  const bool neighbours = in_rows && (reduce.results == 1 || !kNeedsIndex<R>);
  const auto run = [&](auto from) {
    return RunCub(operands, [&](void* storage, std::size_t& bytes) {
      if (reduce.results == 1) {
        return cub::DeviceReduce::Reduce(storage, bytes, from, y, reduce.reduced_count, CubCombine<R>(),
                                         R::Identity(), stream);
      }
      const auto border = [&](bool end) {
        return thrust::make_transform_iterator(
            numbers, CubSegment{reduce.kept, reduce.reduced_count, neighbours, end});
      };
      return cub::DeviceSegmentedReduce::Reduce(storage, bytes, from, y, reduce.results, border(false),
                                                border(true), CubCombine<R>(), R::Identity(), stream);
    });
  };
  if constexpr (kIsPlain<R>) {
    if (neighbours) return run(x);
  }
  return run(thrust::make_transform_iterator(numbers, CubElement<R, T>{x, reduce, neighbours}));
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_CUB_CUH_
