// The variant tables of sorts and searches.
#include <algorithm>
#include <bit>

#include "kernels/cuda_choice.h"
#include "kernels/sort/kernels.h"

namespace warpline {
namespace {

// Measured on an H200; see docs/benchmarks.
VariantCost BlocksCost(const SortProblem&, const DeviceTraits&) { return {.transfer = 6}; }

VariantCost RadixCost(const SortProblem& problem, const DeviceTraits&) {
  const auto passes = static_cast<double>(SizeOf(problem.dtype)) + (problem.rows > 1 ? 3 : 0);
  return {.transfer = 2 + 3 * passes, .launches = 4 + passes};
}

VariantCost SelectCost(const SortProblem&, const DeviceTraits&) { return {.transfer = 4, .launches = 2}; }

// Columns as in kernels/cpu/cpu_variants.cc. The server chooses the first suitable row.
constexpr CudaVariant<SortProblem> kSort[] = {
    {.name = "select",
     .summary = "finds the first elements of each row by a bound, and sorts these",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = [](const SortProblem& problem,
                    const DeviceTraits&) { return problem.taken <= kMaxSelected; },
     .workspace_bytes = SelectWorkspaceBytes,
     .launch = LaunchSelect,
     // For short rows, sorting the whole row is faster.
     .preferred = [](const SortProblem& problem,
                     const DeviceTraits&) { return problem.taken < problem.count && problem.count > 256; },
     .cost = SelectCost},
    {.name = "blocks",
     .summary = "each row in the shared memory of a CTA",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = [](const SortProblem& problem,
                    const DeviceTraits&) { return problem.count <= kMaxBlockRow; },
     .workspace_bytes = [](const SortProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchSortBlocks,
     .cost = BlocksCost},
    {.name = "radix",
     .summary = "CUB's radix sort of all elements, then by row",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = [](const SortProblem& problem,
                    const DeviceTraits&) { return problem.rows * problem.count <= kMaxRadixElements; },
     .workspace_bytes = [](const SortProblem& problem,
                           const DeviceTraits&) { return SortRadixWorkspaceBytes(problem); },
     .launch = LaunchSortRadix,
     .cost = RadixCost},
};

constexpr CudaVariant<SearchProblem> kSearch[] = {
    {.name = "bisect",
     .summary = "a binary search for each needle",
     .reproducible = true,
     .supports_dtype = IsReal,
     .supports = [](const SearchProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = [](const SearchProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchSearch,
     .cost =
         [](const SearchProblem& problem, const DeviceTraits&) {
           return VariantCost{.transfer =
                                  1.0 + 4 * std::bit_width(static_cast<std::uint64_t>(problem.count))};
         }},
};

}  // namespace

std::span<const CudaVariant<SortProblem>> CudaSortVariants() { return kSort; }
std::span<const CudaVariant<SearchProblem>> CudaSearchVariants() { return kSearch; }

}  // namespace warpline
