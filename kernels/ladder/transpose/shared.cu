// Variant `shared`: a tile of 32 x 32 elements goes through shared memory, with one thread per element. So
// reads and writes of global memory are both coalesced.
//
// Limit: a warp that reads a column of the tile finds all of it in one bank, because a row is a multiple of
// 32 banks: a 32-way conflict. 8-byte elements are served to half a warp at a time, whose 16 lanes need the
// same pair of banks: a 16-way conflict each.
// Next, `padded`: with one more column, each row of the tile begins in another bank.
#include "kernels/ladder/transpose/scalar_tile.cuh"

namespace warpline {

cudaError_t LaunchTransposeShared(const TransposeProblem& problem, const Operands& operands,
                                  const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchThroughTile<RowMajorTile, kTileSide>(problem, operands, stream);
}

}  // namespace warpline
