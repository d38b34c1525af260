// Variant `multi_element`: same as `padded`, but 32 x 8 threads move four elements each. Each thread has four
// loads in flight. Addresses and the barrier cost a quarter per element.
//
// Limit: each access to global or shared memory moves only 4 (or 8) bytes per thread. The load and store
// units execute four times the instructions that 16-byte accesses would take.
// Next, `vectorized`: 16-byte accesses to global memory.
#include "kernels/ladder/transpose/scalar_tile.cuh"
#include "kernels/transpose/padded_tile.cuh"

namespace warpline {

cudaError_t LaunchTransposeMultiElement(const TransposeProblem& problem, const Operands& operands,
                                        const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchThroughTile<PaddedTile, 8>(problem, operands, stream);
}

}  // namespace warpline
