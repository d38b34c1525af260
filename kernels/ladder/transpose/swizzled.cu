// Variant `swizzled`: same as `shifted`, but element x of row y lies at x XOR y: the swizzle of single
// elements. Rows and columns have no conflicts, no memory is wasted, and the index needs one instruction.
//
// Limit: that of `multi_element`, single elements.
// Next, `swizzled_vectorized`: the same XOR on 16-byte chunks.
#include "kernels/ladder/transpose/scalar_tile.cuh"
#include "kernels/transpose/swizzle.h"

namespace warpline {
namespace {

struct SwizzledTile {
  // A chunk is one element. 8-byte elements use the same positions.
  static constexpr int kBytes = 4;
  static constexpr int kElements = kTileSide * kTileSide;
  __device__ static constexpr int Index(int y, int x) {
    return y * kTileSide + Swizzle<kBytes, kBytes, kTileSide>::Chunk(y, x);
  }
};

}  // namespace

cudaError_t LaunchTransposeSwizzled(const TransposeProblem& problem, const Operands& operands,
                                    const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchThroughTile<SwizzledTile, 8>(problem, operands, stream);
}

}  // namespace warpline
