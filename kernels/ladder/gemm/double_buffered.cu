// Variant `double_buffered`: `wide_loads` with two buffers in shared memory. While threads multiply one pair
// of tiles, the next pair is loaded from global memory into their registers. This needs one barrier per tile
// instead of two.
//
// Limit: that of `wide_loads`. On an H200 it is no faster than `wide_loads` in f32, neither with two CTAs per
// multiprocessor nor with one (docs/benchmarks/2026-11-23-h200-ladder.md). Next, `wmma`: multiplication by
// the tensor cores, which take 16-bit elements.
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/vector_tile.cuh"
#include "kernels/ladder/gemm/kernels.h"

namespace warpline {

cudaError_t LaunchGemmDoubleBuffered(const GemmProblem& problem, const Operands& operands,
                                     const CudaContext& /*context*/, cudaStream_t stream) {
  return LaunchGemmVectorTile<2>(problem, operands, stream);
}

}  // namespace warpline
