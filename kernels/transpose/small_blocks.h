// Transpositions within small blocks that are contiguous in input and output, mainly batches of small
// matrices. Plans the boxes, and the positions of elements in them. Separate from the kernel
// (small_blocks.cu), so that host tests can check it.
#ifndef WARPLINE_KERNELS_TRANSPOSE_SMALL_BLOCKS_H_
#define WARPLINE_KERNELS_TRANSPOSE_SMALL_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/axis_walk.h"
#include "kernels/take_remainder.h"
#include "kernels/transpose/canonical.h"
#include "kernels/transpose/strided_copy.h"
#include "kernels/variant.h"

namespace warpline {

inline constexpr int kBlockWord = 4;  // bytes
// The threads of a CTA, the CTAs per multiprocessor, the maximum words of a box per thread, and the maximum
// boxes of a CTA. The CTA ends then, so that kernels of short jobs, which have priority, find room.
inline constexpr int kBlockThreads = 384, kBlockCtas = 2, kWordsOfBox = 14, kBoxesInTurn = 32;

// A box is several blocks that are contiguous in input and output. It begins on a 4-byte word boundary.
struct SmallBlocks {
  // The walk from box to box, in bytes. Along the last axis boxes are contiguous, and the last of them may be
  // shorter.
  StridedCopy walk;
  std::int64_t boxes = 0;
  std::uint32_t box_bytes = 0, last_bytes = 0;
  FastDivisor block;  // elements
  AxisWalk elements;  // of a block, in the order of the output: their offsets in the input
  // In shared memory, one word of padding follows every `pad_every` bytes, if that is not 0.
  std::uint32_t pad_every = 0;
  FastDivisor pad_divisor;
  std::uint32_t tile_bytes = 0;  // size of a box in shared memory, a multiple of 16

  // Returns the position in shared memory of a byte of the box.
  WARPLINE_HOST_DEVICE std::uint32_t PlaceOf(std::uint32_t byte) const {
    return pad_every == 0 ? byte : byte + pad_divisor.Quotient(byte) * kBlockWord;
  }
  // Returns the position in shared memory of the element whose position in the output is `index` of the box.
  WARPLINE_HOST_DEVICE std::uint32_t PlaceOfElement(std::uint32_t index, std::uint32_t element_bytes) const {
    const std::uint32_t of_block = index - block.Quotient(index) * block.divisor;
    return PlaceOf((index - of_block + OffsetAt(elements, of_block)) * element_bytes);
  }
};

// A box: its offsets in input and output, and its bytes.
struct BlocksAt {
  std::int64_t in = 0, out = 0;
  std::uint32_t bytes = 0;
};

WARPLINE_HOST_DEVICE inline BlocksAt LocateBlocks(const SmallBlocks& blocks, std::int64_t index) {
  BlocksAt at;
  const int last = blocks.walk.rank - 1;
  for (int axis = last; axis >= 0; --axis) {
    const std::int64_t coordinate = TakeRemainder(index, blocks.walk.dims[axis]);
    at.in += coordinate * blocks.walk.in_strides[axis];
    at.out += coordinate * blocks.walk.out_strides[axis];
    if (axis == last) {
      at.bytes = coordinate + 1 == blocks.walk.dims[axis] ? blocks.last_bytes : blocks.box_bytes;
    }
  }
  return at;
}

// Elements have 1, 2 or 4 bytes. Returns nothing if blocks do not fit a box, or if boxes would not begin on
// word boundaries, are small, or too few, or if lanes would find too many elements in one bank.
std::optional<SmallBlocks> PlanSmallBlocks(const CanonicalTranspose& transpose, std::size_t element_bytes,
                                           const DeviceTraits& traits, const void* in, const void* out);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_SMALL_BLOCKS_H_
