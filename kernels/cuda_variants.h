// The variant tables of the CUDA backend. Plain CUDA and our own headers only: read by nvcc too.
#ifndef WARPLINE_KERNELS_CUDA_VARIANTS_H_
#define WARPLINE_KERNELS_CUDA_VARIANTS_H_

#include <cuda_runtime_api.h>

#include <span>

#include "kernels/variant.h"

namespace warpline {

class CublasLt;     // kernels/gemm/cublaslt.h
struct KernelPlan;  // kernels/cuda_choice.h

// Everything that a launcher may use besides its operands.
struct CudaContext {
  DeviceTraits traits;
  const CublasLt* cublaslt = nullptr;  // null: the library was not found
  // The plan of this launch, made by Choose for the same problem, row and alignments. Null: the launcher
  // makes one.
  const KernelPlan* plan = nullptr;
  int configuration = 0;  // which way to run the row: see ConfigurationNamed
};

// Launchers enqueue on `stream` and return; they never synchronise, never allocate device memory, and may be
// captured. cudaErrorNotSupported means that this row cannot run this problem after all, or not at these
// addresses.
template <typename ProblemT>
using CudaLaunch = cudaError_t(const ProblemT&, const Operands&, const CudaContext&, cudaStream_t stream);
template <typename ProblemT>
using CudaVariant = Variant<ProblemT, CudaLaunch<ProblemT>>;

std::span<const CudaVariant<TransposeProblem>> CudaTransposeVariants();
std::span<const CudaVariant<GemmProblem>> CudaGemmVariants();
std::span<const CudaVariant<ReduceProblem>> CudaReduceVariants();
std::span<const CudaVariant<MapProblem>> CudaMapVariants();
std::span<const CudaVariant<TakeProblem>> CudaTakeVariants();
std::span<const CudaVariant<PutProblem>> CudaPutVariants();
std::span<const CudaVariant<ScanProblem>> CudaScanVariants();
std::span<const CudaVariant<SortProblem>> CudaSortVariants();
std::span<const CudaVariant<SearchProblem>> CudaSearchVariants();
std::span<const CudaVariant<CompressProblem>> CudaCompressVariants();

// From a problem's type to its table.
inline auto CudaTable(const TransposeProblem&) { return CudaTransposeVariants(); }
inline auto CudaTable(const GemmProblem&) { return CudaGemmVariants(); }
inline auto CudaTable(const ReduceProblem&) { return CudaReduceVariants(); }
inline auto CudaTable(const MapProblem&) { return CudaMapVariants(); }
inline auto CudaTable(const TakeProblem&) { return CudaTakeVariants(); }
inline auto CudaTable(const PutProblem&) { return CudaPutVariants(); }
inline auto CudaTable(const ScanProblem&) { return CudaScanVariants(); }
inline auto CudaTable(const SortProblem&) { return CudaSortVariants(); }
inline auto CudaTable(const SearchProblem&) { return CudaSearchVariants(); }
inline auto CudaTable(const CompressProblem&) { return CudaCompressVariants(); }

}  // namespace warpline

#endif  // WARPLINE_KERNELS_CUDA_VARIANTS_H_
