// Variant `unpadded`: `multi_element` without the pad, so that the two differ only by bank conflicts.
// `shared` and `padded` differ in the same way, but with one element per thread they wait for memory as long
// as for banks.
//
// Limit: the conflicts of `shared`: 32-way, or 16-way for 8-byte elements.
#include "kernels/ladder/transpose/scalar_tile.cuh"

namespace warpline {

cudaError_t LaunchTransposeUnpadded(const TransposeProblem& problem, const Operands& operands,
                                    const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchThroughTile<RowMajorTile, 8>(problem, operands, stream);
}

}  // namespace warpline
