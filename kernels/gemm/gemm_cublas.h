// cuBLASLt's other algorithms for what the variant `cublas` does: for the benchmark, which measures them.
#ifndef WARPLINE_KERNELS_GEMM_GEMM_CUBLAS_H_
#define WARPLINE_KERNELS_GEMM_GEMM_CUBLAS_H_

#include <cublasLt.h>

#include <vector>

#include "kernels/cuda_variants.h"

namespace warpline {

// At most `count` algorithms in the order of the heuristic, of which `cublas` takes the first. None if
// `cublas` does not support the problem.
std::vector<cublasLtMatmulAlgo_t> GemmCublasCandidates(const GemmProblem& problem, const Operands& operands,
                                                       const CudaContext& context, int count);

// What the variant `cublas` does, by one of the algorithms that GemmCublasCandidates returned for the same
// problem and operands of the same alignment.
cudaError_t LaunchGemmCublasCandidate(const GemmProblem& problem, const Operands& operands,
                                      const CudaContext& context, const cublasLtMatmulAlgo_t& algorithm,
                                      cudaStream_t stream);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_GEMM_CUBLAS_H_
