// Elementwise operations on packs of neighbouring elements: the kernel that cast, scale and add share.
//
// A pack is as many elements as make 16 bytes of the wider of input and result, so that one side is accessed
// in whole vectors, and the other in narrower ones that a warp joins. A thread has four packs in flight, but
// where elements are found one by one.
#ifndef WARPLINE_KERNELS_ELEMENTWISE_PACKS_CUH_
#define WARPLINE_KERNELS_ELEMENTWISE_PACKS_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda_variants.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/walk.h"
#include "kernels/fast_divisor.h"
#include "kernels/gpu/raw_vector.cuh"
#include "kernels/gpu/real.cuh"
#include "kernels/launch_grids.h"

namespace warpline {

inline constexpr int kElementwiseThreads = 256;
inline constexpr int kPacksPerThread = 4;

// What two elements are added or multiplied in: f32, f64, or integers modulo 2^32 or 2^64, which agrees with
// any narrower integer type, whatever its sign.
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
  kScattered,  // found one by one
};

struct PackOperand {
  const void* data = nullptr;
  PackLayout layout = PackLayout::kDense;
};

// What there is to be asked of the operands of a launch: nothing if both are kDense; where a pack begins; or
// where each of its elements is.
enum class PackAccess : std::uint8_t { kDense, kWhole, kScattered };

inline PackAccess AccessOf(PackLayout x, PackLayout y) {
  if (x == PackLayout::kScattered || y == PackLayout::kScattered) return PackAccess::kScattered;
  return x == PackLayout::kDense && y == PackLayout::kDense ? PackAccess::kDense : PackAccess::kWhole;
}

// A walk, and how to divide by the size of its innermost axis.
struct PackWalk {
  ElementwiseWalk walk;
  FastDivisor inner;  // of walks of less than FastDivisor::kMax elements
};

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
  // Otherwise a pack does not reach past the innermost axis.
  if (walk.dims[inner] % pack != 0) return PackLayout::kScattered;
  if (strides[inner] == 0) return PackLayout::kBroadcast;
  return strides[inner] == 1 && is_aligned ? PackLayout::kVector : PackLayout::kScattered;
}

// The offset of element `index` in an operand with such strides; `in_row`: its place along the innermost
// axis.
__device__ inline std::int64_t OffsetOf(const PackWalk& packs, const std::int64_t* strides,
                                        std::int64_t index, std::int64_t& in_row) {
  const ElementwiseWalk& walk = packs.walk;
  const int last = walk.rank - 1;
  if (walk.count < FastDivisor::kMax) {
    auto outer = static_cast<std::uint32_t>(index);
    in_row = TakeRemainder(outer, packs.inner);
    index = outer;
  } else {
    in_row = TakeRemainder(index, walk.dims[last]);
  }
  std::int64_t offset = in_row * strides[last];
  for (int axis = last - 1; axis > 0; --axis) offset += TakeRemainder(index, walk.dims[axis]) * strides[axis];
  return last > 0 ? offset + index * strides[0] : offset;
}

// Not inlined, as every element of a pack may be the first of a row.
static __device__ __noinline__ std::int64_t OffsetOfRow(const PackWalk& packs, const std::int64_t* strides,
                                                        std::int64_t index) {
  std::int64_t in_row;
  return OffsetOf(packs, strides, index, in_row);
}

// Elements [index, index + kSize) of the walk, of which `count` are there. `strides` are the operand's.
template <PackAccess kAccess, typename T, int kSize>
__device__ Pack<T, kSize> LoadPack(const PackOperand& operand, const PackWalk& packs,
                                   const std::int64_t* strides, std::int64_t index, std::int64_t count) {
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
  std::int64_t in_row;
  std::int64_t offset = OffsetOf(packs, strides, index, in_row);
  if (operand.layout == PackLayout::kVector) return *reinterpret_cast<const Pack<T, kSize>*>(data + offset);
  if (kAccess == PackAccess::kWhole || operand.layout == PackLayout::kBroadcast) {
    const T element = data[offset];
#pragma unroll
    for (int i = 0; i < kSize; ++i) SetElement(pack, i, element);
    return pack;
  }
  // Along the innermost axis, and from its end to where the next row begins.
  const std::int64_t size = packs.walk.dims[packs.walk.rank - 1], stride = strides[packs.walk.rank - 1];
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    if (i >= count) break;
    if (in_row == size) {
      offset = OffsetOfRow(packs, strides, index + i);
      in_row = 0;
    }
    SetElement(pack, i, data[offset]);
    offset += stride;
    ++in_row;
  }
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
__global__ void __launch_bounds__(kElementwiseThreads, kAccess == PackAccess::kScattered ? 3 : 4)
    ComputePacks(PackOperand x, PackOperand y, void* out, DType out_dtype, const StepScalars* scalars,
                 const __grid_constant__ PackWalk packs, std::int64_t first_block) {
  const ElementwiseWalk& walk = packs.walk;
  const std::int64_t block = (first_block + blockIdx.x) * (kElementwiseThreads * kPacksPerThread);
  const std::int64_t first = block + threadIdx.x;
  const auto compute = [&]<typename Out>(std::type_identity<Out>, const Pack<T, kSize>& a,
                                         const Pack<T, kSize>& b, std::int64_t index) {
    Pack<Out, kSize> results = {};
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
      SetElement(results, e, Narrow<Out>(Operation::Apply(Element<T>(a, e), Element<T>(b, e), scalars)));
    }
    StorePack<Out, kSize>(static_cast<Out*>(out), index, results, walk.count - index);
  };
  const auto with_type = [&](auto f) {
    if constexpr (!Operation::kChangesType) {
      f(std::type_identity<T>());
    } else {
      VisitRealOfSize<kOutBytes>(out_dtype, [&]<typename Out>(Out) { f(std::type_identity<Out>()); });
    }
  };
  const auto load = [&](const PackOperand& operand, const std::int64_t* strides, std::int64_t index) {
    return LoadPack<kAccess, T, kSize>(operand, packs, strides, index, walk.count - index);
  };
  const bool whole = (block + kElementwiseThreads * kPacksPerThread) * kSize <= walk.count;
  if (kAccess != PackAccess::kScattered && whole) {
    // All loads are in flight together; between those of dense operands nothing is asked.
    Pack<T, kSize> xs[kPacksPerThread], ys[kPacksPerThread];
#pragma unroll
    for (int i = 0; i < kPacksPerThread; ++i) {
      const std::int64_t pack = first + i * kElementwiseThreads;
      if constexpr (kAccess == PackAccess::kDense) {
        xs[i] = static_cast<const Pack<T, kSize>*>(x.data)[pack];
        if constexpr (Operation::kHasSecond) ys[i] = static_cast<const Pack<T, kSize>*>(y.data)[pack];
      } else {
        xs[i] = load(x, walk.x, pack * kSize);
        if constexpr (Operation::kHasSecond) ys[i] = load(y, walk.y, pack * kSize);
      }
    }
    with_type([&](auto type) {
#pragma unroll
      for (int i = 0; i < kPacksPerThread; ++i) {
        compute(type, xs[i], ys[i], (first + i * kElementwiseThreads) * kSize);
      }
    });
    return;
  }
#pragma unroll(kAccess == PackAccess::kScattered ? 2 : 1)
  for (int i = 0; i < kPacksPerThread; ++i) {
    const std::int64_t index = (first + i * kElementwiseThreads) * kSize;
    if (index >= walk.count) break;
    Pack<T, kSize> b = {};
    const Pack<T, kSize> a = load(x, walk.x, index);
    if constexpr (Operation::kHasSecond) b = load(y, walk.y, index);
    with_type([&](auto type) { compute(type, a, b, index); });
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
  const std::int64_t blocks = CeilDiv(CeilDiv(walk.count, kSize), kElementwiseThreads * kPacksPerThread);
  PackWalk packs{.walk = walk, .inner = {}};
  if (walk.count > 0 && walk.rank > 0 && walk.count < FastDivisor::kMax)
    packs.inner = FastDivisor(walk.dims[walk.rank - 1]);
  const auto launch = [&](auto* kernel) {
    return LaunchGrids(blocks, [&](std::int64_t first, unsigned grid) {
      kernel<<<grid, kElementwiseThreads, 0, stream>>>({operands.in[0], x}, {operands.in[1], y}, operands.out,
                                                       problem.out_dtype, operands.scalars, packs, first);
    });
  };
  switch (AccessOf(x, y)) {
    case PackAccess::kDense:
      return launch(&ComputePacks<Operation, T, kOutBytes, kSize, PackAccess::kDense>);
    case PackAccess::kWhole:
      return launch(&ComputePacks<Operation, T, kOutBytes, kSize, PackAccess::kWhole>);
    case PackAccess::kScattered:  // a row that is broadcast, say, of an odd size
      if constexpr (Operation::kHasSecond) {
        return launch(&ComputePacks<Operation, T, kOutBytes, kSize, PackAccess::kScattered>);
      }
      break;
  }
  return cudaErrorNotSupported;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_ELEMENTWISE_PACKS_CUH_
