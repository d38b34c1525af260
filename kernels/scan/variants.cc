// The variant table of scans.
#include "kernels/cuda_choice.h"
#include "kernels/scan/kernels.h"

namespace warpline {
namespace {

constexpr CudaVariant<ScanProblem> kVariants[] = {
    {.name = "tiles",
     .summary = "a CTA for each row, threads for columns, or tiles that wait for those before them",
     .reproducible = true,
     .supports_dtype = IsScanType,
     .supports = [](const ScanProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = ScanWorkspaceBytes,
     .launch = LaunchScan,
     .cost = [](const ScanProblem&,
                const DeviceTraits&) { return VariantCost{.transfer = 2, .launches = 2}; }},
};

}  // namespace

std::span<const CudaVariant<ScanProblem>> CudaScanVariants() { return kVariants; }

}  // namespace warpline
