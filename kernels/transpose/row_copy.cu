// Variant `swizzled_packed` where the innermost axis stays innermost: rows move as they are, so there is
// nothing to transpose inside a tile and no shared memory is needed.
//
// Limit: device memory, for rows of a few sectors or more.
#include <algorithm>
#include <bit>

#include "kernels/fast_divisor.h"
#include "kernels/launch_grids.h"
#include "kernels/transpose/kernels.h"
#include "kernels/transpose/tile_walk.h"

namespace warpline {
namespace {

constexpr int kThreads = 256;
constexpr int kUnroll = 4;  // vectors in flight a thread: 64 bytes, which covers the latency of HBM

// Rows of `length` vectors, in the order of the output; the axes walk over them, the fastest first, strides
// in vectors. 2^lanes_log2 threads share a row, in 2^passes_log2 passes each; so a thread moves that many
// vectors of each of kUnroll / 2^passes_log2 rows.
struct RowWalk {
  std::int64_t length = 0, row_count = 0;
  std::int64_t column_tiles = 0;  // blocks along a row
  int lanes_log2 = 0, passes_log2 = 0;
  bool small = false;  // 32-bit divisions are enough
  int rank = 0;
  FastDivisor column_tiles_divisor, divisors[kMaxRank];
  std::int64_t dims[kMaxRank] = {}, strides[kMaxRank] = {};
};

__device__ std::int64_t Divide(std::int64_t& index, std::int64_t divisor, const FastDivisor& fast,
                               bool small) {
  if (!small) return TakeRemainder(index, divisor);
  auto small_index = static_cast<std::uint32_t>(index);
  const std::uint32_t remainder = TakeRemainder(small_index, fast);
  index = small_index;
  return remainder;
}

template <typename Vector>
__global__ void __launch_bounds__(kThreads)
    CopyRows(const Vector* __restrict__ in, Vector* __restrict__ out, const __grid_constant__ RowWalk walk,
             std::int64_t first_block) {
  std::int64_t row_tile = first_block + blockIdx.x;
  const std::int64_t column_tile = Divide(row_tile, walk.column_tiles, walk.column_tiles_divisor, walk.small);
  const int groups = kThreads >> walk.lanes_log2;
  const std::int64_t first_row =
      row_tile * (groups * (kUnroll >> walk.passes_log2)) + (threadIdx.x >> walk.lanes_log2);
  const int lane = static_cast<int>(threadIdx.x) & ((1 << walk.lanes_log2) - 1);
  const std::int64_t first_column = (column_tile << (walk.lanes_log2 + walk.passes_log2)) + lane;
  Vector vectors[kUnroll];
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t row = first_row + (i >> walk.passes_log2) * groups;
    const std::int64_t column = first_column + ((i & ((1 << walk.passes_log2) - 1)) << walk.lanes_log2);
    if (row >= walk.row_count || column >= walk.length) continue;
    std::int64_t from = column, index = row;
    for (int axis = 0; axis < walk.rank; ++axis) {
      from += Divide(index, walk.dims[axis], walk.divisors[axis], walk.small) * walk.strides[axis];
    }
    vectors[i] = in[from];
  }
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t row = first_row + (i >> walk.passes_log2) * groups;
    const std::int64_t column = first_column + ((i & ((1 << walk.passes_log2) - 1)) << walk.lanes_log2);
    if (row < walk.row_count && column < walk.length) out[row * walk.length + column] = vectors[i];
  }
}

int Log2(std::int64_t power) { return std::countr_zero(static_cast<std::uint64_t>(power)); }

std::int64_t PowerUp(std::int64_t size) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size)));
}

template <typename Vector>
cudaError_t Launch(const CanonicalTranspose& transpose, const void* in, void* out, cudaStream_t stream) {
  RowWalk walk;
  walk.length = transpose.dims[transpose.rank - 1];
  walk.row_count = 1;
  for (int i = transpose.rank - 2; i >= 0; --i) {
    const int axis = transpose.perm[i];
    walk.dims[walk.rank] = transpose.dims[axis];
    walk.strides[walk.rank] = transpose.in_strides[axis];
    walk.row_count *= transpose.dims[axis];
    ++walk.rank;
  }
  const std::int64_t lanes = std::min<std::int64_t>(PowerUp(walk.length), 32);
  const std::int64_t passes = std::min<std::int64_t>(PowerUp(CeilDiv(walk.length, lanes)), kUnroll);
  walk.lanes_log2 = Log2(lanes);
  walk.passes_log2 = Log2(passes);
  walk.column_tiles = CeilDiv(walk.length, lanes * passes);
  const std::int64_t blocks =
      CeilDiv(walk.row_count, kThreads / lanes * (kUnroll / passes)) * walk.column_tiles;
  walk.small = walk.row_count < FastDivisor::kMax && blocks < FastDivisor::kMax;
  if (walk.small) {
    walk.column_tiles_divisor = FastDivisor(walk.column_tiles);
    for (int i = 0; i < walk.rank; ++i) walk.divisors[i] = FastDivisor(walk.dims[i]);
  }
  return LaunchGrids(blocks, [&](std::int64_t first, unsigned grid) {
    CopyRows<Vector><<<grid, kThreads, 0, stream>>>(static_cast<const Vector*>(in), static_cast<Vector*>(out),
                                                    walk, first);
  });
}

}  // namespace

cudaError_t LaunchRowCopy(const CanonicalTranspose& transpose, std::size_t element_bytes, const void* in,
                          void* out, cudaStream_t stream) {
  switch (element_bytes) {
    case 4:
      return Launch<std::uint32_t>(transpose, in, out, stream);
    case 8:
      return Launch<std::uint64_t>(transpose, in, out, stream);
    case 16:
      return Launch<uint4>(transpose, in, out, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
