// The layouts of the transpositions' tiles in shared memory. Separate from the kernels, so that host tests
// can check them.
#ifndef WARPLINE_KERNELS_TRANSPOSE_SWIZZLE_H_
#define WARPLINE_KERNELS_TRANSPOSE_SWIZZLE_H_

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "kernels/host_device.h"

namespace warpline {

// The XOR swizzle of an array T[rows][kColumns] in shared memory that is accessed in chunks of kAccessBytes.
// Row y keeps its chunks, but chunk x lies at position (y mod chunks) XOR x of the row. XOR with a constant
// is a bijection within each row. Down a column of chunks, every row of a period has a different position. If
// a row has at least 128 bytes and a chunk at least 4, these positions are also different banks: a column of
// 32 rows covers all of them. Unlike padding, the swizzle needs no memory and keeps chunks aligned.
template <int kElementBytes, int kAccessBytes, int kColumns>
struct Swizzle {
  static constexpr int kRowBytes = kColumns * kElementBytes;
  static constexpr int kChunks = kRowBytes / kAccessBytes;  // per row
  static_assert(kAccessBytes % kElementBytes == 0 && kRowBytes % kAccessBytes == 0);
  static_assert((kChunks & (kChunks - 1)) == 0, "XOR stays within a row only for a power of two");
  static_assert(kRowBytes >= 32, "too narrow to gain anything");

  // Returns the position of chunk x of row y within its row. y may count rows, or groups of rows if an
  // accessing warp steps over several rows at a time.
  WARPLINE_HOST_DEVICE static constexpr int Chunk(int y, int x) { return (y & (kChunks - 1)) ^ x; }
};

// The widest access of a thread. Shared memory serves it to a quarter-warp (8 lanes = all 32 banks) at a
// time.
inline constexpr int kChunkBytes = 16;

// The tile of variant `tiles`: kTile x kTile elements of kBytes each, divided into kSide x kSide micro-tiles
// of kVector x kVector elements, one per thread. In shared memory it lies transposed: row x has kSide chunks
// of kVector elements along y. Rows of 256 bytes are whole DRAM bursts. For bytes, a tile with such rows has
// 64 KiB. So there is also a small tile for bytes, a quarter of that, for matrices with few tiles.
template <int kBytes, int kSideOfTile = 16>
struct TransposeTile {
  static constexpr int kVector = kChunkBytes / kBytes;
  static constexpr int kSide = kSideOfTile;
  static constexpr int kTile = kSide * kVector;
  static constexpr int kThreads = kSide * kSide;
  static constexpr int kSharedBytes = kTile * kSide * kChunkBytes;

  // Returns the position of chunk `chunk` of row `row`, in chunks. Stores go down a column in steps of
  // kVector rows, hence row / kVector. Loads go along a row.
  WARPLINE_HOST_DEVICE static constexpr int ChunkIndex(int row, int chunk) {
    return row * kSide + Swizzle<kBytes, kChunkBytes, kTile>::Chunk(row / kVector, chunk);
  }
};

// The tile of matrices with odd sides. A word is one element or, for smaller elements, 4 bytes; 32 contiguous
// words are a piece of a row. A tile writes whole sectors of each output row: those that begin in its share
// of kTileY elements, with any alignment of the row. So it reads one more sector of elements, the halo.
template <int kBytes>
struct OddTile {
  static constexpr int kThreads = 256;
  static constexpr int kLanes = 32;
  static constexpr int kSectorBytes = 32;
  static constexpr int kWordBytes = std::max(kBytes, 4);
  static constexpr int kPerWord = kWordBytes / kBytes;
  // Pieces in a row of the input, and of the output.
  static constexpr int kPiecesX = kBytes == 2 || kBytes == 4 ? 2 : 1;
  static constexpr int kPiecesY = kBytes >= 4 ? 2 : 1;
  static constexpr int kTileX = kPiecesX * kLanes * kPerWord, kTileY = kPiecesY * kLanes * kPerWord;
  // In shared memory, rows lie along x, and the words of a row along y: a share and the halo.
  static constexpr int kShareWords = kPiecesY * kLanes, kHaloWords = kSectorBytes / kWordBytes;
  static constexpr int kRowWords = kShareWords + kHaloWords;
  static constexpr int kRows = kRowWords * kPerWord;  // number of input rows that are read
  static constexpr int kPitch = kRowWords + 1;        // odd, so that 32 rows begin in different banks
  static constexpr int kWords = kTileX * kPitch;

  // Returns the position of row x. Rows that the lanes of a warp store together, kPerWord apart, have
  // neighbouring positions.
  WARPLINE_HOST_DEVICE static constexpr int Place(int x) {
    constexpr int kPiece = kLanes * kPerWord;
    return (x / kPiece * kPerWord + x % kPerWord) * kLanes + x % kPiece / kPerWord;
  }
  // Returns the row at position `place`.
  WARPLINE_HOST_DEVICE static constexpr int RowAt(int place) {
    const int group = place / kLanes;
    return (group / kPerWord * kLanes + place % kLanes) * kPerWord + group % kPerWord;
  }
};

// Calls function(std::integral_constant<int, N>()) with the size of elements. Returns `otherwise` if there
// are no such tiles for this size.
template <typename Result, typename Function>
Result WithOddTileBytes(std::size_t element_bytes, Result otherwise, Function function) {
  switch (element_bytes) {
    case 1:
      return function(std::integral_constant<int, 1>());
    case 2:
      return function(std::integral_constant<int, 2>());
    case 4:
      return function(std::integral_constant<int, 4>());
    case 8:
      return function(std::integral_constant<int, 8>());
    default:
      return otherwise;
  }
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_SWIZZLE_H_
