// Variant `multi_element`: as `padded`, with 32 x 8 threads that move four elements each. Four loads of a
// thread are in flight at once, and its share of addresses and of the barrier is a quarter.
//
// Limit: each access, of global and of shared memory, moves only 4 (or 8) bytes of a thread; the load and
// store units see four times the instructions that 16-byte accesses would take.
// Next, `vectorized`: 16-byte accesses of global memory.
#include "kernels/transpose/padded_tile.cuh"
#include "kernels/transpose/scalar_tile.cuh"

namespace warpline {

cudaError_t LaunchTransposeMultiElement(const TransposeProblem& problem, const Operands& operands,
                                        const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchThroughTile<PaddedTile, 8>(problem, operands, stream);
}

}  // namespace warpline
