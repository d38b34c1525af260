// Cuts a permutation of axes into boxes that fit into shared memory, and determines all positions. Separate
// from the kernel (transpose/packed_box.cu), so that host tests can check the same plan.
//
// A box is a block of the tensor, with the same size for every CTA. It has some of the innermost axes of the
// input and some of the innermost axes of the output. In each of these sets at most one axis is cut into
// blocks. So a box consists of contiguous runs of the input and also of contiguous runs of the output,
// whichever axes are small.
#ifndef WARPLINE_KERNELS_TRANSPOSE_PACKED_BOX_H_
#define WARPLINE_KERNELS_TRANSPOSE_PACKED_BOX_H_

#include <cstdint>

#include "kernels/fast_divisor.h"
#include "kernels/host_device.h"
#include "kernels/shape.h"
#include "kernels/transpose/canonical.h"
#include "kernels/transpose/tile_walk.h"

namespace warpline {

inline constexpr int kPackedThreads = 256;

// Returns the bytes that a lane moves at a time: an element, but at least 4 bytes.
WARPLINE_HOST_DEVICE constexpr int PackedWordBytes(int element_bytes) {
  return element_bytes < 4 ? 4 : element_bytes;
}

// A step from box to box. The last block of an axis begins at `last`. So it is as long as the others, and
// overlaps the previous block. Both write the same values there, and no box needs bounds checks.
struct OuterAxis {
  std::int64_t count = 1;
  FastDivisor divisor;  // for `count`; if there are too many boxes for it, 64-bit divisions are used
  std::int64_t block = 1, last = 0;
  std::int64_t in_stride = 0, out_stride = 0;  // in bytes, like all strides here
};

// An axis of the loop over the rows of a box.
struct RowAxis {
  FastDivisor size;
  std::uint32_t tile_stride = 0;  // in shared memory
  std::int64_t stride = 0;        // in global memory
};

// The rows of a box on one side: its runs, with `row_bytes` bytes each, and the axes of the loop over them,
// fastest first. Rows are cut into segments of `segment_words` words. 2^lanes_log2 neighbouring lanes move
// one segment. Neighbouring segments belong to neighbouring rows.
struct BoxRows {
  int rank = 0;
  RowAxis axes[kMaxRank] = {};
  std::uint32_t row_bytes = 0;
  std::uint32_t words = 0;  // per row; a row that begins within a word may have one more
  std::uint32_t row_count = 0;
  std::uint32_t count = 0;  // total number of segments
  bool aligned = true;      // rows begin and end on word boundaries, if the first row does
  bool one_segment = true;  // each row has only one segment
  std::uint32_t segment_words = 0;
  std::uint32_t lanes_log2 = 0;
};

// The positions in shared memory of the elements of an output row. Element i is at i / period * outer_stride
// + entry i % period of a table that the CTA computes. If the period is 1 there is no table.
struct GatherTable {
  FastDivisor period;
  std::uint32_t outer_stride = 0;
  // The fastest axis: neighbouring elements along it are `inner_stride` apart. `inner_words`: its size is a
  // multiple of the elements of a word.
  std::uint32_t inner_stride = 0;
  bool inner_words = false;
  int rank = 0;
  FastDivisor sizes[kMaxRank] = {};
  std::uint32_t strides[kMaxRank] = {};
};

struct PackedBox {
  std::int64_t boxes = 0;
  int outer_rank = 0;
  OuterAxis outer[kMaxRank] = {};  // fastest first
  BoxRows load, store;
  GatherTable gather;
  std::uint32_t tile_bytes = 0;     // of the box in shared memory, a multiple of 16; the table follows it
  std::uint32_t table_entries = 0;  // 2 bytes each
  std::int64_t box_extent = 0;      // input bytes from the first to after the last element of a box
  std::int64_t in_extent = 0;       // same for the whole input
  double issue_slots = 0;           // estimate for a CTA of packed_box.cu

  std::uint32_t SharedBytes() const { return tile_bytes + 2 * table_entries; }
};

// For any transposition of rank >= 1 that is not empty.
PackedBox PlanPackedBox(const CanonicalTranspose& transpose, int element_bytes);

// The offsets of a box in input and output.
struct BoxOrigin {
  std::int64_t in = 0, out = 0;
};

WARPLINE_HOST_DEVICE inline void AddStep(const OuterAxis& axis, std::int64_t coordinate, BoxOrigin& origin) {
  const std::int64_t start = coordinate * axis.block < axis.last ? coordinate * axis.block : axis.last;
  origin.in += start * axis.in_stride;
  origin.out += start * axis.out_stride;
}

// The loops over axes here and below are unrolled up to the maximum rank. So known properties of an axis
// become operands of instructions. Otherwise they would be loaded from the kernel's parameters each time.
WARPLINE_HOST_DEVICE inline BoxOrigin LocateBox(const PackedBox& box, std::int64_t index) {
  BoxOrigin origin;
  if (box.boxes < FastDivisor::kMax) {
    auto rest = static_cast<std::uint32_t>(index);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int i = 0; i < kMaxRank; ++i) {
      if (i >= box.outer_rank) break;
      AddStep(box.outer[i], TakeRemainder(rest, box.outer[i].divisor), origin);
    }
    return origin;
  }
  for (int i = 0; i < box.outer_rank; ++i) {
    AddStep(box.outer[i], TakeRemainder(index, box.outer[i].count), origin);
  }
  return origin;
}

// The position where a segment begins: the first byte of its row in global memory and in the tile, and its
// first word within the row.
struct RowPlace {
  std::int64_t offset = 0;
  std::uint32_t tile = 0, first_word = 0;
};

WARPLINE_HOST_DEVICE inline RowPlace LocateRow(const BoxRows& rows, std::uint32_t index) {
  RowPlace place;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int i = 0; i < kMaxRank; ++i) {
    if (i >= rows.rank) break;
    const std::uint32_t coordinate =
        rows.one_segment && i + 1 == rows.rank ? index : TakeRemainder(index, rows.axes[i].size);
    place.offset += coordinate * rows.axes[i].stride;
    place.tile += coordinate * rows.axes[i].tile_stride;
  }
  if (!rows.one_segment) place.first_word = index * rows.segment_words;
  return place;
}

// Changes `place` to the position of segment `index`, which is `step` segments further. If only one axis
// walks over rows, this is an addition.
WARPLINE_HOST_DEVICE inline void AdvanceRow(const BoxRows& rows, std::uint32_t index, std::uint32_t step,
                                            RowPlace& place) {
  if (rows.one_segment && rows.rank == 1) {
    place.offset += step * rows.axes[0].stride;
    place.tile += step * rows.axes[0].tile_stride;
  } else {
    place = LocateRow(rows, index);
  }
}

// Returns the end of the segment at `place`, in words of its row, which has `words` words.
WARPLINE_HOST_DEVICE inline std::uint32_t EndOfSegment(const BoxRows& rows, const RowPlace& place,
                                                       std::uint32_t words) {
  const std::uint32_t end = place.first_word + rows.segment_words;
  // The last segment extends to the end of the row: a row that splits words may have one more word than
  // planned.
  return rows.one_segment || end >= rows.words || end > words ? words : end;
}

// An output row of elements smaller than a word, which begins `skipped` bytes after a word boundary. Its
// words [first_word, end_word) are complete. Its elements [0, head) and [tail, count) are outside of these
// words.
struct RowEnds {
  std::uint32_t first_word = 0, end_word = 0;
  std::uint32_t head = 0, tail = 0, count = 0;
};

template <int kBytes>
WARPLINE_HOST_DEVICE inline RowEnds EndsOfRow(std::uint32_t row_bytes, std::uint32_t skipped) {
  RowEnds ends;
  ends.count = row_bytes / kBytes;
  ends.first_word = skipped == 0 ? 0 : 1;
  ends.end_word = (skipped + row_bytes) / 4;
  ends.head = (4 * ends.first_word - skipped) / kBytes;
  if (ends.head > ends.count) ends.head = ends.count;
  // In a row within one word, all elements belong to the head.
  ends.tail = ends.count - (ends.end_word < ends.first_word ? 0 : (skipped + row_bytes) % 4 / kBytes);
  return ends;
}

// Returns entry `index` of the table; entries after the period continue into the next one.
WARPLINE_HOST_DEVICE inline std::uint32_t TableEntry(const GatherTable& table, std::uint32_t index) {
  std::uint32_t place = 0;
  for (int i = 0; i < table.rank; ++i) place += TakeRemainder(index, table.sizes[i]) * table.strides[i];
  return place + index * table.outer_stride;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_PACKED_BOX_H_
