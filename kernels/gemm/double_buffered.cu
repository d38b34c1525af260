// Variant `double_buffered`: `wide_loads` with two buffers in shared memory. While threads multiply one pair
// of tiles, the next is on its way from global memory into their registers; one barrier a tile instead of
// two.
//
// Limit: the f32 units, and the instructions that feed them.
// Next, `wmma`: multiplications by the tensor cores, which take 16-bit elements.
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/vector_tile.cuh"

namespace warpline {

cudaError_t LaunchGemmDoubleBuffered(const GemmProblem& problem, const Operands& operands,
                                     const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchGemmVectorTile<2>(problem, operands, stream);
}

}  // namespace warpline
