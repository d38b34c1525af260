#include <algorithm>
#include <array>
#include <string_view>

#include "kernels/ceil_div.h"
#include "kernels/cuda_choice.h"
#include "kernels/gemm/kernels.h"

namespace warpline {
namespace {

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }
bool IsSmall(DType dtype) { return dtype == DType::kI8 || IsHalf(dtype); }
bool IsIntegerOrFloat(DType dtype) { return IsInteger(dtype) || IsFloat(dtype); }
bool IsSingleOrDouble(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

bool SupportsAll(const GemmProblem&, const DeviceTraits&) { return true; }
bool SupportsVectors(const GemmProblem& problem, const DeviceTraits&) { return AreGemmRowsAligned(problem); }

bool HasCublas(const DeviceTraits& traits) { return traits.has_cublaslt; }
bool IsHopper(const DeviceTraits& traits) { return traits.compute_capability == 90; }

// True if the problem suits these tiles. With few large tiles, most of the GPU is idle. With a small matrix,
// most of a tile is empty.
template <int kTileM, int kTileN>
bool FillsTiles(const GemmProblem& problem, const DeviceTraits& traits) {
  const std::int64_t tiles = CeilDiv(problem.m, kTileM) * CeilDiv(problem.n, kTileN) * problem.batch.Count();
  return problem.m >= kTileM / 2 && problem.n >= kTileN / 2 && tiles >= traits.multiprocessors / 2;
}

// True if one kernel computes a product of 16-bit floats before the library's sums would be in memory. Such a
// product has at most one small tile per multiprocessor (docs/benchmarks/2026-11-26-h200-odd-rows.md).
bool IsTiny(const GemmProblem& problem, const DeviceTraits& traits) {
  constexpr std::int64_t kTile = 32, kMaxK = 64;
  const std::int64_t tiles = CeilDiv(problem.m, kTile) * CeilDiv(problem.n, kTile) * problem.batch.Count();
  return IsHalf(problem.dtype) && problem.k <= kMaxK && tiles <= traits.multiprocessors;
}

bool HasWideElements(DType dtype) {
  return IsSingleOrDouble(dtype) || (IsInteger(dtype) && SizeOf(dtype) >= 4);
}

// The cost of a rung whose CTAs compute tiles of kTileM x kTileN, with kCtas of them at a time per
// multiprocessor. On large problems the rung takes kSlowdown times as long as cuBLASLt. On 16-bit types it
// takes kSlowdownHalf times as long: there most rungs use the f32 units
// (docs/benchmarks/2026-11-23-h200-ladder.md). The empty part of a tile costs as much as the rest. The last
// wave, which may be the only one, costs as much as any other.
template <int kTileM, int kTileN, int kCtas, int kSlowdown, int kSlowdownHalf>
VariantCost TileCost(const GemmProblem& problem, const DeviceTraits& traits) {
  const std::int64_t count = problem.batch.Count();
  const std::int64_t tiles = CeilDiv(problem.m, kTileM) * CeilDiv(problem.n, kTileN) * count;
  const std::int64_t wave = std::max<std::int64_t>(traits.multiprocessors, 1) * kCtas;
  const double computed = static_cast<double>(CeilDiv(tiles, wave) * wave) * kTileM * kTileN;
  const double asked =
      static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(count);
  constexpr int kTf32 = 8;  // speedup, with tensor cores
  const int slowdown = IsHalf(problem.dtype)                   ? kSlowdownHalf
                       : problem.precision == Precision::kTf32 ? kTf32 * kSlowdown
                                                               : kSlowdown;
  return {.arithmetic = slowdown * computed / std::max(asked, 1.0)};
}

// Configurations of the rows that call cuBLASLt: its algorithms in the order of its heuristic. The row itself
// uses the first algorithm.
constexpr std::array<std::string_view, kCublasAlgorithms - 1> kCublas = {
    "cublas:2",  "cublas:3",  "cublas:4",  "cublas:5",  "cublas:6",  "cublas:7",  "cublas:8", "cublas:9",
    "cublas:10", "cublas:11", "cublas:12", "cublas:13", "cublas:14", "cublas:15", "cublas:16"};
constexpr std::array<std::string_view, kCublasAlgorithms - 1> kCublasPacked = {
    "cublas_packed:2",  "cublas_packed:3",  "cublas_packed:4",  "cublas_packed:5",  "cublas_packed:6",
    "cublas_packed:7",  "cublas_packed:8",  "cublas_packed:9",  "cublas_packed:10", "cublas_packed:11",
    "cublas_packed:12", "cublas_packed:13", "cublas_packed:14", "cublas_packed:15", "cublas_packed:16"};
constexpr std::array<std::string_view, kCublasAlgorithms - 1> kCublasEpilogue = {
    "cublas_epilogue:2",  "cublas_epilogue:3",  "cublas_epilogue:4",  "cublas_epilogue:5",
    "cublas_epilogue:6",  "cublas_epilogue:7",  "cublas_epilogue:8",  "cublas_epilogue:9",
    "cublas_epilogue:10", "cublas_epilogue:11", "cublas_epilogue:12", "cublas_epilogue:13",
    "cublas_epilogue:14", "cublas_epilogue:15", "cublas_epilogue:16"};

std::size_t NoWorkspace(const GemmProblem&, const DeviceTraits&) { return 0; }

// Ordered from fastest to slowest; the ladder (kernels/ladder/README.md) goes the other way.
constexpr CudaVariant<GemmProblem> kVariants[] = {
    {.name = "gemv",
     .summary = "few rows or columns: the large operand read once, k shared by warps and CTAs",
     .reproducible = true,
     .supports_dtype = IsFloat,
     .supports = GemmGemvSupports,
     .workspace_bytes = GemmGemvWorkspace,
     .launch = LaunchGemmGemv,
     .preferred = GemmGemvPreferred,
     .cost = GemmGemvCost},
    {.name = "wgmma_packed",
     .summary = "wgmma after operands were copied to aligned rows",
     .reproducible = true,
     .supports_dtype = IsHalf,
     .supports = GemmWgmmaPackedSupports,
     .workspace_bytes = GemmWgmmaPackedWorkspace,
     .launch = LaunchGemmWgmmaPacked,
     .available = IsHopper,
     .preferred =
         [](const GemmProblem& problem, const DeviceTraits& traits) {
           return GemmWgmmaPackedWritesFaster(problem, traits) ||
                  (!GemmLibraryDoes(problem, traits) && FillsTiles<128, 256>(problem, traits));
         },
     .cost =
         [](const GemmProblem& problem, const DeviceTraits& traits) {
           VariantCost cost = GemmWgmmaPackedCost(problem, traits);
           cost.arithmetic = TileCost<128, 256, 1, 1, 1>(problem, traits).arithmetic;
           return cost;
         }},
    {.name = "cublas_packed",
     .summary = "cublas after operands were copied to aligned rows (i8: with k innermost)",
     .reproducible = true,
     .supports_dtype = IsSmall,
     .supports = GemmCublasPackedSupports,
     .workspace_bytes = GemmCublasPackedWorkspace,
     .launch = LaunchGemmCublasPacked,
     .available = HasCublas,
     .preferred = GemmCublasPackedPreferred,
     .cost = GemmCublasPackedCost,
     .configurations = kCublasPacked},
    {.name = "cublas",
     .summary = "cuBLASLt, first choice of its heuristic",
     .reproducible = true,
     .supports_dtype = IsGemmCublasInput,
     .supports = GemmCublasSupports,
     .workspace_bytes = [](const GemmProblem&, const DeviceTraits&) { return kCublasWorkspaceBytes; },
     .launch = LaunchGemmCublas,
     .available = HasCublas,
     .preferred = GemmCublasPreferred,
     .configurations = kCublas},
    {.name = "wgmma",
     .summary = "Hopper's tensor cores fed by its tensor memory accelerator, 128 x 256 tiles, persistent",
     .reproducible = true,
     .supports_dtype = IsHalf,
     .supports = GemmWgmmaSupports,
     .workspace_bytes = NoWorkspace,
     .launch = LaunchGemmWgmma,
     .available = IsHopper,
     .preferred =
         [](const GemmProblem& problem, const DeviceTraits& traits) {
           return FillsTiles<128, 256>(problem, traits) || GemmWgmmaWritesFaster(problem, traits);
         },
     .cost = TileCost<128, 256, 1, 1, 1>,
     .step = 10},
    // This row comes after wgmma, which adds the bias to the sums in registers.
    {.name = "cublas_epilogue",
     .summary = "sums by cuBLASLt, then C, bias and activation in a kernel of ours",
     .reproducible = true,
     .supports_dtype = [](DType dtype) { return IsFloat(dtype) || IsComplex(dtype); },
     .supports = GemmCublasEpilogueSupports,
     .workspace_bytes = GemmCublasEpilogueWorkspace,
     .launch = LaunchGemmCublasEpilogue,
     .available = HasCublas,
     .preferred = [](const GemmProblem& problem,
                     const DeviceTraits& traits) { return !IsTiny(problem, traits); },
     .cost = GemmCublasEpilogueCost,
     .configurations = kCublasEpilogue},
    {.name = "mma",
     .summary = "tensor cores by mma.sync, fed by asynchronous copies and ldmatrix, 128 x 256 tiles",
     .reproducible = true,
     .supports_dtype = IsHalf,
     .supports = SupportsVectors,
     .workspace_bytes = NoWorkspace,
     .launch = LaunchGemmMma,
     // Also where tiles are half empty: 4096 x 96 x 4096 of bf16 takes 178 us on an H200, and 610 with
     // `unrolled`.
     .preferred = FillsTiles<128, 128>,
     .cost = TileCost<128, 256, 1, 1, 2>,
     .step = 9},
    {.name = "wide_loads",
     .summary = "register_tiled with 16-byte loads, tiles twice as deep, and two CTAs a multiprocessor",
     .reproducible = true,
     .supports_dtype = HasWideElements,
     .supports = SupportsVectors,
     .workspace_bytes = NoWorkspace,
     .launch = LaunchGemmWideLoads,
     .preferred = FillsTiles<128, 128>,
     .cost = TileCost<128, 128, 1, 2, 2>,
     .step = 6},
    {.name = "register_tiled",
     .summary = "128 x 128 x 8 tiles, 8 x 8 elements in the registers of a thread",
     .reproducible = true,
     .supports_dtype = IsIntegerOrFloat,
     .supports = SupportsAll,
     .workspace_bytes = NoWorkspace,
     .launch = LaunchGemmRegisterTiled,
     .preferred = FillsTiles<128, 128>,
     .cost = TileCost<128, 128, 1, 3, 60>,
     .step = 5},
    {.name = "unrolled",
     .summary = "shared with the loop over a tile unrolled",
     .reproducible = true,
     .supports_dtype = IsIntegerOrFloat,
     .supports = SupportsAll,
     .workspace_bytes = NoWorkspace,
     .launch = LaunchGemmUnrolled,
     .cost = TileCost<32, 32, 1, 11, 170>,
     .step = 3},
    {.name = "naive",
     .summary = "one thread an element, operands from global memory",
     .reproducible = true,
     .supports_dtype = IsGemmInput,
     .supports = SupportsAll,
     .workspace_bytes = NoWorkspace,
     .launch = LaunchGemmNaive,
     .cost = TileCost<8, 32, 8, 16, 430>,
     .step = 1},
};

}  // namespace

std::span<const CudaVariant<GemmProblem>> CudaGemmVariants() { return kVariants; }

CudaChoice<GemmProblem> Choose(const GemmProblem& problem, std::string_view variant,
                               const DeviceTraits& traits, const Operands&) {
  return ChooseInOrder(CudaGemmVariants(), problem, variant, traits);
}

}  // namespace warpline
