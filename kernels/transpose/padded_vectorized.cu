// Variant `padded_vectorized`: same as `vectorized`, in a tile of 33 columns. Lanes that are 4 (or 2)
// elements apart along one axis and 1 apart along the other use 32 different banks (16 pairs for half a
// warp). So neither side has conflicts. But rows no longer begin at multiples of 16 bytes, so both sides
// access single elements.
//
// Limit: the instructions on shared memory: a store and a load for each element.
// Next, `shifted`: no conflicts without padding. That leads to `swizzled_vectorized`, which stores chunks.
#include "kernels/transpose/padded_tile.cuh"
#include "kernels/transpose/vector_tile.cuh"

namespace warpline {
namespace {

template <typename T>
struct PaddedVectorTile : PaddedTile {
  __device__ static void Store(T* tile, int y, int x, const Vector16<T>& vector) {
#pragma unroll
    for (int i = 0; i < Vector16<T>::kSize; ++i) tile[Index(y, x + i)] = vector.elements[i];
  }
};

}  // namespace

cudaError_t LaunchTransposePaddedVectorized(const TransposeProblem& problem, const Operands& operands,
                                            const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchVectors<PaddedVectorTile>(problem, operands, stream);
}

}  // namespace warpline
