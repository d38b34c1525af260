// Variant `swizzled_packed` where the innermost axis stays innermost: rows move as they are, so there is
// nothing to transpose inside a tile and no shared memory is needed.
#include <algorithm>
#include <bit>

#include "kernels/launch_grids.h"
#include "kernels/transpose/transpose_kernels.h"

namespace warpline {
namespace {

constexpr int kThreads = 256;
constexpr int kUnroll = 4;  // vectors in flight a thread: 64 bytes, which covers the latency of HBM

// Rows of `length` vectors, in the order of the output; `rows` walks the axes of the output but the
// innermost, strides in vectors. `lanes`, a power of two up to kThreads, threads share a row.
struct RowWalk {
  std::int64_t length = 0, row_count = 0;
  std::int64_t column_tiles = 0;  // blocks along a row
  int lanes = 0;
  StridedCopy rows;
};

template <typename Vector>
__global__ void __launch_bounds__(kThreads)
    CopyRows(const Vector* __restrict__ in, Vector* __restrict__ out, const __grid_constant__ RowWalk walk,
             std::int64_t first_block) {
  const std::int64_t block = first_block + blockIdx.x;
  const std::int64_t column_tile = block % walk.column_tiles;
  const std::int64_t row = block / walk.column_tiles * (kThreads / walk.lanes) + threadIdx.x / walk.lanes;
  if (row >= walk.row_count) return;
  out += row * walk.length;
  std::int64_t index = row;
  for (int axis = walk.rows.rank - 1; axis >= 0; --axis) {
    const std::int64_t rest = index / walk.rows.dims[axis];
    in += (index - rest * walk.rows.dims[axis]) * walk.rows.in_strides[axis];
    index = rest;
  }
  const std::int64_t first = column_tile * walk.lanes * kUnroll + threadIdx.x % walk.lanes;
  Vector vectors[kUnroll];
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t column = first + i * walk.lanes;
    if (column < walk.length) vectors[i] = in[column];
  }
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t column = first + i * walk.lanes;
    if (column < walk.length) out[column] = vectors[i];
  }
}

// `per_vector` elements make a vector; it divides the innermost axis and every other stride.
template <typename Vector>
cudaError_t Launch(const CanonicalTranspose& transpose, std::int64_t per_vector, const void* in, void* out,
                   cudaStream_t stream) {
  RowWalk walk;
  walk.length = transpose.dims[transpose.rank - 1] / per_vector;
  for (int i = 0; i + 1 < transpose.rank; ++i) {
    const int axis = transpose.perm[i];
    walk.rows.Append(transpose.dims[axis], transpose.in_strides[axis] / per_vector, 0);
  }
  walk.row_count = walk.rows.Count();
  // Just enough lanes for kUnroll vectors each, but at least 8: then an access of a row has 128 bytes.
  const std::int64_t wanted = std::min(walk.length, std::max<std::int64_t>(8, CeilDiv(walk.length, kUnroll)));
  walk.lanes =
      static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>(wanted, kThreads))));
  walk.column_tiles = CeilDiv(walk.length, walk.lanes * kUnroll);
  const std::int64_t blocks = CeilDiv(walk.row_count, kThreads / walk.lanes) * walk.column_tiles;
  return LaunchGrids(blocks, [&](std::int64_t first, unsigned grid) {
    CopyRows<Vector><<<grid, kThreads, 0, stream>>>(static_cast<const Vector*>(in), static_cast<Vector*>(out),
                                                    walk, first);
  });
}

}  // namespace

cudaError_t LaunchRowCopy(const CanonicalTranspose& transpose, std::size_t element_bytes, const void* in,
                          void* out, cudaStream_t stream) {
  // The largest power of two that divides both bases, the bytes of a row and those between rows.
  std::uint64_t offsets = reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out) |
                          static_cast<std::uint64_t>(transpose.dims[transpose.rank - 1]) * element_bytes;
  for (int axis = 0; axis + 1 < transpose.rank; ++axis) {
    offsets |= static_cast<std::uint64_t>(transpose.in_strides[axis]) * element_bytes;
  }
  const std::uint64_t bytes = std::min<std::uint64_t>(16, offsets & -offsets);
  const auto per_vector = static_cast<std::int64_t>(bytes / element_bytes);
  switch (bytes) {
    case 16:
      return Launch<uint4>(transpose, per_vector, in, out, stream);
    case 8:
      return Launch<std::uint64_t>(transpose, per_vector, in, out, stream);
    case 4:
      return Launch<std::uint32_t>(transpose, per_vector, in, out, stream);
    case 2:
      return Launch<std::uint16_t>(transpose, per_vector, in, out, stream);
    default:
      return Launch<std::uint8_t>(transpose, per_vector, in, out, stream);
  }
}

}  // namespace warpline
