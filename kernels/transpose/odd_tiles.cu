// Variants `odd_tiles` and `joined_tiles`: tiles of matrices with unaligned rows. Global memory is accessed
// in aligned words of 4 bytes, or 8 bytes for 8-byte elements. For smaller elements, a shift over two
// neighbouring words makes an aligned word: after loads for unaligned rows of the input, and before stores
// for those of the output. In between, elements are transposed in registers, four rows of four bytes or two
// rows of two 16-bit elements at a time, and lie in padded rows in shared memory.
//
// If one axis would not fill a side of the tile, several axes do (joined_tiles.h), and tables give the
// offsets of rows.
//
// Each sector of the output is written completely by one CTA. When tiles shared the sectors at the ends of
// their rows, f32 took a quarter longer (docs/benchmarks/2026-11-23-h200-breadth.md).
//
// Limit: device memory.
#include <type_traits>

#include "kernels/launch_grids.h"
#include "kernels/transpose/joined_tiles.h"
#include "kernels/transpose/kernels.h"
#include "kernels/transpose/micro_transpose.h"
#include "kernels/transpose/swizzle.h"

namespace warpline {
namespace {

constexpr int kWarps = OddTile<4>::kThreads / OddTile<4>::kLanes;

template <int kBytes>
using OddWord = std::conditional_t<kBytes == 8, std::uint64_t, std::uint32_t>;

template <int kBytes>
using Element =
    std::conditional_t<kBytes == 1, std::uint8_t,
                       std::conditional_t<kBytes == 2, std::uint16_t,
                                          std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;

// Returns how many bytes an address is past a word boundary.
template <int kBytes>
__device__ std::uint32_t Skipped(const char* address) {
  if constexpr (kBytes >= 4) return 0;
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(address) % 4);
}

// Returns element y of row x.
template <int kBytes>
__device__ Element<kBytes>& ElementOf(OddWord<kBytes>* tile, int x, int y) {
  return reinterpret_cast<Element<kBytes>*>(tile + OddTile<kBytes>::Place(x) * OddTile<kBytes>::kPitch)[y];
}

// The offset of each row, in bytes: a multiple of a stride, or an entry of a table in shared memory. Offsets
// have 32 bits, because 64 bits would need twice the instructions.
struct RowStride {
  std::uint32_t stride;
  __device__ std::uint32_t operator()(int row) const { return static_cast<std::uint32_t>(row) * stride; }
};
struct RowTable {
  const std::uint32_t* offsets;
  __device__ std::uint32_t operator()(int row) const { return offsets[row]; }
};

// Loads the tile at `from` by words. It has `rows` rows of `row_bytes` bytes. Words at the ends of rows
// contain some bytes of their neighbours. `kFull`: the tile has all rows and columns.
template <int kBytes, bool kFull, typename RowOffset>
__device__ void LoadTile(const char* from, RowOffset row_offset, int row_bytes, int rows,
                         OddWord<kBytes>* tile) {
  using Tile = OddTile<kBytes>;
  using Word = OddWord<kBytes>;
  constexpr int kPer = Tile::kPerWord, kPieces = Tile::kPiecesX;
  constexpr int kGroups = Tile::kShareWords / kWarps + 1;  // kPer rows per warp each; the last in the halo
  constexpr int kPieceBytes = Tile::kLanes * Tile::kWordBytes;
  const int lane = static_cast<int>(threadIdx.x) % Tile::kLanes;
  const int warp = static_cast<int>(threadIdx.x) / Tile::kLanes;
  // Loads start at a word boundary. Rows begin `skipped` bytes after it.
  const std::uint32_t skipped = Skipped<kBytes>(from);
  const char* words = from - skipped;
  const auto row_of = [warp](int group, int i) { return (group * kWarps + warp) * kPer + i; };
  const auto begin_of = [&](int row) { return skipped + row_offset(row); };
  const auto load = [&](int row, int word, int piece) {
    const std::uint32_t begin = begin_of(row);
    const std::uint32_t aligned = kBytes < 4 ? begin & ~3u : begin;
    const int at = word * Tile::kWordBytes + piece * kPieceBytes;
    const bool inside =
        kFull ? row < Tile::kRows : row < rows && at < row_bytes + static_cast<int>(begin - aligned);
    return inside ? *reinterpret_cast<const Word*>(words + (aligned + static_cast<std::uint32_t>(at)))
                  : Word{0};
  };
  Word loaded[kGroups][kPieces][kPer];
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        loaded[group][piece][i] = load(row_of(group, i), lane, piece);
      }
    }
  }
  // The word after the last lane's words. Each lane holds this word for one row and piece.
  Word next = 0;
  if constexpr (kBytes < 4) {
    static_assert(kGroups * kPieces * kPer <= Tile::kLanes);
    const int row = row_of(lane / (kPer * kPieces), lane % kPer), piece = lane / kPer % kPieces;
    // In a full tile, that word is needed only if the row is not aligned.
    if (row < rows && begin_of(row) % 4 != 0) next = load(row, Tile::kLanes, piece);
  }
  Word* to = tile + lane * Tile::kPitch + warp;
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    if (group == kGroups - 1 && warp >= Tile::kHaloWords) break;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      Word column[kPer];
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
        column[i] = loaded[group][piece][i];
        if constexpr (kBytes < 4) {
          const Word after = __shfl_down_sync(0xffffffffu, column[i], 1);
          const Word last = __shfl_sync(0xffffffffu, next, (group * kPieces + piece) * kPer + i);
          // The hardware takes the shift modulo 32.
          column[i] = __funnelshift_r(column[i], lane == Tile::kLanes - 1 ? last : after,
                                      8 * begin_of(row_of(group, i)));
        }
      }
      TransposeWords<kBytes>(column);
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
        to[(piece * kPer + i) * Tile::kLanes * Tile::kPitch + group * kWarps] = column[i];
      }
    }
  }
}

// Same as LoadTile, but by elements: for the first and last tile if the input does not start or end on a word
// boundary.
template <int kBytes, typename RowOffset>
__device__ void LoadElements(const char* from, RowOffset row_offset, int columns, int rows,
                             OddWord<kBytes>* tile) {
  for (int i = static_cast<int>(threadIdx.x); i < columns * rows; i += OddTile<kBytes>::kThreads) {
    const int x = i % columns, y = i / columns;
    const char* row = from + row_offset(y);
    ElementOf<kBytes>(tile, x, y) = reinterpret_cast<const Element<kBytes>*>(row)[x];
  }
}

// Stores the tile's rows, which lie along x, at `to`. Each row starts at its first sector boundary. If a row
// of the output begins here (`first`), it starts at its first element instead. It ends at the corresponding
// position of the next tile.
template <int kBytes, bool kFull, typename RowOffset>
__device__ void StoreTile(OddWord<kBytes>* tile, int columns, int rows, bool first, RowOffset row_offset,
                          char* to) {
  using Tile = OddTile<kBytes>;
  using Word = OddWord<kBytes>;
  const int lane = static_cast<int>(threadIdx.x) % Tile::kLanes;
  const int warp = static_cast<int>(threadIdx.x) / Tile::kLanes;
  const auto low = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(to));
  const Word* from = tile + warp * Tile::kPitch + lane;
#pragma unroll
  for (int i = 0; i < Tile::kTileX / kWarps; ++i) {
    const int x = Tile::RowAt(i * kWarps) + warp * Tile::kPerWord;
    if (!kFull && x >= columns) continue;
    const std::uint32_t row = row_offset(x);
    const std::uint32_t begin = (0 - low - row) % Tile::kSectorBytes;
    // A row of words, starting with the word at the sector boundary.
    const char* words = reinterpret_cast<const char*>(from + i * kWarps * Tile::kPitch) +
                        begin / Tile::kWordBytes * Tile::kWordBytes;
#pragma unroll
    for (int piece = 0; piece < Tile::kPiecesY; ++piece) {
      const Word* word = reinterpret_cast<const Word*>(words) + piece * Tile::kLanes;
      Word value = word[0];
      if constexpr (kBytes < 4) value = __funnelshift_r(value, word[1], 8 * begin);
      const std::uint32_t at =
          begin + static_cast<std::uint32_t>((piece * Tile::kLanes + lane) * Tile::kWordBytes);
      if (kFull || static_cast<int>(at) + Tile::kWordBytes <= rows * kBytes) {
        *reinterpret_cast<Word*>(to + (row + at)) = value;
      } else {
        const int y = static_cast<int>(at) / kBytes;
        for (int k = y; k < min(rows, y + Tile::kPerWord); ++k) {
          reinterpret_cast<Element<kBytes>*>(to + row)[k] = ElementOf<kBytes>(tile, x, k);
        }
      }
    }
    if (!kFull && first && lane < rows && lane * kBytes < static_cast<int>(begin)) {
      reinterpret_cast<Element<kBytes>*>(to + row)[lane] = ElementOf<kBytes>(tile, x, lane);
    }
  }
}

// Returns whether words at the ends of a row of `bytes` bytes extend beyond the input, which is [in, end).
template <int kBytes>
__device__ bool ReachesOut(const char* row, int bytes, const char* in, const char* end) {
  if constexpr (kBytes >= 4) return false;
  const char* last = row + bytes + 3;
  return row - Skipped<kBytes>(row) < in || last - Skipped<kBytes>(last) > end;
}

// The numbers of input columns and rows that a CTA moves. `first`: true if rows of the output begin here.
struct TileSize {
  int columns, rows;
  bool first;
};

template <int kBytes>
__device__ TileSize SizeAt(const TileWalk& walk, const TileOrigin& origin) {
  using Tile = OddTile<kBytes>;
  return {.columns = static_cast<int>(min(std::int64_t{Tile::kTileX}, walk.nx - origin.x)),
          .rows = static_cast<int>(min(std::int64_t{Tile::kRows}, walk.ny - origin.y)),
          .first = origin.y == 0};
}

template <int kBytes>
__device__ bool IsFull(const TileSize& size) {
  return size.columns == OddTile<kBytes>::kTileX && size.rows == OddTile<kBytes>::kRows;
}

template <int kBytes, typename RowOffset>
__device__ void Load(const char* from, RowOffset row_offset, const TileSize& size, bool at_edge,
                     OddWord<kBytes>* tile) {
  const auto [columns, rows, first] = size;
  if (kBytes < 4 && at_edge) {
    LoadElements<kBytes>(from, row_offset, columns, rows, tile);
  } else if (IsFull<kBytes>(size)) {
    LoadTile<kBytes, true>(from, row_offset, columns * kBytes, rows, tile);
  } else {
    LoadTile<kBytes, false>(from, row_offset, columns * kBytes, rows, tile);
  }
}

template <int kBytes, typename RowOffset>
__device__ void Store(OddWord<kBytes>* tile, const TileSize& size, RowOffset row_offset, char* to) {
  const auto [columns, rows, first] = size;
  if (IsFull<kBytes>(size) && !first) {
    StoreTile<kBytes, true>(tile, columns, rows, false, row_offset, to);
  } else {
    StoreTile<kBytes, false>(tile, columns, rows, first, row_offset, to);
  }
}

template <int kBytes>
__global__ void __launch_bounds__(OddTile<kBytes>::kThreads, 4)
    TransposeOddTiles(const char* __restrict__ in, char* __restrict__ out, const char* end,
                      const __grid_constant__ TileWalk walk, std::int64_t first_tile) {
  using Tile = OddTile<kBytes>;
  __shared__ OddWord<kBytes> tile[Tile::kWords];
  const TileOrigin origin = LocateTileInBands(walk, first_tile + blockIdx.x, Tile::kTileX, Tile::kTileY);
  const TileSize size = SizeAt<kBytes>(walk, origin);
  {
    const RowStride in_row{static_cast<std::uint32_t>(walk.in_stride_y * kBytes)};
    const char* from = in + (origin.in + origin.y * walk.in_stride_y + origin.x) * kBytes;
    const bool at_edge = ReachesOut<kBytes>(from, size.columns * kBytes, in, end) ||
                         ReachesOut<kBytes>(from + in_row(size.rows - 1), size.columns * kBytes, in, end);
    Load<kBytes>(from, in_row, size, at_edge, tile);
  }
  __syncthreads();
  Store<kBytes>(tile, size, RowStride{static_cast<std::uint32_t>(walk.out_stride_x * kBytes)},
                out + (origin.out + origin.x * walk.out_stride_x + origin.y) * kBytes);
}

// Same, for a side of several axes.
template <int kBytes>
__global__ void __launch_bounds__(OddTile<kBytes>::kThreads, 4)
    TransposeJoinedTiles(const char* __restrict__ in, char* __restrict__ out, const char* end,
                         const __grid_constant__ JoinedTiles tiles, std::int64_t first_tile) {
  using Tile = OddTile<kBytes>;
  __shared__ OddWord<kBytes> tile[Tile::kWords];
  // The number of rows for which warps look up offsets. The last of these have no elements.
  constexpr int kInRows = (Tile::kShareWords / kWarps + 1) * kWarps * Tile::kPerWord;
  __shared__ std::uint32_t in_rows[kInRows], out_rows[Tile::kTileX];
  const TileOrigin origin =
      LocateTileInBands(tiles.walk, first_tile + blockIdx.x, Tile::kTileX, Tile::kTileY);
  const TileSize size = SizeAt<kBytes>(tiles.walk, origin);
  const char* from = in + (origin.in + origin.x) * kBytes;
  bool at_edge = false;
  for (int i = static_cast<int>(threadIdx.x); i < kInRows; i += Tile::kThreads) {
    const bool inside = i < size.rows;
    in_rows[i] = inside ? OffsetAt(tiles.y, static_cast<std::uint32_t>(origin.y + i)) : 0;
    at_edge = at_edge || (inside && ReachesOut<kBytes>(from + in_rows[i], size.columns * kBytes, in, end));
  }
  for (int i = static_cast<int>(threadIdx.x); i < size.columns; i += Tile::kThreads) {
    out_rows[i] = OffsetAt(tiles.x, static_cast<std::uint32_t>(origin.x + i));
  }
  Load<kBytes>(from, RowTable{in_rows}, size, __syncthreads_or(at_edge) != 0, tile);
  __syncthreads();
  Store<kBytes>(tile, size, RowTable{out_rows}, out + (origin.out + origin.y) * kBytes);
}

template <int kBytes>
cudaError_t Launch(TileWalk walk, std::int64_t in_bytes, const void* in, void* out, cudaStream_t stream) {
  using Tile = OddTile<kBytes>;
  walk.CutInto(Tile::kTileX, Tile::kTileY);
  const char* begin = static_cast<const char*>(in);
  return LaunchGrids(walk.Tiles(), [&](std::int64_t first, unsigned grid) {
    TransposeOddTiles<kBytes>
        <<<grid, Tile::kThreads, 0, stream>>>(begin, static_cast<char*>(out), begin + in_bytes, walk, first);
  });
}

template <int kBytes>
cudaError_t LaunchJoined(JoinedTiles tiles, std::int64_t in_bytes, const void* in, void* out,
                         cudaStream_t stream) {
  using Tile = OddTile<kBytes>;
  tiles.walk.CutInto(Tile::kTileX, Tile::kTileY);
  const char* begin = static_cast<const char*>(in);
  return LaunchGrids(tiles.walk.Tiles(), [&](std::int64_t first, unsigned grid) {
    TransposeJoinedTiles<kBytes>
        <<<grid, Tile::kThreads, 0, stream>>>(begin, static_cast<char*>(out), begin + in_bytes, tiles, first);
  });
}

}  // namespace

cudaError_t LaunchOddTiles(const TileWalk& walk, std::size_t element_bytes, std::int64_t in_bytes,
                           const void* in, void* out, cudaStream_t stream) {
  return WithOddTileBytes(element_bytes, cudaErrorNotSupported,
                          [&](auto bytes) { return Launch<bytes()>(walk, in_bytes, in, out, stream); });
}

cudaError_t LaunchJoinedTiles(const JoinedTiles& tiles, std::size_t element_bytes, std::int64_t in_bytes,
                              const void* in, void* out, cudaStream_t stream) {
  return WithOddTileBytes(element_bytes, cudaErrorNotSupported, [&](auto bytes) {
    return LaunchJoined<bytes()>(tiles, in_bytes, in, out, stream);
  });
}

}  // namespace warpline
