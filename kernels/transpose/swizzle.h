// The layouts of the transpositions' tiles in shared memory, apart from the kernels so that host tests can
// check them.
#ifndef WARPLINE_KERNELS_TRANSPOSE_SWIZZLE_H_
#define WARPLINE_KERNELS_TRANSPOSE_SWIZZLE_H_

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "kernels/host_device.h"

namespace warpline {

// The XOR swizzle of an array T[rows][kColumns] in shared memory that is accessed in chunks of kAccessBytes.
// Row y keeps its chunks, but chunk x lies at place (y mod chunks) XOR x of the row: XOR with a constant is
// a bijection within each row, and down a column of chunks every row of a period has another place. Where a
// row has 128 bytes or more and a chunk 4 or more, those are other banks too: a column of 32 rows lies in all
// of them. Unlike padding it costs no memory and keeps chunks aligned.
template <int kElementBytes, int kAccessBytes, int kColumns>
struct Swizzle {
  static constexpr int kRowBytes = kColumns * kElementBytes;
  static constexpr int kChunks = kRowBytes / kAccessBytes;  // in a row
  static_assert(kAccessBytes % kElementBytes == 0 && kRowBytes % kAccessBytes == 0);
  static_assert((kChunks & (kChunks - 1)) == 0, "XOR stays within a row only for a power of two");
  static_assert(kRowBytes >= 32, "too narrow to gain anything");

  // The place of chunk x of row y within its row. y may count anything that should go through the places:
  // rows, or groups of as many rows as an accessing warp steps over.
  WARPLINE_HOST_DEVICE static constexpr int Chunk(int y, int x) { return (y & (kChunks - 1)) ^ x; }
};

// The widest access of a thread; shared memory serves it to a quarter-warp (8 lanes = all 32 banks) at a
// time.
inline constexpr int kChunkBytes = 16;

// The tile of variant `tiles`: kTile x kTile elements of kBytes each, as kSide x kSide micro-tiles of
// kVector x kVector elements, one a thread. In shared memory it lies transposed: row x has kSide chunks of
// kVector elements along y. Rows of 256 bytes are whole DRAM bursts. A tile of such rows has 64 KiB where
// elements are bytes, so these have a small tile too, of a quarter of that, for matrices with few tiles.
template <int kBytes, int kSideOfTile = 16>
struct TransposeTile {
  static constexpr int kVector = kChunkBytes / kBytes;
  static constexpr int kSide = kSideOfTile;
  static constexpr int kTile = kSide * kVector;
  static constexpr int kThreads = kSide * kSide;
  static constexpr int kSharedBytes = kTile * kSide * kChunkBytes;

  // The place of chunk `chunk` of row `row`, in chunks. Stores walk down a column in steps of kVector rows,
  // hence row / kVector. Loads walk along a row.
  WARPLINE_HOST_DEVICE static constexpr int ChunkIndex(int row, int chunk) {
    return row * kSide + Swizzle<kBytes, kChunkBytes, kTile>::Chunk(row / kVector, chunk);
  }
};

// The tile of matrices whose sides are odd. Words are elements or, of smaller ones, 4 bytes; 32 of them side
// by side make a piece of a row. A tile writes whole sectors of each row of the output: those that begin in
// its share of kTileY elements, wherever the row does. Hence it reads a sector's worth of elements more, the
// halo.
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
  // In shared memory x goes down, and words of a row lie along y: a share and the halo.
  static constexpr int kShareWords = kPiecesY * kLanes, kHaloWords = kSectorBytes / kWordBytes;
  static constexpr int kRowWords = kShareWords + kHaloWords;
  static constexpr int kRows = kRowWords * kPerWord;  // of the input, that are read
  static constexpr int kPitch = kRowWords + 1;        // odd, so that 32 rows begin in all banks
  static constexpr int kWords = kTileX * kPitch;

  // The place of row x. Rows that the lanes of a warp store together, kPerWord apart, have neighbouring
  // places.
  WARPLINE_HOST_DEVICE static constexpr int Place(int x) {
    constexpr int kPiece = kLanes * kPerWord;
    return (x / kPiece * kPerWord + x % kPerWord) * kLanes + x % kPiece / kPerWord;
  }
  // The row that lies at `place`.
  WARPLINE_HOST_DEVICE static constexpr int RowAt(int place) {
    const int group = place / kLanes;
    return (group / kPerWord * kLanes + place % kLanes) * kPerWord + group % kPerWord;
  }
};

// function(std::integral_constant<int, N>()) with the size of elements, or `otherwise` where there are no
// such tiles of them.
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
