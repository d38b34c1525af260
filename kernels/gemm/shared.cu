// Variant `shared`: tiles of 32 x 32 in shared memory, each element of which 32 threads use. Accumulates in
// f32 (f64 for f64, modulo 2^bits for integers) in the order of k: the oracle. The compiler is told not to
// unroll the loop over a tile, which it would do by itself, so that the next rung shows what that brings.
//
// Limit: for every multiplication two words are read from shared memory, and as many instructions count and
// branch.
// Next, `unrolled`: no counting.
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/tile32.cuh"

namespace warpline {

cudaError_t LaunchGemmShared(const GemmProblem& problem, const Operands& operands,
                             const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchGemmTile32<1>(problem, operands, stream);
}

}  // namespace warpline
