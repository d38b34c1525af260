// Variant `vectorized`: a thread loads 16 bytes of an input row, stores them unchanged in an unpadded tile,
// gathers 16 bytes of a column, and stores these to an output row. This needs a quarter (or half) of the
// instructions on global memory.
//
// Limit: the gathers. At each step 8 lanes access one column of rows whose distance is a multiple of all
// banks: an 8-way conflict (for 8-byte elements, in each half of a warp).
// Next, `padded_vectorized`: a padded tile, which prevents 16-byte accesses to it.
#include "kernels/ladder/transpose/kernels.h"
#include "kernels/transpose/vector_tile.cuh"

namespace warpline {
namespace {

template <typename T>
struct UnpaddedTile {
  static constexpr int kElements = kTileSide * kTileSide;
  __device__ static constexpr int Index(int y, int x) { return y * kTileSide + x; }
  __device__ static void Store(T* tile, int y, int x, const Vector16<T>& vector) {
    *reinterpret_cast<Vector16<T>*>(tile + Index(y, x)) = vector;
  }
};

}  // namespace

cudaError_t LaunchTransposeVectorized(const TransposeProblem& problem, const Operands& operands,
                                      const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchVectors<UnpaddedTile>(problem, operands, stream);
}

}  // namespace warpline
