#include "kernels/gemm/tensor_map.h"

namespace warpline {
namespace {

// Finds the function in the installed driver. If the program linked to it, it would not start without a
// driver.
decltype(&cuTensorMapEncodeTiled) FindEncoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  constexpr unsigned kVersion = 12000;  // the first driver version with this function
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kVersion,
                                                             cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

}  // namespace

cudaError_t MakeTensorMap(const MatrixBoxes& boxes, CUtensorMap* map) {
  static const auto encode = FindEncoder();
  if (encode == nullptr) return cudaErrorNotSupported;
  const auto u64 = [](std::int64_t value) { return static_cast<cuuint64_t>(value); };
  const cuuint64_t dims[] = {u64(boxes.columns), u64(boxes.rows), u64(boxes.count)};
  const cuuint64_t row_bytes = u64(boxes.ld) * SizeOf(boxes.dtype);
  const cuuint64_t strides[] = {row_bytes, row_bytes * u64(boxes.rows)};
  const cuuint32_t box[] = {MatrixBoxes::kColumns, static_cast<cuuint32_t>(boxes.box_rows), 1};
  const cuuint32_t steps[] = {1, 1, 1};
  const auto type =
      boxes.dtype == DType::kBF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  // Returns an error for sizes that the unit does not support.
  const CUresult result = encode(map, type, 3, const_cast<void*>(boxes.data), dims, strides, box, steps,
                                 CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorNotSupported;
}

}  // namespace warpline
