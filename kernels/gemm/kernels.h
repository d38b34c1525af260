// Launchers of the matrix products.
#ifndef WARPLINE_KERNELS_GEMM_KERNELS_H_
#define WARPLINE_KERNELS_GEMM_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda_variants.h"

namespace warpline {

// The workspace that cuBLAS requests on Hopper. With less it does not use its split-k algorithms.
inline constexpr std::size_t kCublasWorkspaceBytes = std::size_t{32} << 20;

// The number of algorithms that the heuristic is asked for: the variant `cublas` and its configurations.
inline constexpr int kCublasAlgorithms = 16;

bool GemmGemvSupports(const GemmProblem& problem, const DeviceTraits& traits);
bool GemmGemvPreferred(const GemmProblem& problem, const DeviceTraits& traits);
std::size_t GemmGemvWorkspace(const GemmProblem& problem, const DeviceTraits& traits);
VariantCost GemmGemvCost(const GemmProblem& problem, const DeviceTraits& traits);

// The maximum number of library calls in a graph for the matrices of a batch.
inline constexpr std::int64_t kMaxCublasLaunches = 16;

// The types that cuBLASLt supports; 8-bit types only with 32-bit results.
constexpr bool IsGemmCublasInput(DType dtype) {
  return dtype == DType::kI8 || IsFloat(dtype) || IsComplex(dtype);
}
// True if one call of cuBLASLt computes what the API promises for such matrices, C, bias and activation. It
// does not say whether cuBLASLt can handle the batch, or supports the problem at all.
bool GemmCublasFuses(const GemmProblem& problem);
// True if a kernel of ours should add the bias of a tf32 product. cuBLASLt adds it slowly if rows of D are
// not aligned (docs/benchmarks/history.md#2026-11-26-odd-products).
bool GemmCublasAddsBiasSlowly(const GemmProblem& problem);
bool GemmCublasSupports(const GemmProblem& problem, const DeviceTraits& traits);
bool GemmCublasPreferred(const GemmProblem& problem, const DeviceTraits& traits);

bool GemmCublasPackedSupports(const GemmProblem& problem, const DeviceTraits& traits);
// True if the copies pay off, by an estimate.
bool GemmCublasPackedPreferred(const GemmProblem& problem, const DeviceTraits& traits);
std::size_t GemmCublasPackedWorkspace(const GemmProblem& problem, const DeviceTraits& traits);
VariantCost GemmCublasPackedCost(const GemmProblem& problem, const DeviceTraits& traits);

bool GemmCublasEpilogueSupports(const GemmProblem& problem, const DeviceTraits& traits);
std::size_t GemmCublasEpilogueWorkspace(const GemmProblem& problem, const DeviceTraits& traits);
VariantCost GemmCublasEpilogueCost(const GemmProblem& problem, const DeviceTraits& traits);

// These functions treat the three variants above as one. GemmLibraryDoes: true if one of them supports the
// problem. GemmLibraryWritesSlowly: true if they write such a D slowly (16-bit elements, unaligned rows).
// GemmLibrarySeconds: the estimated seconds that they then take, or would take if one supported the problem.
bool GemmLibraryDoes(const GemmProblem& problem, const DeviceTraits& traits);
bool GemmLibraryWritesSlowly(const GemmProblem& problem, const DeviceTraits& traits);
double GemmLibrarySeconds(const GemmProblem& problem, const DeviceTraits& traits);

// True if the row strides of A and B are multiples of 16 bytes.
inline bool AreGemmRowsAligned(const GemmProblem& problem) {
  const auto vector = static_cast<std::int64_t>(16 / SizeOf(problem.dtype));
  return problem.lda % vector == 0 && problem.ldb % vector == 0;
}

bool GemmWgmmaSupports(const GemmProblem& problem, const DeviceTraits& traits);
// For a D that the library writes slowly: the estimated seconds of wgmma, and whether it is faster.
double GemmWgmmaSeconds(const GemmProblem& problem, const DeviceTraits& traits);
bool GemmWgmmaWritesFaster(const GemmProblem& problem, const DeviceTraits& traits);

bool GemmWgmmaPackedSupports(const GemmProblem& problem, const DeviceTraits& traits);
// Same, including the copies.
bool GemmWgmmaPackedWritesFaster(const GemmProblem& problem, const DeviceTraits& traits);
std::size_t GemmWgmmaPackedWorkspace(const GemmProblem& problem, const DeviceTraits& traits);
VariantCost GemmWgmmaPackedCost(const GemmProblem& problem, const DeviceTraits& traits);

// These launchers need only the alignment of an element.
CudaLaunch<GemmProblem> LaunchGemmNaive;
CudaLaunch<GemmProblem> LaunchGemmUnrolled;
CudaLaunch<GemmProblem> LaunchGemmRegisterTiled;
// These launchers need A and B aligned to 16 bytes, and AreGemmRowsAligned.
CudaLaunch<GemmProblem> LaunchGemmWideLoads;
CudaLaunch<GemmProblem> LaunchGemmMma;
CudaLaunch<GemmProblem> LaunchGemmWgmma;
CudaLaunch<GemmProblem> LaunchGemmWgmmaPacked;  // only for operands that it does not copy
CudaLaunch<GemmProblem> LaunchGemmGemv;
CudaLaunch<GemmProblem> LaunchGemmCublas;
CudaLaunch<GemmProblem> LaunchGemmCublasPacked;
CudaLaunch<GemmProblem> LaunchGemmCublasEpilogue;

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_KERNELS_H_
