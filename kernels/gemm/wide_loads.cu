// Variant `wide_loads`: `register_tiled` with three changes. Loads have 16 bytes, so there are a quarter as
// many load instructions. Tiles of f32 are 16 deep, which halves the number of barriers. Threads use 128
// registers, so that two CTAs share a multiprocessor.
//
// Limit: the f32 units, and the instructions that feed them. All threads of a CTA wait for global memory
// before they multiply, but the other CTA of the multiprocessor multiplies meanwhile. Next,
// `double_buffered`: loads and multiplications overlap within a CTA.
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/vector_tile.cuh"

namespace warpline {

cudaError_t LaunchGemmWideLoads(const GemmProblem& problem, const Operands& operands,
                                const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchGemmVectorTile<1>(problem, operands, stream);
}

}  // namespace warpline
