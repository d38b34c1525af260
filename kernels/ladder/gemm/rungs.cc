#include "kernels/ladder/rungs.h"

#include "kernels/gemm/kernels.h"
#include "kernels/ladder/gemm/kernels.h"

namespace warpline {
namespace {

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }
bool IsSingleOrDouble(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

bool SupportsVectors(const GemmProblem& problem, const DeviceTraits&) { return AreGemmRowsAligned(problem); }

constexpr CudaVariant<GemmProblem> Rung(int step, std::string_view name, std::string_view summary,
                                        bool (*supports_dtype)(DType),
                                        decltype(CudaVariant<GemmProblem>::supports) supports,
                                        CudaLaunch<GemmProblem>* launch) {
  return {.name = name,
          .summary = summary,
          .reproducible = true,
          .supports_dtype = supports_dtype,
          .supports = supports,
          .workspace_bytes = [](const GemmProblem&, const DeviceTraits&) -> std::size_t { return 0; },
          .launch = launch,
          .step = step};
}

// The rungs take those types of their kernels that the benchmark can check.
constexpr CudaVariant<GemmProblem> kRungs[] = {
    Rung(
        2, "shared", "32 x 32 tiles in shared memory, one thread an element",
        [](DType dtype) { return dtype == DType::kI8 || IsFloat(dtype); },
        [](const GemmProblem&, const DeviceTraits&) { return true; }, LaunchGemmShared),
    Rung(
        4, "vectorized", "tiles in shared memory, a 16-byte vector of the result a thread", IsSingleOrDouble,
        [](const GemmProblem& problem, const DeviceTraits&) {
          // The row length of D is n.
          return AreGemmRowsAligned(problem) &&
                 problem.n % static_cast<std::int64_t>(16 / SizeOf(problem.dtype)) == 0;
        },
        LaunchGemmVectorized),
    Rung(7, "double_buffered", "wide_loads with two buffers: the next tile is loaded while one is multiplied",
         IsSingleOrDouble, SupportsVectors, LaunchGemmDoubleBuffered),
    Rung(8, "wmma", "tensor cores through the WMMA API, 128 x 128 tiles", IsHalf, SupportsVectors,
         LaunchGemmWmma),
};

}  // namespace

std::span<const CudaVariant<GemmProblem>> LadderRungs(const GemmProblem&) { return kRungs; }

}  // namespace warpline
