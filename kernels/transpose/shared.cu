// Variant `shared`: a tile of 32 x 32 elements waits in shared memory, one thread an element, so that reads
// and writes of global memory are both coalesced.
//
// Limit: the warp that reads a column of the tile finds all of it in one bank, as a row is a multiple of all
// 32 banks: a 32-way conflict. Elements of 8 bytes are served to half a warp at a time, and its 16 lanes want
// one pair of banks: a 16-way conflict each.
// Next, `padded`: one more column, and each row of the tile begins in another bank.
#include "kernels/transpose/scalar_tile.cuh"

namespace warpline {

cudaError_t LaunchTransposeShared(const TransposeProblem& problem, const Operands& operands,
                                  const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchThroughTile<RowMajorTile, kTileSide>(problem, operands, stream);
}

}  // namespace warpline
