// The kernel of the rungs that access global memory in 16-byte vectors, and shared memory in single elements
// on at least one side. They differ in the Layout, which defines the positions of elements in the tile, and
// how a vector is stored there.
#ifndef WARPLINE_KERNELS_TRANSPOSE_VECTOR_TILE_CUH_
#define WARPLINE_KERNELS_TRANSPOSE_VECTOR_TILE_CUH_

#include <cstring>

#include "kernels/gpu/vector16.h"
#include "kernels/transpose/kernels.h"
#include "kernels/transpose/launch_tiles.cuh"
#include "kernels/transpose/swizzle.h"

namespace warpline {

// Eight lanes move 128 bytes of a row, so that a warp has 4 rows of the tile. Rows of 8-byte elements are
// twice as long: the warp moves the left half first.
inline constexpr int kVectorLanes = 8;
inline constexpr int kVectorThreads = kTileSide * kVectorLanes;

// Layout: kElements of shared memory; Index(y, x) is the position of element x of row y of the tile;
// Store(tile, y, x, vector) stores a vector at elements x, x + 1, ... of row y. In, out and strides must be
// aligned to vectors, and sizes must be multiples of them: a vector is either completely inside or completely
// outside.
template <typename T, typename Layout>
__global__ void __launch_bounds__(kVectorThreads)
    TransposeVectors(const T* __restrict__ in, T* __restrict__ out, const __grid_constant__ TileWalk walk,
                     std::int64_t first_tile) {
  constexpr int kVector = Vector16<T>::kSize;
  constexpr int kPasses = kTileSide / (kVectorLanes * kVector);
  __shared__ alignas(kChunkBytes) T tile[Layout::kElements];
  const TileOrigin origin = LocateTile(walk, first_tile + blockIdx.x, kTileSide, kTileSide);
  const int row = threadIdx.x / kVectorLanes;
  const int column = threadIdx.x % kVectorLanes * kVector;  // in the first pass
  {
    const std::int64_t y = origin.y + row;
    const T* from = in + origin.in + y * walk.in_stride_y + origin.x;
    Vector16<T> vectors[kPasses] = {};
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int x = column + pass * kVectorLanes * kVector;
      if (origin.x + x < walk.nx && y < walk.ny) {
        vectors[pass] = *reinterpret_cast<const Vector16<T>*>(from + x);
      }
    }
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      Layout::Store(tile, row, column + pass * kVectorLanes * kVector, vectors[pass]);
    }
  }
  __syncthreads();

  const std::int64_t x = origin.x + row;
  T* to = out + origin.out + x * walk.out_stride_x + origin.y;
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const int y = column + pass * kVectorLanes * kVector;
    T elements[kVector];
#pragma unroll
    for (int i = 0; i < kVector; ++i) elements[i] = tile[Layout::Index(y + i, row)];
    uint4 vector;
    memcpy(&vector, elements, sizeof(vector));
    if (x < walk.nx && origin.y + y < walk.ny) {
      __stwb(reinterpret_cast<uint4*>(to + y), vector);  // an assignment would be split into words again
    }
  }
}

// `Layout` is a template of the element type. For problems whose walk satisfies TakesVectors.
template <template <typename> typename Layout>
cudaError_t LaunchVectors(const TransposeProblem& problem, const Operands& operands, cudaStream_t stream) {
  const auto bases =
      reinterpret_cast<std::uintptr_t>(operands.in[0]) | reinterpret_cast<std::uintptr_t>(operands.out);
  if (bases % kChunkBytes != 0) return cudaErrorNotSupported;
  return WithWord(problem.dtype, [&](auto word) {
    using T = decltype(word);
    return LaunchTiles<T>(&TransposeVectors<T, Layout<T>>, kVectorThreads, kTileSide, kTileSide,
                          MakeTileWalk(Canonicalize(problem)), operands, stream);
  });
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_VECTOR_TILE_CUH_
