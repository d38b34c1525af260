// Launchers of the matrix products.
#ifndef WARPLINE_KERNELS_GEMM_GEMM_KERNELS_H_
#define WARPLINE_KERNELS_GEMM_GEMM_KERNELS_H_

#include <cstddef>

#include "kernels/cuda_variants.h"

namespace warpline {

// What cuBLAS asks for on Hopper; with less it leaves out its split-k algorithms.
inline constexpr std::size_t kCublasWorkspaceBytes = std::size_t{32} << 20;

// Whether cuBLASLt does what the API says with such a problem; not yet whether it does it at all.
bool GemmCublasSupports(const GemmProblem& problem, const DeviceTraits& traits);

// Whether the rows of A and B are 16-byte multiples apart.
inline bool AreGemmRowsAligned(const GemmProblem& problem) {
  const auto vector = static_cast<std::int64_t>(16 / SizeOf(problem.dtype));
  return problem.lda % vector == 0 && problem.ldb % vector == 0;
}

bool GemmWgmmaSupports(const GemmProblem& problem, const DeviceTraits& traits);

// Need the alignment of an element only.
CudaLaunch<GemmProblem> LaunchGemmNaive;
CudaLaunch<GemmProblem> LaunchGemmShared;
CudaLaunch<GemmProblem> LaunchGemmUnrolled;
CudaLaunch<GemmProblem> LaunchGemmRegisterTiled;
// Need A and B aligned to 16 bytes, and AreGemmRowsAligned.
CudaLaunch<GemmProblem> LaunchGemmVectorized;  // D too
CudaLaunch<GemmProblem> LaunchGemmDoubleBuffered;
CudaLaunch<GemmProblem> LaunchGemmWmma;
CudaLaunch<GemmProblem> LaunchGemmWgmma;
CudaLaunch<GemmProblem> LaunchGemmCublas;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_GEMM_KERNELS_H_
