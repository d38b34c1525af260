// Variant `wide_loads`: `register_tiled` with loads of 16 bytes, a quarter of the instructions that load;
// tiles of f32 that are 16 deep, so that half as many barriers are waited at; and 128 registers, so that two
// CTAs share a multiprocessor.
//
// Limit: the f32 units, and the instructions that feed them. All threads of a CTA wait for global memory
// before they multiply, but the other CTA of the multiprocessor multiplies meanwhile. Next,
// `double_buffered`: both at once within a CTA.
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/vector_tile.cuh"

namespace warpline {

cudaError_t LaunchGemmWideLoads(const GemmProblem& problem, const Operands& operands,
                                const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchGemmVectorTile<1>(problem, operands, stream);
}

}  // namespace warpline
