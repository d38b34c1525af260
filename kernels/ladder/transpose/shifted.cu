// Variant `shifted`: same as `multi_element`, but without padding: row y of the tile is rotated by y
// positions. So a column lies in 32 different banks (8-byte elements: half a column in 16 different pairs),
// and the tile's size is a power of two.
//
// Limit: that of `multi_element`, single elements. Also, a rotation by one breaks 16-byte chunks.
// Next, `swizzled`: XOR instead of a sum, which permutes aligned chunks of any size.
#include "kernels/ladder/transpose/scalar_tile.cuh"

namespace warpline {
namespace {

struct ShiftedTile {
  static constexpr int kElements = kTileSide * kTileSide;
  __device__ static constexpr int Index(int y, int x) { return y * kTileSide + (x + y) % kTileSide; }
};

}  // namespace

cudaError_t LaunchTransposeShifted(const TransposeProblem& problem, const Operands& operands,
                                   const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchThroughTile<ShiftedTile, 8>(problem, operands, stream);
}

}  // namespace warpline
