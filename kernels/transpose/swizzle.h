// Geometry of the shared-memory tile of `swizzled_packed`, apart from the kernel so that a host test can
// check it.
#ifndef WARPLINE_KERNELS_TRANSPOSE_SWIZZLE_H_
#define WARPLINE_KERNELS_TRANSPOSE_SWIZZLE_H_

#include "kernels/host_device.h"

namespace warpline {

// The widest access of a thread; shared memory serves it to a quarter-warp (8 lanes = all 32 banks) at a
// time.
inline constexpr int kChunkBytes = 16;

// A tile has kTile x kTile elements of kBytes each: kSide x kSide micro-tiles of kVector x kVector elements,
// one a thread. In shared memory it lies transposed: row x has kSide chunks of kVector elements along y.
// Rows of 256 bytes (of 128 for bytes, whose micro-tile already takes 64 registers) are whole DRAM bursts.
template <int kBytes>
struct TransposeTile {
  static constexpr int kVector = kChunkBytes / kBytes;
  static constexpr int kSide = kBytes == 1 ? 8 : 16;
  static constexpr int kTile = kSide * kVector;
  static constexpr int kThreads = kSide * kSide;

  // Where chunk `chunk` of row `row` lies, in chunks. The rows have a multiple of 128 bytes, so without the
  // XOR a column of chunks would lie in one bank group. Stores walk down a column in steps of kVector rows,
  // hence row / kVector; loads walk along a row. A bijection, as XOR with a constant is one within each row.
  WARPLINE_HOST_DEVICE static constexpr int ChunkIndex(int row, int chunk) {
    return row * kSide + (chunk ^ (row / kVector % kSide));
  }
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_SWIZZLE_H_
