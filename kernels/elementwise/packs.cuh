// Elementwise operations on packs of neighbouring elements: the kernel that cast, scale and add share.
//
// A pack is as many elements as make 16 bytes of the wider of input and result, so that one side is accessed
// in whole vectors, and the other in narrower ones that a warp joins. A thread has four packs in flight.
#ifndef WARPLINE_KERNELS_ELEMENTWISE_PACKS_CUH_
#define WARPLINE_KERNELS_ELEMENTWISE_PACKS_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda_variants.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/walk.h"
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
  kScattered,  // found one by one, in packs of one
};

struct PackOperand {
  const void* data = nullptr;
  PackLayout layout = PackLayout::kDense;
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
  // Then a pack does not reach past the innermost axis.
  if (walk.dims[inner] % pack != 0) return PackLayout::kScattered;
  if (strides[inner] == 0) return PackLayout::kBroadcast;
  return strides[inner] == 1 && is_aligned ? PackLayout::kVector : PackLayout::kScattered;
}

// Elements [index, index + kSize) of the walk, of which `count` are there. `strides` are the operand's.
template <typename T, int kSize>
__device__ Pack<T, kSize> LoadPack(const PackOperand& operand, const ElementwiseWalk& walk,
                                   const std::int64_t* strides, std::int64_t index, std::int64_t count) {
  const T* data = static_cast<const T*>(operand.data);
  Pack<T, kSize> pack = {};
  if (operand.layout == PackLayout::kDense) {
    if (count >= kSize) return *reinterpret_cast<const Pack<T, kSize>*>(data + index);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      if (i < count) SetElement(pack, i, data[index + i]);
    }
    return pack;
  }
  const T* at = data + walk.OffsetIn(strides, index);
  if (operand.layout == PackLayout::kVector) return *reinterpret_cast<const Pack<T, kSize>*>(at);
  const T element = *at;
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
template <typename Operation, typename T, int kOutBytes, int kSize>
__global__ void __launch_bounds__(kElementwiseThreads)
    ComputePacks(PackOperand x, PackOperand y, void* out, DType out_dtype, const StepScalars* scalars,
                 const __grid_constant__ ElementwiseWalk walk, std::int64_t first_block) {
  const std::int64_t first =
      (first_block + blockIdx.x) * (kElementwiseThreads * kPacksPerThread) + threadIdx.x;
  Pack<T, kSize> xs[kPacksPerThread], ys[kPacksPerThread];
#pragma unroll
  for (int i = 0; i < kPacksPerThread; ++i) {
    const std::int64_t index = (first + i * kElementwiseThreads) * kSize;
    if (index >= walk.count) break;
    xs[i] = LoadPack<T, kSize>(x, walk, walk.x, index, walk.count - index);
    if constexpr (Operation::kHasSecond) {
      ys[i] = LoadPack<T, kSize>(y, walk, walk.y, index, walk.count - index);
    }
  }
  const auto compute = [&]<typename Out>(Out) {
#pragma unroll
    for (int i = 0; i < kPacksPerThread; ++i) {
      const std::int64_t index = (first + i * kElementwiseThreads) * kSize;
      if (index >= walk.count) break;
      Pack<Out, kSize> results = {};
#pragma unroll
      for (int e = 0; e < kSize; ++e) {
        SetElement(results, e,
                   Narrow<Out>(Operation::Apply(Element<T>(xs[i], e), Element<T>(ys[i], e), scalars)));
      }
      StorePack<Out, kSize>(static_cast<Out*>(out), index, results, walk.count - index);
    }
  };
  if constexpr (!Operation::kChangesType) return compute(T{});
  VisitRealOfSize<kOutBytes>(out_dtype, compute);
}

template <typename Operation, typename T, int kOutBytes, int kSize>
cudaError_t LaunchPacksOf(const ElementwiseProblem& problem, const ElementwiseWalk& walk, PackLayout x,
                          PackLayout y, const Operands& operands, cudaStream_t stream) {
  const std::int64_t blocks = CeilDiv(CeilDiv(walk.count, kSize), kElementwiseThreads * kPacksPerThread);
  return LaunchGrids(blocks, [&](std::int64_t first, unsigned grid) {
    ComputePacks<Operation, T, kOutBytes, kSize>
        <<<grid, kElementwiseThreads, 0, stream>>>({operands.in[0], x}, {operands.in[1], y}, operands.out,
                                                   problem.out_dtype, operands.scalars, walk, first);
  });
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
  if (x != PackLayout::kScattered && y != PackLayout::kScattered) {
    return LaunchPacksOf<Operation, T, kOutBytes, kSize>(problem, walk, x, y, operands, stream);
  }
  if constexpr (Operation::kHasSecond) {  // of a row that is broadcast, say, of an odd size
    return LaunchPacksOf<Operation, T, kOutBytes, 1>(problem, walk, x, y, operands, stream);
  }
  return cudaErrorNotSupported;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_ELEMENTWISE_PACKS_CUH_
