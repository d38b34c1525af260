#include "kernels/cuda_variants.h"
#include "kernels/gemm/gemm_kernels.h"

namespace warpline {
namespace {

constexpr CudaVariant<GemmProblem> kVariants[] = {
    {.name = "cublas",
     .summary = "cuBLASLt, first choice of its heuristic",
     .reproducible = true,
     .supports_dtype = IsGemmInput,
     .supports = GemmCublasSupports,
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
