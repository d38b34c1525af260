// Variant `unrolled`: `shared` with the loop over a tile unrolled. So addresses are constants in the
// instructions, and loads are issued ahead of their use.
//
// Limit: two loads from shared memory for every multiplication.
// Next, `vectorized`: each loaded word is used more often.
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/tile32.cuh"

namespace warpline {

cudaError_t LaunchGemmUnrolled(const GemmProblem& problem, const Operands& operands,
                               const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchGemmTile32<kGemmTile32>(problem, operands, stream);
}

}  // namespace warpline
