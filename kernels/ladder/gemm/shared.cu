// Variant `shared`: 32 x 32 tiles in shared memory, each element of which 32 threads use. Accumulates in f32
// (f64 for f64, modulo 2^bits for integers) in the order of k. The compiler is told not to unroll
// the loop over a tile, which it would otherwise do, so that the next rung shows the effect of unrolling.
//
// Limit: every multiplication needs two words from shared memory, and as many instructions to count and
// branch.
// Next, `unrolled`: no counting.
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/tile32.cuh"
#include "kernels/ladder/gemm/kernels.h"

namespace warpline {

cudaError_t LaunchGemmShared(const GemmProblem& problem, const Operands& operands,
                             const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchGemmTile32<1>(problem, operands, stream);
}

}  // namespace warpline
