// The variant tables of the CUDA backend. It uses only plain CUDA and our own headers, because nvcc reads it
// too.
#ifndef WARPLINE_KERNELS_CUDA_VARIANTS_H_
#define WARPLINE_KERNELS_CUDA_VARIANTS_H_

#include <cuda_runtime_api.h>

#include <span>

#include "kernels/variant.h"

namespace warpline {

class CublasLt;     // kernels/gemm/cublaslt.h
struct KernelPlan;  // kernels/cuda_choice.h

// Everything that a launcher may use, apart from its operands.
struct CudaContext {
  DeviceTraits traits;
  const CublasLt* cublaslt = nullptr;  // null: the library was not found
  // The plan of this launch, made by Choose for the same problem, row and alignments. Null: the launcher
  // makes one.
  const KernelPlan* plan = nullptr;
  int configuration = 0;  // how to run the row: see ConfigurationNamed
};

// Launchers enqueue work on `stream` and return. They never synchronise or allocate device memory, and they
// may be captured. cudaErrorNotSupported means that this row cannot run this problem, or not at these
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

// Returns the table for a type of problem.
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
