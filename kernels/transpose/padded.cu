// Variant `padded`: as `shared`, but a row of the tile has 33 elements. One element further in each row, a
// column lies in 32 different banks; of elements of 8 bytes, each half of it in 16 different pairs of banks.
//
// Limit: a thread has one load in flight and spends most of its instructions on addresses and the barrier;
// CTAs of 1024 threads come and go as a whole, two of them a multiprocessor.
// Next, `multi_element`: a quarter of the threads, four elements each.
#include "kernels/transpose/padded_tile.cuh"
#include "kernels/transpose/scalar_tile.cuh"

namespace warpline {

cudaError_t LaunchTransposePadded(const TransposeProblem& problem, const Operands& operands,
                                  const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchThroughTile<PaddedTile, kTileSide>(problem, operands, stream);
}

}  // namespace warpline
