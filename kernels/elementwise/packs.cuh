// Elementwise operations on packs of neighbouring elements: the kernel that cast, scale and add share.
//
// A pack is as many elements as make 16 bytes of the wider of input and result, so that one side is accessed
// in whole vectors, and the other in narrower ones that a warp joins. A thread has one pack: then the device
// works along the operands, as CTAs do, and with four of a thread it took 5 % longer for what does not fit
// into the L2 (docs/benchmarks/history.md#2026-11-25-drawn-problems).
#ifndef WARPLINE_KERNELS_ELEMENTWISE_PACKS_CUH_
#define WARPLINE_KERNELS_ELEMENTWISE_PACKS_CUH_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda_variants.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/walk.h"
#include "kernels/gpu/raw_vector.cuh"
#include "kernels/gpu/real.cuh"
#include "kernels/gpu/run_walk.cuh"
#include "kernels/launch_grids.h"

namespace warpline {

inline constexpr int kElementwiseThreads = 256;

// The type in which two elements are added or multiplied: f32, f64, or integers modulo 2^32 or 2^64. The
// latter agree with any narrower integer type, signed or unsigned.
template <typename T>
using PackArithmetic =
    typename std::conditional_t<std::is_integral_v<NumberOf<T>>, std::make_unsigned<NumberOf<T>>,
                                std::type_identity<NumberOf<T>>>::type;

template <typename T, int kSize>
using Pack = RawVector<kSize* static_cast<int>(sizeof(T))>;

// How the elements of a pack lie in an operand. Packs begin at multiples of their size in the dense result.
enum class PackLayout : std::uint8_t {
  kDense,      // as in the result
  kVector,     // side by side, aligned as a pack
  kBroadcast,  // one element for all
  kRuns,       // side by side, or one element, up to the end of a row, and so from where the next one begins
  kScattered,  // found one by one
};

struct PackOperand {
  const void* data = nullptr;
  PackLayout layout = PackLayout::kDense;
};

// The lookups that the operands of a launch need. kDense: none, both are kDense. kWhole: where a pack begins.
// kRuns: also where its row ends. kScattered: where each of its elements is. kFar is kWhole with offsets that
// need 64 bits.
enum class PackAccess : std::uint8_t { kDense, kWhole, kFar, kRuns, kScattered };

inline PackAccess AccessOf(PackLayout x, PackLayout y) {
  const auto either = [&](PackLayout layout) { return x == layout || y == layout; };
  if (either(PackLayout::kScattered)) return PackAccess::kScattered;
  if (either(PackLayout::kRuns)) return PackAccess::kRuns;
  return x == PackLayout::kDense && y == PackLayout::kDense ? PackAccess::kDense : PackAccess::kWhole;
}

// A walk as kernels take it: where offsets have 31 bits, that of each operand, too.
struct PackWalk {
  ElementwiseWalk walk;
  AxisWalk x, y;
};

// From the first element of an operand with such strides to behind its last.
inline std::int64_t ExtentOf(const ElementwiseWalk& walk, const std::int64_t* strides) {
  std::int64_t extent = 1;
  for (int axis = 0; axis < walk.rank; ++axis) extent += (walk.dims[axis] - 1) * strides[axis];
  return extent;
}

inline PackWalk MakePackWalk(const ElementwiseWalk& walk) {
  PackWalk packs{.walk = walk, .x = {}, .y = {}};
  for (int axis = walk.rank - 1; axis >= 0; --axis) {
    packs.x.Append(walk.dims[axis], walk.x[axis]);
    packs.y.Append(walk.dims[axis], walk.y[axis]);
  }
  return packs;
}

// The operand's strides are those of its walk: walk.x or walk.y.
inline PackLayout LayoutOf(const ElementwiseWalk& walk, const std::int64_t* strides, std::int64_t pack) {
  const int inner = walk.rank - 1;
  if (walk.rank == 0 || (walk.rank == 1 && strides[0] == 1)) return PackLayout::kDense;
  std::int64_t dense = 1;
  bool is_dense = true, is_aligned = true;
  for (int axis = inner; axis >= 0; --axis) {
    is_dense = is_dense && strides[axis] == dense;
    dense *= walk.dims[axis];
    if (axis != inner) is_aligned = is_aligned && strides[axis] % pack == 0;
  }
  if (is_dense) return PackLayout::kDense;
  if (strides[inner] > 1) return PackLayout::kScattered;
  // In these a pack does not reach past the innermost axis.
  if (walk.dims[inner] % pack == 0) {
    if (strides[inner] == 0) return PackLayout::kBroadcast;
    if (is_aligned) return PackLayout::kVector;
  }
  return walk.dims[inner] >= pack ? PackLayout::kRuns : PackLayout::kScattered;
}

// Elements [index, index + kSize) of the walk, of which `count` are there, one by one: along the innermost
// axis, and from its end to where the next row begins.
template <typename T, int kSize>
__device__ Pack<T, kSize> LoadScattered(const T* data, const ElementwiseWalk& walk, bool is_x,
                                        std::int64_t index, std::int64_t count) {
  const int inner = walk.rank - 1;
  const std::int64_t stride = is_x ? walk.x[inner] : walk.y[inner];
  std::int64_t left = 0, offset = 0;
  Pack<T, kSize> pack = {};
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    if (i >= count) break;
    if (left == 0) {
      const ElementwiseSource source = walk.At(index + i);
      offset = is_x ? source.x : source.y;
      left = walk.dims[inner] - (index + i) % walk.dims[inner];
    }
    SetElement(pack, i, data[offset]);
    offset += stride;
    --left;
  }
  return pack;
}

// Loads like LoadScattered, for any layout. `is_x`: true for the first operand.
template <PackAccess kAccess, typename T, int kSize>
__device__ Pack<T, kSize> LoadPack(const PackOperand& operand, const PackWalk& packs, bool is_x,
                                   std::int64_t index, std::int64_t count) {
  const T* data = static_cast<const T*>(operand.data);
  Pack<T, kSize> pack = {};
  if (kAccess == PackAccess::kDense || operand.layout == PackLayout::kDense) {
    if (count >= kSize) return *reinterpret_cast<const Pack<T, kSize>*>(data + index);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      if (i < count) SetElement(pack, i, data[index + i]);
    }
    return pack;
  }
  if constexpr (kAccess == PackAccess::kScattered) {
    return LoadScattered<T, kSize>(data, packs.walk, is_x, index, count);
  }
  const AxisWalk& walk = is_x ? packs.x : packs.y;
  if (kAccess == PackAccess::kRuns && operand.layout == PackLayout::kRuns) {
    return LoadRuns<T, kSize>(data, walk, static_cast<std::uint32_t>(index),
                              static_cast<std::uint32_t>(min(count, std::int64_t{kSize})));
  }
  if constexpr (kAccess == PackAccess::kFar) {
    const ElementwiseSource source = packs.walk.At(index);
    data += is_x ? source.x : source.y;
  } else {
    data += PlaceOf(walk, static_cast<std::uint32_t>(index)).offset;
  }
  if (operand.layout == PackLayout::kVector) return *reinterpret_cast<const Pack<T, kSize>*>(data);
  const T element = *data;
#pragma unroll
  for (int i = 0; i < kSize; ++i) SetElement(pack, i, element);
  return pack;
}

template <typename T, int kSize>
__device__ void StorePack(T* out, std::int64_t index, const Pack<T, kSize>& pack, std::int64_t count) {
  if (count >= kSize) {
    *reinterpret_cast<Pack<T, kSize>*>(out + index) = pack;
    return;
  }
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    if (i < count) out[index + i] = Element<T>(pack, i);
  }
}

// Operation: kHasSecond, and Apply(x, y, scalars), from two elements of type T to a number.
// kOutBytes: of an element of the result, whose type is one of those that are so large.
template <typename Operation, typename T, int kOutBytes, int kSize, PackAccess kAccess>
__global__ void __launch_bounds__(kElementwiseThreads)
    ComputePacks(PackOperand x, PackOperand y, void* out, DType out_dtype, const StepScalars* scalars,
                 const __grid_constant__ PackWalk packs, std::int64_t first_block) {
  const std::int64_t index =
      ((first_block + blockIdx.x) * kElementwiseThreads + static_cast<std::int64_t>(threadIdx.x)) * kSize;
  const auto compute = [&](std::int64_t count) {
    Pack<T, kSize> b = {};
    const Pack<T, kSize> a = LoadPack<kAccess, T, kSize>(x, packs, true, index, count);
    if constexpr (Operation::kHasSecond) b = LoadPack<kAccess, T, kSize>(y, packs, false, index, count);
    const auto store = [&]<typename Out>(std::type_identity<Out>) {
      Pack<Out, kSize> results = {};
#pragma unroll
      for (int e = 0; e < kSize; ++e) {
        SetElement(results, e, Narrow<Out>(Operation::Apply(Element<T>(a, e), Element<T>(b, e), scalars)));
      }
      StorePack<Out, kSize>(static_cast<Out*>(out), index, results, count);
    };
    if constexpr (!Operation::kChangesType) {
      store(std::type_identity<T>());
    } else {
      VisitRealOfSize<kOutBytes>(out_dtype, [&]<typename Out>(Out) { store(std::type_identity<Out>()); });
    }
  };
  // A whole pack is loaded without checks, so that the loads of both operands and of a factor overlap.
  const std::int64_t count = packs.walk.count - index;
  if (count >= kSize) {
    compute(kSize);
  } else if (count > 0) {
    compute(count);
  }
}

template <typename Operation, typename T, int kOutBytes>
cudaError_t LaunchPacks(const ElementwiseProblem& problem, const Operands& operands, cudaStream_t stream) {
  constexpr int kSize = 16 / (sizeof(T) > kOutBytes ? sizeof(T) : kOutBytes);
  const ElementwiseWalk walk = ElementwiseWalk::Of(problem);
  for (const void* address : {operands.in[0], Operation::kHasSecond ? operands.in[1] : nullptr,
                              static_cast<const void*>(operands.out)}) {
    if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0) return cudaErrorNotSupported;
  }
  const PackLayout x = LayoutOf(walk, walk.x, kSize);
  const PackLayout y = Operation::kHasSecond ? LayoutOf(walk, walk.y, kSize) : PackLayout::kDense;
  PackAccess access = AccessOf(x, y);
  const bool is_small =
      std::max({walk.count, ExtentOf(walk, walk.x), ExtentOf(walk, walk.y)}) < FastDivisor::kMax;
  if (!is_small && access == PackAccess::kWhole) access = PackAccess::kFar;
  if (!is_small && access == PackAccess::kRuns) access = PackAccess::kScattered;
  const PackWalk packs =
      is_small && walk.count > 0 ? MakePackWalk(walk) : PackWalk{.walk = walk, .x = {}, .y = {}};
  const std::int64_t blocks = CeilDiv(walk.count, kElementwiseThreads * kSize);
  const auto launch = [&](auto* kernel) {
    return LaunchGrids(blocks, [&](std::int64_t first, unsigned grid) {
      kernel<<<grid, kElementwiseThreads, 0, stream>>>({operands.in[0], x}, {operands.in[1], y}, operands.out,
                                                       problem.out_dtype, operands.scalars, packs, first);
    });
  };
  switch (access) {
    case PackAccess::kDense:
      return launch(&ComputePacks<Operation, T, kOutBytes, kSize, PackAccess::kDense>);
    case PackAccess::kWhole:
      return launch(&ComputePacks<Operation, T, kOutBytes, kSize, PackAccess::kWhole>);
    case PackAccess::kFar:
      return launch(&ComputePacks<Operation, T, kOutBytes, kSize, PackAccess::kFar>);
    case PackAccess::kRuns:  // a row that is broadcast, say, of an odd size
      if constexpr (Operation::kHasSecond) {
        return launch(&ComputePacks<Operation, T, kOutBytes, kSize, PackAccess::kRuns>);
      }
      break;
    case PackAccess::kScattered:  // rows of fewer elements than a pack has, or odd ones with far offsets
      if constexpr (Operation::kHasSecond) {
        return launch(&ComputePacks<Operation, T, kOutBytes, kSize, PackAccess::kScattered>);
      }
      break;
  }
  return cudaErrorNotSupported;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_ELEMENTWISE_PACKS_CUH_
