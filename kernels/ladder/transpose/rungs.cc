#include "kernels/ladder/rungs.h"

#include "kernels/ladder/transpose/kernels.h"
#include "kernels/transpose/rungs.h"

namespace warpline {
namespace {

bool AnyProblem(const TransposeProblem&, const DeviceTraits&) { return true; }

constexpr CudaVariant<TransposeProblem> Rung(
    int step, std::string_view name, std::string_view summary, CudaLaunch<TransposeProblem>* launch,
    decltype(CudaVariant<TransposeProblem>::supports) supports = AnyProblem) {
  return {.name = name,
          .summary = summary,
          .reproducible = true,
          .supports_dtype = IsWord,
          .supports = supports,
          .workspace_bytes = [](const TransposeProblem&, const DeviceTraits&) -> std::size_t { return 0; },
          .launch = launch,
          .step = step};
}

constexpr CudaVariant<TransposeProblem> kRungs[] = {
    Rung(2, "naive_write", "one thread an element, coalesced writes", LaunchTransposeNaiveWrite),
    Rung(3, "shared", "32 x 32 tile in shared memory, coalesced both ways, bank conflicts",
         LaunchTransposeShared),
    Rung(4, "padded", "33 columns in the tile, no bank conflicts", LaunchTransposePadded),
    Rung(5, "multi_element", "padded tile, 32 x 8 threads of 4 elements each", LaunchTransposeMultiElement),
    Rung(0, "unpadded", "multi_element without padding: what bank conflicts cost with as many threads",
         LaunchTransposeUnpadded),
    Rung(6, "vectorized", "16-byte vectors of global memory, which rows must be multiples of; bank conflicts",
         LaunchTransposeVectorized, TakesVectors),
    Rung(8, "shifted", "4 elements a thread, row y of the tile rotated by y", LaunchTransposeShifted),
    Rung(9, "swizzled", "4 elements a thread, XOR-swizzled tile", LaunchTransposeSwizzled),
    Rung(10, "swizzled_vectorized", "16-byte vectors of global memory, tile XOR-swizzled by vectors",
         LaunchTransposeSwizzledVectorized, TakesVectors),
    Rung(11, "shuffle", "32 x 32 tile in the registers of a warp, no shared memory", LaunchTransposeShuffle),
};

}  // namespace

std::span<const CudaVariant<TransposeProblem>> LadderRungs(const TransposeProblem&) { return kRungs; }

}  // namespace warpline
