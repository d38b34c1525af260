// Maps of one operation on packs of neighbouring elements (plan.h): the kernel that cast, scale and add
// share.
//
// A thread has one pack. So the device works along the operands, as CTAs do. Four packs per thread took 5 %
// longer for operands that do not fit into the L2 (docs/benchmarks/history.md#2026-11-25-drawn-problems).
#ifndef WARPLINE_KERNELS_MAP_PACKS_PACKS_CUH_
#define WARPLINE_KERNELS_MAP_PACKS_PACKS_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda_variants.h"
#include "kernels/gpu/raw_vector.cuh"
#include "kernels/gpu/real.cuh"
#include "kernels/gpu/run_walk.cuh"
#include "kernels/launch_grids.h"
#include "kernels/map/packs/arithmetic.h"
#include "kernels/map/packs/plan.h"

namespace warpline {

inline constexpr int kPackThreads = 256;

// The type in which two elements are added or multiplied: f32, f64, or integers modulo 2^32 or 2^64. The
// latter are also correct for any narrower integer type, signed or unsigned.
template <typename T>
using PackArithmetic =
    typename std::conditional_t<std::is_integral_v<NumberOf<T>>, std::make_unsigned<NumberOf<T>>,
                                std::type_identity<NumberOf<T>>>::type;

template <typename T, int kSize>
using Pack = RawVector<kSize* static_cast<int>(sizeof(T))>;

struct PackOperand {
  const void* data = nullptr;
  PackLayout layout = PackLayout::kDense;
};

// Loads elements [index, index + kSize) of the walk one by one; `count` of them exist. It goes along the
// innermost axis, and at its end continues with the next row.
template <typename T, int kSize>
__device__ Pack<T, kSize> LoadScattered(const T* data, const PairWalk& walk, bool is_x, std::int64_t index,
                                        std::int64_t count) {
  const int inner = walk.rank - 1;
  const std::int64_t stride = is_x ? walk.x[inner] : walk.y[inner];
  std::int64_t left = 0, offset = 0;
  Pack<T, kSize> pack = {};
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    if (i >= count) break;
    if (left == 0) {
      const PairSource source = walk.At(index + i);
      offset = is_x ? source.x : source.y;
      left = walk.dims[inner] - (index + i) % walk.dims[inner];
    }
    SetElement(pack, i, data[offset]);
    offset += stride;
    --left;
  }
  return pack;
}

// Same as LoadScattered, for any layout. `is_x`: true for the first operand.
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
    const PairSource source = packs.walk.At(index);
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

// Operation: has kHasSecond, and Apply(x, y, scalars), which computes a number from two elements of type T.
// kOutBytes: size of a result element, whose type is one of this size.
template <typename Operation, typename T, int kOutBytes, int kSize, PackAccess kAccess>
__global__ void __launch_bounds__(kPackThreads)
    ComputePacks(PackOperand x, PackOperand y, void* out, DType out_dtype, const StepScalars* scalars,
                 const __grid_constant__ PackWalk packs, std::int64_t first_block) {
  const std::int64_t index =
      ((first_block + blockIdx.x) * kPackThreads + static_cast<std::int64_t>(threadIdx.x)) * kSize;
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
cudaError_t LaunchPacks(const PackPlan& plan, const Operands& operands, cudaStream_t stream) {
  constexpr int kSize = 16 / (sizeof(T) > kOutBytes ? sizeof(T) : kOutBytes);
  const std::int64_t blocks = CeilDiv(plan.packs.walk.count, kPackThreads * kSize);
  const auto launch = [&](auto* kernel) {
    return LaunchGrids(blocks, [&](std::int64_t first, unsigned grid) {
      kernel<<<grid, kPackThreads, 0, stream>>>({operands.in[0], plan.x}, {operands.in[1], plan.y},
                                                operands.out, plan.map.out_dtype, operands.scalars,
                                                plan.packs, first);
    });
  };
  switch (plan.access) {
    case PackAccess::kDense:
      return launch(&ComputePacks<Operation, T, kOutBytes, kSize, PackAccess::kDense>);
    case PackAccess::kWhole:
      return launch(&ComputePacks<Operation, T, kOutBytes, kSize, PackAccess::kWhole>);
    case PackAccess::kFar:
      return launch(&ComputePacks<Operation, T, kOutBytes, kSize, PackAccess::kFar>);
    case PackAccess::kRuns:  // for example a broadcast row of an odd size
      if constexpr (Operation::kHasSecond) {
        return launch(&ComputePacks<Operation, T, kOutBytes, kSize, PackAccess::kRuns>);
      }
      break;
    case PackAccess::kScattered:  // rows with fewer elements than a pack, or odd rows with large offsets
      if constexpr (Operation::kHasSecond) {
        return launch(&ComputePacks<Operation, T, kOutBytes, kSize, PackAccess::kScattered>);
      }
      break;
  }
  return cudaErrorNotSupported;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_MAP_PACKS_PACKS_CUH_
