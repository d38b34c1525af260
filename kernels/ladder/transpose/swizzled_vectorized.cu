// Variant `swizzled_vectorized`: same as `vectorized`, with 16-byte chunks swizzled in the tile. Chunks stay
// whole and aligned, so that 16-byte stores fill the tile. The gathers read single elements.
//
// Limit: the gathers: a load of shared memory for each element.
// Next, `shuffle`: no shared memory at all. The step after that, `tiles`, keeps the tile, but transposes
// elements in registers before they are stored, so that whole chunks are read.
#include "kernels/ladder/transpose/kernels.h"
#include "kernels/transpose/vector_tile.cuh"

namespace warpline {
namespace {

template <typename T>
struct SwizzledVectorTile {
  static constexpr int kVector = Vector16<T>::kSize;
  static constexpr int kElements = kTileSide * kTileSide;
  // A gathering lane reads one element of each of kVector rows, and its neighbour reads the next kVector
  // rows. With y / kVector, neighbours access 8 different chunks, and 4 banks (or 2 pairs) of each.
  __device__ static constexpr int Index(int y, int x) {
    return y * kTileSide +
           Swizzle<sizeof(T), kChunkBytes, kTileSide>::Chunk(y / kVector, x / kVector) * kVector +
           x % kVector;
  }
  __device__ static void Store(T* tile, int y, int x, const Vector16<T>& vector) {
    *reinterpret_cast<Vector16<T>*>(tile + Index(y, x)) = vector;
  }
};

}  // namespace

cudaError_t LaunchTransposeSwizzledVectorized(const TransposeProblem& problem, const Operands& operands,
                                              const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchVectors<SwizzledVectorTile>(problem, operands, stream);
}

}  // namespace warpline
