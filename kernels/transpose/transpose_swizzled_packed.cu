// Variant `swizzled_packed`, the tile kernel: a batch of 2-D transpositions between x, the innermost axis of
// the input, and y, the innermost axis of the output. Global and shared memory are both accessed in 16-byte
// vectors free of bank conflicts: the elements change places in registers, on the way between the two.
//
// Limit: device memory. Where an axis or an address is no multiple of 16 bytes, that side of global memory is
// accessed in single elements.
#include <cstring>

#include "kernels/launch_grids.h"
#include "kernels/transpose/micro_transpose.h"
#include "kernels/transpose/swizzle.h"
#include "kernels/transpose/tile_walk.h"
#include "kernels/transpose/transpose_kernels.h"

namespace warpline {
namespace {

// Elements [0, count) of a row of the input, the others unspecified; count may be anything. kAligned: `row`
// is a multiple of 16 bytes and so is the row's end, so that a chunk is inside or outside as a whole.
template <bool kAligned, typename T>
__device__ Chunk LoadChunk(const T* row, std::int64_t count) {
  Chunk chunk = {};
  if constexpr (kAligned) {
    if (count > 0) chunk = *reinterpret_cast<const Chunk*>(row);
  } else {
    constexpr int kVector = kChunkBytes / sizeof(T);
    T elements[kVector] = {};
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      if (i < count) elements[i] = row[i];
    }
    memcpy(&chunk, elements, sizeof(chunk));
  }
  return chunk;
}

// One CTA moves one tile of kTile x kTile elements; a thread loads one micro-tile of it. The walk has unit
// strides, which the compiler must know: hence walk.in_stride_x and walk.out_stride_y do not occur.
template <typename T, bool kAlignedIn, bool kAlignedOut>
__global__ void __launch_bounds__(TransposeTile<sizeof(T)>::kThreads)
    TransposeTiles(const T* __restrict__ in, T* __restrict__ out, const __grid_constant__ TileWalk walk,
                   std::int64_t first_tile) {
  using Tile = TransposeTile<sizeof(T)>;
  constexpr int kVector = Tile::kVector, kSide = Tile::kSide, kTile = Tile::kTile;
  __shared__ Chunk tile[kTile * kSide];

  const TileOrigin origin = LocateTile(walk, first_tile + blockIdx.x, kTile, kTile);
  const std::int64_t x0 = origin.x, y0 = origin.y;
  in += origin.in;
  out += origin.out;
  // Neighbouring lanes take neighbouring chunks of a row, of the input here and of the output below.
  const int lane = threadIdx.x % kSide;
  const int group = threadIdx.x / kSide;
  {
    const std::int64_t x = x0 + lane * kVector, y = y0 + group * kVector;
    Chunk loaded[kVector], transposed[kVector];
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      loaded[j] = LoadChunk<kAlignedIn>(in + (y + j) * walk.in_stride_y + x,
                                        y + j < walk.ny ? walk.nx - x : std::int64_t{0});
    }
    TransposeMicroTile<sizeof(T)>(loaded, transposed);
#pragma unroll
    for (int i = 0; i < kVector; ++i) tile[Tile::ChunkIndex(lane * kVector + i, group)] = transposed[i];
  }
  __syncthreads();

  if constexpr (kAlignedOut) {
    const std::int64_t y = y0 + lane * kVector;
#pragma unroll
    for (int pass = 0; pass < kVector; ++pass) {
      const int row = pass * kSide + group;
      const std::int64_t x = x0 + row;
      if (x < walk.nx && y < walk.ny) {
        *reinterpret_cast<Chunk*>(out + x * walk.out_stride_x + y) = tile[Tile::ChunkIndex(row, lane)];
      }
    }
  } else {
    // Neighbouring lanes store neighbouring elements, so that a warp's stores fill whole sectors.
    const T* elements = reinterpret_cast<const T*>(tile);
#pragma unroll 8
    for (int e = threadIdx.x; e < kTile * kTile; e += Tile::kThreads) {
      const int row = e / kTile, column = e % kTile;
      const std::int64_t x = x0 + row, y = y0 + column;
      if (x < walk.nx && y < walk.ny) {
        out[x * walk.out_stride_x + y] =
            elements[Tile::ChunkIndex(row, column / kVector) * kVector + column % kVector];
      }
    }
  }
}

template <typename T>
cudaError_t Launch(TileWalk walk, const void* in, void* out, cudaStream_t stream) {
  using Tile = TransposeTile<sizeof(T)>;
  walk.CutInto(Tile::kTile, Tile::kTile);
  auto aligned = [](const void* base, std::int64_t row) {
    return reinterpret_cast<std::uintptr_t>(base) % kChunkBytes == 0 && row % Tile::kVector == 0;
  };
  bool aligned_in = aligned(in, walk.nx) && walk.in_stride_y % Tile::kVector == 0;
  for (int i = 0; i < walk.batch.rank; ++i) {
    aligned_in = aligned_in && walk.batch.in_strides[i] % Tile::kVector == 0;
  }
  // Every stride of the output is a multiple of ny: no need to look.
  const bool aligned_out = aligned(out, walk.ny);
  auto* kernel = aligned_in
                     ? (aligned_out ? &TransposeTiles<T, true, true> : &TransposeTiles<T, true, false>)
                     : (aligned_out ? &TransposeTiles<T, false, true> : &TransposeTiles<T, false, false>);
  return LaunchGrids(walk.Tiles(), [&](std::int64_t first, unsigned grid) {
    kernel<<<grid, Tile::kThreads, 0, stream>>>(static_cast<const T*>(in), static_cast<T*>(out), walk, first);
  });
}

}  // namespace

cudaError_t LaunchTileTranspose(const CanonicalTranspose& transpose, std::size_t element_bytes,
                                const void* in, void* out, cudaStream_t stream) {
  const TileWalk walk = MakeTileWalk(transpose);
  switch (element_bytes) {
    case 1:
      return Launch<std::uint8_t>(walk, in, out, stream);
    case 2:
      return Launch<std::uint16_t>(walk, in, out, stream);
    case 4:
      return Launch<std::uint32_t>(walk, in, out, stream);
    case 8:
      return Launch<std::uint64_t>(walk, in, out, stream);
    case 16:
      return Launch<uint4>(walk, in, out, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
