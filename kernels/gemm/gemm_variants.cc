#include "kernels/ceil_div.h"
#include "kernels/cuda_variants.h"
#include "kernels/gemm/gemm_kernels.h"

namespace warpline {
namespace {

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }
bool IsSingleOrDouble(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

bool SupportsAll(const GemmProblem&, const DeviceTraits&) { return true; }
bool SupportsVectors(const GemmProblem& problem, const DeviceTraits&) { return AreGemmRowsAligned(problem); }
// Rows of D are as long as n.
bool SupportsVectorsInD(const GemmProblem& problem, const DeviceTraits&) {
  return AreGemmRowsAligned(problem) &&
         problem.n % static_cast<std::int64_t>(16 / SizeOf(problem.dtype)) == 0;
}

bool IsHopper(const DeviceTraits& traits) { return traits.compute_capability == 90; }

// Of few large tiles most of the GPU has none, and of a small matrix most of a tile is empty.
template <int kTileM, int kTileN>
bool FillsTiles(const GemmProblem& problem, const DeviceTraits& traits) {
  const std::int64_t tiles = CeilDiv(problem.m, kTileM) * CeilDiv(problem.n, kTileN) * problem.batch.Count();
  return problem.m >= kTileM / 2 && problem.n >= kTileN / 2 && tiles >= traits.multiprocessors / 2;
}

std::size_t NoWorkspace(const GemmProblem&, const DeviceTraits&) { return 0; }

// From the fastest down; the ladder of a kernel's history goes up.
constexpr CudaVariant<GemmProblem> kVariants[] = {
    {.name = "cublas",
     .summary = "cuBLASLt, first choice of its heuristic",
     .reproducible = true,
     .supports_dtype = IsGemmInput,
     .supports = GemmCublasSupports,
     .workspace_bytes = [](const GemmProblem&, const DeviceTraits&) { return kCublasWorkspaceBytes; },
     .launch = LaunchGemmCublas,
     .available = [](const DeviceTraits& traits) { return traits.has_cublaslt; }},
    {.name = "wgmma",
     .summary = "Hopper's tensor cores fed by its tensor memory accelerator, 128 x 256 tiles, persistent",
     .reproducible = true,
     .supports_dtype = IsHalf,
     .supports = GemmWgmmaSupports,
     .workspace_bytes = NoWorkspace,
     .launch = LaunchGemmWgmma,
     .available = IsHopper,
     .preferred = FillsTiles<128, 256>},
    {.name = "wmma",
     .summary = "tensor cores through the WMMA API, 128 x 128 tiles",
     .reproducible = true,
     .supports_dtype = IsHalf,
     .supports = SupportsVectors,
     .workspace_bytes = NoWorkspace,
     .launch = LaunchGemmWmma,
     .preferred = FillsTiles<128, 128>},
    {.name = "double_buffered",
     .summary = "register_tiled that loads the next tile while it multiplies one, in 16-byte vectors",
     .reproducible = true,
     .supports_dtype = IsSingleOrDouble,
     .supports = SupportsVectors,
     .workspace_bytes = NoWorkspace,
     .launch = LaunchGemmDoubleBuffered,
     .preferred = FillsTiles<128, 128>},
    {.name = "register_tiled",
     .summary = "128 x 128 x 8 tiles, 8 x 8 elements in the registers of a thread",
     .reproducible = true,
     .supports_dtype = IsGemmInput,
     .supports = SupportsAll,
     .workspace_bytes = NoWorkspace,
     .launch = LaunchGemmRegisterTiled,
     .preferred = FillsTiles<128, 128>},
    {.name = "vectorized",
     .summary = "tiles in shared memory, a 16-byte vector of the result a thread",
     .reproducible = true,
     .supports_dtype = IsSingleOrDouble,
     .supports = SupportsVectorsInD,
     .workspace_bytes = NoWorkspace,
     .launch = LaunchGemmVectorized},
    {.name = "unrolled",
     .summary = "shared with the loop over a tile unrolled",
     .reproducible = true,
     .supports_dtype = IsGemmInput,
     .supports = SupportsAll,
     .workspace_bytes = NoWorkspace,
     .launch = LaunchGemmUnrolled},
    {.name = "naive",
     .summary = "one thread an element, operands from global memory",
     .reproducible = true,
     .supports_dtype = IsGemmInput,
     .supports = SupportsAll,
     .workspace_bytes = NoWorkspace,
     .launch = LaunchGemmNaive},
    {.name = "shared",
     .summary = "32 x 32 tiles in shared memory, one thread an element",
     .reproducible = true,
     .supports_dtype = IsGemmInput,
     .supports = SupportsAll,
     .workspace_bytes = NoWorkspace,
     .launch = LaunchGemmShared},
};

}  // namespace

std::span<const CudaVariant<GemmProblem>> CudaGemmVariants() { return kVariants; }

}  // namespace warpline
