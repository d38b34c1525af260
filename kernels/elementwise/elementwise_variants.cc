#include "kernels/cuda_variants.h"
#include "kernels/elementwise/elementwise_kernels.h"

namespace warpline {
namespace {

constexpr CudaVariant<ElementwiseProblem> kVariants[] = {
    {.name = "elementwise",
     .summary = "a thread four elements, types decided at run time",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = [](const ElementwiseProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = [](const ElementwiseProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchElementwise},
};

}  // namespace

std::span<const CudaVariant<ElementwiseProblem>> CudaElementwiseVariants() { return kVariants; }

}  // namespace warpline
