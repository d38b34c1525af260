#include "kernels/cuda_variants.h"
#include "kernels/gemm/gemm_kernels.h"

namespace warpline {
namespace {

bool CublasSupports(const GemmProblem& problem, const DeviceTraits& traits) {
  // It fuses nothing into f64 products.
  const bool fused = problem.has_bias || problem.activation != Activation::kNone;
  if (problem.dtype == DType::kF64 && fused) return false;
  // Without a product there are no A and B to describe.
  return traits.has_cublaslt && problem.k > 0;
}

constexpr CudaVariant<GemmProblem> kVariants[] = {
    {.name = "cublas",
     .summary = "cuBLASLt, first choice of its heuristic",
     .reproducible = true,
     .supports_dtype = IsGemmInput,
     .supports = CublasSupports,
     .workspace_bytes = [](const GemmProblem&, const DeviceTraits&) { return kCublasWorkspaceBytes; },
     .launch = LaunchGemmCublas},
    {.name = "shared",
     .summary = "32 x 32 tiles in shared memory, one thread an element",
     .reproducible = true,
     .supports_dtype = IsGemmInput,
     .supports = [](const GemmProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = [](const GemmProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchGemmShared},
};

}  // namespace

std::span<const CudaVariant<GemmProblem>> CudaGemmVariants() { return kVariants; }

}  // namespace warpline
