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

CudaLaunch<GemmProblem> LaunchGemmShared;
CudaLaunch<GemmProblem> LaunchGemmCublas;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_GEMM_KERNELS_H_
