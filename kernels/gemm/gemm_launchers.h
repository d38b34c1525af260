// The rows of the CUDA gemm table, one file each.
#ifndef WARPLINE_KERNELS_GEMM_GEMM_LAUNCHERS_H_
#define WARPLINE_KERNELS_GEMM_GEMM_LAUNCHERS_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda_variants.h"

namespace warpline {

// What NVIDIA recommends for Hopper; less serves older GPUs as well.
inline constexpr std::size_t kCublasWorkspaceBytes = std::size_t{32} << 20;

CudaLaunch<GemmProblem> LaunchGemmCublas;
CudaLaunch<GemmProblem> LaunchGemmShared;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_GEMM_LAUNCHERS_H_
