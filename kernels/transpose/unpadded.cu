// Variant `unpadded`: `multi_element` without the pad, so that the two differ by bank conflicts alone.
// `shared` and `padded` do too, but with one element a thread they wait for memory as long as for banks.
//
// Limit: the conflicts of `shared`, 32-way, or 16-way of elements of 8 bytes.
#include "kernels/transpose/scalar_tile.cuh"

namespace warpline {

cudaError_t LaunchTransposeUnpadded(const TransposeProblem& problem, const Operands& operands,
                                    const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchThroughTile<RowMajorTile, 8>(problem, operands, stream);
}

}  // namespace warpline
