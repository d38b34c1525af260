// Variant `swizzled_vectorized`: as `vectorized`, with chunks of 16 bytes swizzled in the tile. Chunks stay
// whole and aligned, so that the tile is filled by 16-byte stores; the gathers take single elements.
//
// Limit: the gathers, a load of shared memory for each element.
// Next, `shuffle`: no shared memory at all. `tiles`, the step after it, keeps the tile, but changes
// elements' places in registers before they are stored, so that whole chunks are read.
#include "kernels/transpose/vector_tile.cuh"

namespace warpline {
namespace {

template <typename T>
struct SwizzledVectorTile {
  static constexpr int kVector = Vector16<T>::kSize;
  static constexpr int kElements = kTileSide * kTileSide;
  // A gathering lane takes one element of each of kVector rows, and its neighbour those of the next kVector
  // rows: with y / kVector, neighbours meet in 8 different chunks, 4 banks (or 2 pairs) of each.
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
