// The stages before and after a product, for kernels that do not handle a complete problem themselves.
#ifndef WARPLINE_KERNELS_GEMM_STAGES_H_
#define WARPLINE_KERNELS_GEMM_STAGES_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/variant.h"

namespace warpline {

// Limit of the data in the workspace. Problems that need more use other rows, even if slow, because the
// memory that a device reserves for work must not grow with every large request.
inline constexpr double kMaxStagedBytes = 1 << 30;
inline constexpr std::size_t kStagedAlignment = 256;

// Returns the row stride of packed 16-bit operands: whole 16-byte vectors, or whole 128-byte lines if that
// adds little. Tiles whose rows begin within lines took 1.4 times as long to load.
constexpr std::int64_t PackedRow(std::int64_t columns) {
  constexpr std::int64_t kVector = 8, kLine = 64, kMinLineColumns = 8 * kLine;
  const std::int64_t unit = columns >= kMinLineColumns ? kLine : kVector;
  return (columns + unit - 1) / unit * unit;
}

// A copy of `count` matrices that are contiguous in memory. The copy has dense rows, padded with zeros.
// Elements have 1 or 2 bytes; only those of 1 byte can be transposed.
struct PackedOperand {
  const void* from = nullptr;  // count x rows x columns, ld elements between rows
  void* to = nullptr;          // count x to_rows x to_columns, dense
  DType dtype = DType::kI8;
  std::int64_t count = 0, rows = 0, columns = 0, ld = 0;
  std::int64_t to_rows = 0, to_columns = 0;  // at least those of `from`, transposed if `transpose`
  bool transpose = false;
};
cudaError_t PackOperand(const PackedOperand& operand, cudaStream_t stream);

// Returns the copy from an operand of `problem` to that of `product`. These differ at most in the padding of
// rows and in k, and for i8 also in transpositions.
PackedOperand PackedA(const GemmProblem& problem, const GemmProblem& product, const void* from, void* to);
PackedOperand PackedB(const GemmProblem& problem, const GemmProblem& product, const void* from, void* to);

// Estimates the seconds that an H200's memory needs to move `bytes` bytes.
inline double TransferSeconds(double bytes) { return bytes / 3e12; }
inline constexpr double kLaunchSeconds = 2.5e-6;
// Estimates the seconds of a copy with a result of `bytes` bytes in `rows` rows of 16-bit elements. A warp
// copies up to 512 elements of one row.
inline double PackingSeconds(double bytes, std::int64_t rows) {
  constexpr double kRowSeconds = 0.4e-9;
  return kLaunchSeconds + TransferSeconds(2 * bytes) + kRowSeconds * static_cast<double>(rows);
}

// The sums of products, in the type that the product accumulates in (i32 for i8), with one m x n matrix for
// each matrix of D. `data` may be D itself if the types and layouts are equal.
struct GemmSums {
  const void* data = nullptr;
  std::int64_t ld = 0;      // elements between rows
  std::int64_t matrix = 0;  // elements between matrices
};
// Computes D from the sums: activation(alpha * sums + beta * C + bias). `operands` are those of the problem.
cudaError_t FinishGemm(const GemmProblem& problem, const Operands& operands, const GemmSums& sums,
                       cudaStream_t stream);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_STAGES_H_
