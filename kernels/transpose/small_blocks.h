// Transpositions that leave elements within small blocks, contiguous in the input as in the output: batches
// of small matrices above all. How they are cut into boxes, and where elements lie in these, apart from the
// kernel (small_blocks.cu) so that host tests can check it.
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
// Threads of a CTA, CTAs a multiprocessor, words of a box that a thread moves at most, and boxes of a CTA. It
// ends then, so that kernels of short jobs, which go before others, find room.
inline constexpr int kBlockThreads = 384, kBlockCtas = 2, kWordsOfBox = 14, kBoxesInTurn = 32;

// A box is several blocks that follow each other in input and output. It begins with a word of 4 bytes.
struct SmallBlocks {
  // From box to box, in bytes. Along the last axis boxes follow each other, the last of them a shorter one.
  StridedCopy walk;
  std::int64_t boxes = 0;
  std::uint32_t box_bytes = 0, last_bytes = 0;
  FastDivisor block;  // elements
  AxisWalk elements;  // of a block, in the order of the output: where they are in the input
  // In shared memory a word of nothing follows every so many bytes, if that is not 0.
  std::uint32_t pad_every = 0;
  FastDivisor pad_divisor;
  std::uint32_t tile_bytes = 0;  // of a box in shared memory, a multiple of 16

  // The place in shared memory of a byte of the box.
  WARPLINE_HOST_DEVICE std::uint32_t PlaceOf(std::uint32_t byte) const {
    return pad_every == 0 ? byte : byte + pad_divisor.Quotient(byte) * kBlockWord;
  }
  // The place in shared memory of the element that comes to lie at `index` of the box.
  WARPLINE_HOST_DEVICE std::uint32_t PlaceOfElement(std::uint32_t index, std::uint32_t element_bytes) const {
    const std::uint32_t of_block = index - block.Quotient(index) * block.divisor;
    return PlaceOf((index - of_block + OffsetAt(elements, of_block)) * element_bytes);
  }
};

// A box: where it begins, and how many bytes it has.
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

// Elements of 1, 2 or 4 bytes. None where blocks do not fit a box, boxes would not begin with words, are
// small or too few, or where lanes would find too many elements in one bank.
std::optional<SmallBlocks> PlanSmallBlocks(const CanonicalTranspose& transpose, std::size_t element_bytes,
                                           const DeviceTraits& traits, const void* in, const void* out);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_SMALL_BLOCKS_H_
