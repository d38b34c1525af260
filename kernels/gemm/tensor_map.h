// Descriptions of matrices for the tensor memory accelerator.
#ifndef WARPLINE_KERNELS_GEMM_TENSOR_MAP_H_
#define WARPLINE_KERNELS_GEMM_TENSOR_MAP_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/dtype.h"

namespace warpline {

// `count` contiguous matrices of f16 or bf16, with `rows` rows of `columns` elements each, ld elements apart.
// The address and row stride must be multiples of 16 bytes. Loads take boxes of 64 columns and box_rows rows
// of one matrix, with the 128-byte swizzle. Elements beyond the matrix are loaded as zeros.
struct MatrixBoxes {
  static constexpr int kColumns = 64;

  DType dtype = DType::kF16;
  const void* data = nullptr;
  std::int64_t columns = 0, rows = 0, ld = 0, count = 0;
  int box_rows = 0;
};

cudaError_t MakeTensorMap(const MatrixBoxes& boxes, CUtensorMap* map);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_TENSOR_MAP_H_
