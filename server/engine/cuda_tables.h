// From a problem's type to its variant table.
#ifndef WARPLINE_SERVER_ENGINE_CUDA_TABLES_H_
#define WARPLINE_SERVER_ENGINE_CUDA_TABLES_H_

#include <span>

#include "kernels/cuda_variants.h"

namespace warpline {

inline std::span<const CudaVariant<TransposeProblem>> CudaTable(const TransposeProblem&) {
  return CudaTransposeVariants();
}
inline std::span<const CudaVariant<GemmProblem>> CudaTable(const GemmProblem&) { return CudaGemmVariants(); }
inline std::span<const CudaVariant<ReduceProblem>> CudaTable(const ReduceProblem&) {
  return CudaReduceVariants();
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_ENGINE_CUDA_TABLES_H_
