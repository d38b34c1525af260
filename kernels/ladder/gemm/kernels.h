// Launchers of the products that only the ladder has. The file of each describes it.
#ifndef WARPLINE_KERNELS_LADDER_GEMM_KERNELS_H_
#define WARPLINE_KERNELS_LADDER_GEMM_KERNELS_H_

#include "kernels/cuda_variants.h"

namespace warpline {

// Needs only the alignment of an element.
CudaLaunch<GemmProblem> LaunchGemmShared;
// These launchers need A and B aligned to 16 bytes, and AreGemmRowsAligned.
CudaLaunch<GemmProblem> LaunchGemmVectorized;  // also needs D aligned
CudaLaunch<GemmProblem> LaunchGemmDoubleBuffered;
CudaLaunch<GemmProblem> LaunchGemmWmma;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_LADDER_GEMM_KERNELS_H_
