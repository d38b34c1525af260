// Copies operands to aligned rows. A thread copies single elements, so any alignment works. Neighbouring
// threads copy neighbouring elements, and each thread has 16 loads in flight. Limit: memory.
#include <cstdint>

#include "kernels/ceil_div.h"
#include "kernels/gemm/stages.h"
#include "kernels/launch_grids.h"

namespace warpline {
namespace {

constexpr int kThreads = 256, kWarp = 32, kWarps = kThreads / kWarp;
constexpr int kItems = 16;  // loads in flight per thread: 32 KiB per multiprocessor for 16-bit elements
constexpr int kRowColumns = kWarp * kItems;

// A warp copies kRowColumns columns of a row.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    PackRows(const __grid_constant__ PackedOperand operand, std::int64_t tiles, std::int64_t first_block) {
  const std::int64_t block = first_block + blockIdx.x;
  const std::int64_t to_row = block / tiles * kWarps + threadIdx.x / kWarp;  // counted over all matrices
  const std::int64_t column0 = block % tiles * kRowColumns + threadIdx.x % kWarp;
  if (to_row >= operand.count * operand.to_rows) return;
  const std::int64_t matrix = to_row / operand.to_rows, row = to_row - matrix * operand.to_rows;
  const T* from = static_cast<const T*>(operand.from) + (matrix * operand.rows + row) * operand.ld;
  T* to = static_cast<T*>(operand.to) + to_row * operand.to_columns;
  const std::int64_t columns = row < operand.rows ? operand.columns : 0;
  T values[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const std::int64_t column = column0 + i * kWarp;
    values[i] = column < columns ? from[column] : T{0};
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const std::int64_t column = column0 + i * kWarp;
    if (column < operand.to_columns) to[column] = values[i];
  }
}

constexpr int kTile = 64;
constexpr int kPitch = kTile + 4;  // bytes, which are 17 words: rows of a column lie in different banks

// A CTA transposes a tile of bytes through shared memory. Rows and columns are those of `from`.
__global__ void __launch_bounds__(kThreads)
    PackTransposed(const __grid_constant__ PackedOperand operand, std::int64_t tiles_rows,
                   std::int64_t tiles_columns, std::int64_t first_block) {
  __shared__ std::uint8_t tile[kTile][kPitch];
  const std::int64_t block = first_block + blockIdx.x;
  const std::int64_t row0 = block % tiles_rows * kTile;
  const std::int64_t column0 = block / tiles_rows % tiles_columns * kTile;
  const std::int64_t matrix = block / tiles_rows / tiles_columns;
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const auto* from = static_cast<const std::uint8_t*>(operand.from) + matrix * operand.rows * operand.ld;
  auto* to = static_cast<std::uint8_t*>(operand.to) + matrix * operand.to_rows * operand.to_columns;
  constexpr int kRowsEach = kTile / kWarps, kColumnsEach = kTile / kWarp;
  std::uint8_t values[kRowsEach][kColumnsEach];
#pragma unroll
  for (int i = 0; i < kRowsEach; ++i) {
#pragma unroll
    for (int j = 0; j < kColumnsEach; ++j) {
      const std::int64_t row = row0 + i * kWarps + warp, column = column0 + j * kWarp + lane;
      const bool is_inside = row < operand.rows && column < operand.columns;
      values[i][j] = is_inside ? from[row * operand.ld + column] : std::uint8_t{0};
    }
  }
#pragma unroll
  for (int i = 0; i < kRowsEach; ++i) {
#pragma unroll
    for (int j = 0; j < kColumnsEach; ++j) tile[i * kWarps + warp][j * kWarp + lane] = values[i][j];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kRowsEach; ++i) {
#pragma unroll
    for (int j = 0; j < kColumnsEach; ++j) {
      const int column = i * kWarps + warp, row = j * kWarp + lane;
      if (column0 + column < operand.to_rows && row0 + row < operand.to_columns) {
        to[(column0 + column) * operand.to_columns + row0 + row] = tile[row][column];
      }
    }
  }
}

template <typename T>
cudaError_t LaunchPackRows(const PackedOperand& operand, cudaStream_t stream) {
  const std::int64_t tiles = CeilDiv(operand.to_columns, kRowColumns);
  const std::int64_t blocks = tiles * CeilDiv(operand.count * operand.to_rows, kWarps);
  return LaunchGrids(blocks, [&](std::int64_t first, unsigned grid) {
    PackRows<T><<<grid, kThreads, 0, stream>>>(operand, tiles, first);
  });
}

}  // namespace

PackedOperand PackedA(const GemmProblem& problem, const GemmProblem& product, const void* from, void* to) {
  return {.from = from,
          .to = to,
          .dtype = problem.dtype,
          .count = product.batch.CountAlong(product.batch.a),
          .rows = problem.trans_a ? problem.k : problem.m,
          .columns = problem.trans_a ? problem.m : problem.k,
          .ld = problem.lda,
          .to_rows = product.trans_a ? product.k : product.m,
          .to_columns = product.lda,
          .transpose = problem.trans_a != product.trans_a};
}

PackedOperand PackedB(const GemmProblem& problem, const GemmProblem& product, const void* from, void* to) {
  return {.from = from,
          .to = to,
          .dtype = problem.dtype,
          .count = product.batch.CountAlong(product.batch.b),
          .rows = problem.trans_b ? problem.n : problem.k,
          .columns = problem.trans_b ? problem.k : problem.n,
          .ld = problem.ldb,
          .to_rows = product.trans_b ? product.n : product.k,
          .to_columns = product.ldb,
          .transpose = problem.trans_b != product.trans_b};
}

cudaError_t PackOperand(const PackedOperand& operand, cudaStream_t stream) {
  if (!operand.transpose) {
    return SizeOf(operand.dtype) == 1 ? LaunchPackRows<std::uint8_t>(operand, stream)
                                      : LaunchPackRows<std::uint16_t>(operand, stream);
  }
  const std::int64_t tiles_rows = CeilDiv(operand.to_columns, kTile);
  const std::int64_t tiles_columns = CeilDiv(operand.to_rows, kTile);
  return LaunchGrids(tiles_rows * tiles_columns * operand.count, [&](std::int64_t first, unsigned grid) {
    PackTransposed<<<grid, kThreads, 0, stream>>>(operand, tiles_rows, tiles_columns, first);
  });
}

}  // namespace warpline
