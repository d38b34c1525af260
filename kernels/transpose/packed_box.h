// How a permutation of axes is cut into boxes that fit into shared memory, and where everything lies: apart
// from the kernel (transpose/packed_box.cu), so that host tests can walk the same plan.
//
// A box is a block of the tensor, the same for every CTA: some of the innermost axes of the input and some of
// the innermost axes of the output, each set with at most one axis that is cut into blocks. So a box consists
// of contiguous runs of the input as well as of contiguous runs of the output, whichever axes are small.
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

// Bytes that a lane moves at a time: an element, but at least 4 bytes.
WARPLINE_HOST_DEVICE constexpr int PackedWordBytes(int element_bytes) {
  return element_bytes < 4 ? 4 : element_bytes;
}

// A step from box to box. The last block of an axis begins `last` from its start, so that it is as long as
// the others and overlaps the block before: both write the same values there, and no box needs a bound.
struct OuterAxis {
  std::int64_t count = 1;
  FastDivisor divisor;  // of `count`; where boxes are too many for it, 64-bit divisions are used
  std::int64_t block = 1, last = 0;
  std::int64_t in_stride = 0, out_stride = 0;  // in bytes, as all strides here
};

// Walks the rows of a box.
struct RowAxis {
  FastDivisor size;
  std::uint32_t tile_stride = 0;  // in shared memory
  std::int64_t stride = 0;        // in global memory
};

// The runs of a box on one side, `row_bytes` each; the axes that walk over them, the fastest first; and how
// lanes share them: rows are cut into segments of `segment_words` words, each of which is moved by
// 2^lanes_log2 neighbouring lanes. Neighbouring segments belong to neighbouring rows.
struct BoxRows {
  int rank = 0;
  RowAxis axes[kMaxRank] = {};
  std::uint32_t row_bytes = 0;
  std::uint32_t words = 0;  // of a row; where it begins within a word, it may have one more
  std::uint32_t row_count = 0;
  std::uint32_t count = 0;  // of segments in all
  bool aligned = true;      // rows begin and end with words, if the first does
  bool one_segment = true;  // in each row
  std::uint32_t segment_words = 0;
  std::uint32_t lanes_log2 = 0;
};

// The places in shared memory of the elements of a row of the output. Element i is at i / period *
// outer_stride + entry i % period of a table that the CTA works out. If the period is 1 there is no table.
struct GatherTable {
  FastDivisor period;
  std::uint32_t outer_stride = 0;
  // The fastest axis: elements of one word that do not leave it are `inner_stride` apart. `inner_words`: its
  // size is a multiple of a word's.
  std::uint32_t inner_stride = 0;
  bool inner_words = false;
  int rank = 0;
  FastDivisor sizes[kMaxRank] = {};
  std::uint32_t strides[kMaxRank] = {};
};

struct PackedBox {
  std::int64_t boxes = 0;
  int outer_rank = 0;
  OuterAxis outer[kMaxRank] = {};  // the fastest first
  BoxRows load, store;
  GatherTable gather;
  std::uint32_t tile_bytes = 0;     // of the box in shared memory, a multiple of 16; the table follows
  std::uint32_t table_entries = 0;  // of 2 bytes
  std::int64_t box_extent = 0;      // bytes of the input from the first to past the last of a box
  std::int64_t in_extent = 0;       // of the whole input
  double issue_slots = 0;           // of a CTA of packed_box.cu, as estimated

  std::uint32_t SharedBytes() const { return tile_bytes + 2 * table_entries; }
};

// For any transposition of rank >= 1 that is not empty.
PackedBox PlanPackedBox(const CanonicalTranspose& transpose, int element_bytes);

// Offsets of box `index` in input and output.
struct BoxOrigin {
  std::int64_t in = 0, out = 0;
};

WARPLINE_HOST_DEVICE inline void AddStep(const OuterAxis& axis, std::int64_t coordinate, BoxOrigin& origin) {
  const std::int64_t start = coordinate * axis.block < axis.last ? coordinate * axis.block : axis.last;
  origin.in += start * axis.in_stride;
  origin.out += start * axis.out_stride;
}

// The loops over axes here and below are unrolled, up to the most axes there can be: then what is known of an
// axis is operands of instructions, where it would otherwise be loaded from the kernel's parameters each
// time.
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

// The place where segment `index` of a side begins. It has the first byte of the segment's row in global
// memory and in the tile, and the segment's first word within the row.
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

// The place of segment `index`, which is `step` after that of `place`. Where one axis walks over rows, that
// is an addition.
WARPLINE_HOST_DEVICE inline void AdvanceRow(const BoxRows& rows, std::uint32_t index, std::uint32_t step,
                                            RowPlace& place) {
  if (rows.one_segment && rows.rank == 1) {
    place.offset += step * rows.axes[0].stride;
    place.tile += step * rows.axes[0].tile_stride;
  } else {
    place = LocateRow(rows, index);
  }
}

// Past the last of the `words` of a row that are in the segment at `place`.
WARPLINE_HOST_DEVICE inline std::uint32_t EndOfSegment(const BoxRows& rows, const RowPlace& place,
                                                       std::uint32_t words) {
  const std::uint32_t end = place.first_word + rows.segment_words;
  // The last segment goes to the end: a row that splits words may have one more than was planned for.
  return rows.one_segment || end >= rows.words || end > words ? words : end;
}

// A row of the output of elements smaller than a word, whose first is `skipped` bytes into one: its words
// [first_word, end_word) are whole; its elements [0, head) and [tail, count) are not in these.
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
  // A row within one word is all head.
  ends.tail = ends.count - (ends.end_word < ends.first_word ? 0 : (skipped + row_bytes) % 4 / kBytes);
  return ends;
}

// Entry `index` of the table; entries past the period continue into the next one.
WARPLINE_HOST_DEVICE inline std::uint32_t TableEntry(const GatherTable& table, std::uint32_t index) {
  std::uint32_t place = 0;
  for (int i = 0; i < table.rank; ++i) place += TakeRemainder(index, table.sizes[i]) * table.strides[i];
  return place + index * table.outer_stride;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_PACKED_BOX_H_
