// Variant `tiles`: a batch of 2-D transpositions between x, the innermost axis of the input, and y, the
// innermost axis of the output. Global and shared memory are both accessed in 16-byte vectors without bank
// conflicts. In between, the elements are transposed in registers.
//
// Limit: device memory, for sides of at least half a tile that are multiples of 16 bytes. Other files handle
// the rest: odd sides and sides of several axes (odd_tiles.cu), pixels with few channels (channels.cu) or any
// number (channel_words.cu), small matrices (small_blocks.cu), short axes (packed_box.cu).
#include "kernels/allow_shared_bytes.h"
#include "kernels/launch_grids.h"
#include "kernels/transpose/kernels.h"
#include "kernels/transpose/micro_transpose.h"
#include "kernels/transpose/swizzle.h"
#include "kernels/transpose/tile_walk.h"

namespace warpline {
namespace {

// One CTA moves one tile of kTile x kTile elements; a thread loads one micro-tile of it. The compiler must
// know that the walk has unit strides, so walk.in_stride_x and walk.out_stride_y are not used.
template <typename T, int kSideOfTile>
__global__ void __launch_bounds__(TransposeTile<sizeof(T), kSideOfTile>::kThreads)
    TransposeTiles(const T* __restrict__ in, T* __restrict__ out, const __grid_constant__ TileWalk walk,
                   std::int64_t first_tile) {
  using Tile = TransposeTile<sizeof(T), kSideOfTile>;
  constexpr int kVector = Tile::kVector, kSide = Tile::kSide, kTile = Tile::kTile;
  extern __shared__ Chunk tile[];

  const TileOrigin origin = LocateTileInBands(walk, first_tile + blockIdx.x, kTile, kTile);
  const std::int64_t x0 = origin.x, y0 = origin.y;
  in += origin.in;
  out += origin.out;
  // Neighbouring lanes access neighbouring chunks of a row: of the input here, and of the output below.
  const int lane = threadIdx.x % kSide;
  const int group = threadIdx.x / kSide;
  {
    const std::int64_t x = x0 + lane * kVector, y = y0 + group * kVector;
    Chunk loaded[kVector], transposed[kVector];
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      loaded[j] = {};
      if (x < walk.nx && y + j < walk.ny) {
        loaded[j] = *reinterpret_cast<const Chunk*>(in + (y + j) * walk.in_stride_y + x);
      }
    }
    TransposeMicroTile<sizeof(T)>(loaded, transposed);
#pragma unroll
    for (int i = 0; i < kVector; ++i) tile[Tile::ChunkIndex(lane * kVector + i, group)] = transposed[i];
  }
  __syncthreads();

  const std::int64_t y = y0 + lane * kVector;
#pragma unroll
  for (int pass = 0; pass < kVector; ++pass) {
    const int row = pass * kSide + group;
    const std::int64_t x = x0 + row;
    if (x < walk.nx && y < walk.ny) {
      *reinterpret_cast<Chunk*>(out + x * walk.out_stride_x + y) = tile[Tile::ChunkIndex(row, lane)];
    }
  }
}

template <typename T, int kSideOfTile = 16>
cudaError_t Launch(TileWalk walk, const void* in, void* out, cudaStream_t stream) {
  using Tile = TransposeTile<sizeof(T), kSideOfTile>;
  constexpr int kSharedBytesWithoutAsking = 48 << 10;
  if constexpr (Tile::kSharedBytes > kSharedBytesWithoutAsking) {
    const cudaError_t error = AllowSharedBytes(&TransposeTiles<T, kSideOfTile>, Tile::kSharedBytes);
    if (error != cudaSuccess) return error;
  }
  walk.CutInto(Tile::kTile, Tile::kTile);
  return LaunchGrids(walk.Tiles(), [&](std::int64_t first, unsigned grid) {
    TransposeTiles<T, kSideOfTile><<<grid, Tile::kThreads, Tile::kSharedBytes, stream>>>(
        static_cast<const T*>(in), static_cast<T*>(out), walk, first);
  });
}

using LargeTile = TransposeTile<1>;
using SmallTile = TransposeTile<1, 8>;

// Returns whether a multiprocessor has shared memory for two large tiles of bytes. Graphics GPUs have only
// 100 KiB.
bool HoldsTwoLargeTiles(const DeviceTraits& traits) {
  const int capability = traits.compute_capability;
  return capability != 86 && capability != 89 && capability < 120;
}

// Returns whether the large tiles of bytes pay off. Each multiprocessor must have several of them, two at a
// time. The tiles at the ends must not be much emptier than small ones would be.
bool SuitLargeTiles(TileWalk walk, const DeviceTraits& traits) {
  constexpr std::int64_t kMinTilesEach = 4;
  constexpr double kMaxArea = 1.05;
  walk.CutInto(SmallTile::kTile, SmallTile::kTile);
  const auto small = static_cast<double>(walk.Tiles());
  walk.CutInto(LargeTile::kTile, LargeTile::kTile);
  return HoldsTwoLargeTiles(traits) && walk.Tiles() >= kMinTilesEach * traits.multiprocessors &&
         4 * static_cast<double>(walk.Tiles()) <= kMaxArea * small;
}

}  // namespace

cudaError_t LaunchTileTranspose(const CanonicalTranspose& transpose, std::size_t element_bytes,
                                const DeviceTraits& traits, const void* in, void* out, cudaStream_t stream) {
  const TileWalk walk = MakeTileWalk(transpose);
  switch (element_bytes) {
    case 1:
      return SuitLargeTiles(walk, traits) ? Launch<std::uint8_t, LargeTile::kSide>(walk, in, out, stream)
                                          : Launch<std::uint8_t, SmallTile::kSide>(walk, in, out, stream);
    case 2:
      return Launch<std::uint16_t>(walk, in, out, stream);
    case 4:
      return Launch<std::uint32_t>(walk, in, out, stream);
    case 8:
      return Launch<std::uint64_t>(walk, in, out, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
