// What stands before and after a product of cuBLASLt that does not do all of a problem itself.
#ifndef WARPLINE_KERNELS_GEMM_STAGES_H_
#define WARPLINE_KERNELS_GEMM_STAGES_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/variant.h"

namespace warpline {

// A copy of `count` matrices, one after the other in memory, whose rows are dense and whose ends are padded
// with zeros. Elements have 1 or 2 bytes; only those of 1 byte can be transposed.
struct PackedOperand {
  const void* from = nullptr;  // count x rows x columns, ld elements between rows
  void* to = nullptr;          // count x to_rows x to_columns, dense
  DType dtype = DType::kI8;
  std::int64_t count = 0, rows = 0, columns = 0, ld = 0;
  std::int64_t to_rows = 0, to_columns = 0;  // no less than those of `from`, transposed if `transpose`
  bool transpose = false;
};
cudaError_t PackOperand(const PackedOperand& operand, cudaStream_t stream);

// The sums of products, of the type that the product accumulates in (i32 for i8), one m x n matrix for each
// of D. `data` may be D itself where their types and layouts are the same.
struct GemmSums {
  const void* data = nullptr;
  std::int64_t ld = 0;      // elements between rows
  std::int64_t matrix = 0;  // elements between matrices
};
// Makes D of them: activation(alpha * sums + beta * C + bias). `operands` are those of the problem.
cudaError_t FinishGemm(const GemmProblem& problem, const Operands& operands, const GemmSums& sums,
                       cudaStream_t stream);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_STAGES_H_
