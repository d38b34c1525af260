// The variant tables of steps that move elements by indices: one kernel each.
#include "kernels/cuda_choice.h"
#include "kernels/take/kernels.h"

namespace warpline {
namespace {

constexpr bool AnyDType(DType) { return true; }

constexpr CudaVariant<TakeProblem> kTake[] = {
    {.name = "gather",
     .summary = "units of up to 16 bytes, from where an index says",
     .reproducible = true,
     .supports_dtype = AnyDType,
     .supports = [](const TakeProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = [](const TakeProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchTake,
     // Taking a single element causes 32 bytes of traffic.
     .cost = [](const TakeProblem&, const DeviceTraits&) { return VariantCost{.transfer = 4}; }},
};

constexpr CudaVariant<PutProblem> kPut[] = {
    {.name = "last_writer",
     .summary = "finds the last place that names each element, then writes each element once",
     .reproducible = true,
     .supports_dtype = AnyDType,
     .supports = [](const PutProblem& problem,
                    const DeviceTraits&) { return problem.index_shape.Count() <= kMaxPutPlaces; },
     .workspace_bytes = [](const PutProblem& problem,
                           const DeviceTraits&) { return PutWorkspaceBytes(problem); },
     .launch = LaunchPut,
     // Positions that select the same element are serialised: 0.7 ns each on an H200. That is this fraction
     // of the time of an element that one thread handles alone (docs/benchmarks/2026-11-28-h200-order.md).
     .cost =
         [](const PutProblem& problem, const DeviceTraits&) {
           return VariantCost{.transfer = 4,
                              .serial = 0.004 * static_cast<double>(problem.index_shape.Count()),
                              .launches = 3};
         }},
};

constexpr CudaVariant<CompressProblem> kCompress[] = {
    {.name = "tiles",
     .summary = "counts and numbers the rows that the mask takes, tile by tile, then copies them",
     .reproducible = true,
     .supports_dtype = AnyDType,
     .supports = [](const CompressProblem& problem,
                    const DeviceTraits&) { return problem.rows <= kMaxCompressRows; },
     .workspace_bytes = [](const CompressProblem& problem,
                           const DeviceTraits&) { return CompressWorkspaceBytes(problem); },
     .launch = LaunchCompress,
     .cost = [](const CompressProblem&,
                const DeviceTraits&) { return VariantCost{.transfer = 4, .launches = 4}; }},
};

}  // namespace

std::span<const CudaVariant<TakeProblem>> CudaTakeVariants() { return kTake; }
std::span<const CudaVariant<PutProblem>> CudaPutVariants() { return kPut; }
std::span<const CudaVariant<CompressProblem>> CudaCompressVariants() { return kCompress; }

}  // namespace warpline
