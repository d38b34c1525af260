// Variant `padded`: same as `shared`, but a row of the tile has 33 elements. Each row is shifted by one more
// element, so a column lies in 32 different banks. With 8-byte elements, each half of a column lies in 16
// different pairs of banks.
//
// Limit: a thread has one load in flight and spends most of its instructions on addresses and the barrier.
// CTAs of 1024 threads start and end as a whole, two per multiprocessor.
// Next, `multi_element`: a quarter of the threads, with four elements each.
#include "kernels/ladder/transpose/scalar_tile.cuh"
#include "kernels/transpose/padded_tile.cuh"

namespace warpline {

cudaError_t LaunchTransposePadded(const TransposeProblem& problem, const Operands& operands,
                                  const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchThroughTile<PaddedTile, kTileSide>(problem, operands, stream);
}

}  // namespace warpline
