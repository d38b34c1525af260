// Boxes (packed_box.h) that all begin and end on word boundaries, for the kernel of equal_boxes.cu. Words lie
// at the same positions in every box.
#ifndef WARPLINE_KERNELS_TRANSPOSE_EQUAL_BOXES_H_
#define WARPLINE_KERNELS_TRANSPOSE_EQUAL_BOXES_H_

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/transpose/packed_box.h"

namespace warpline {

inline constexpr int kEqualBoxWord = 4;  // bytes
// The maximum bytes of a box, the threads of a CTA, and the CTAs per multiprocessor.
inline constexpr int kEqualBoxBytes = 21 << 10;
inline constexpr int kEqualBoxThreads = 384, kEqualBoxCtas = 2;
// The maximum number of boxes of a CTA. The CTA ends then, so that kernels of short jobs, which have
// priority, find room.
inline constexpr int kBoxesOfCta = 32;

// Returns whether the kernel supports these boxes, if input and output begin on word boundaries, and is
// faster than the kernel of packed_box.cu. It is faster if each CTA has several boxes, and locating words
// takes the other kernel most of its time. The words that lanes gather must also lie in different banks.
// Elements have 1, 2 or 4 bytes.
bool SuitEqualBoxes(const PackedBox& box, int element_bytes, int multiprocessors);

// Returns the position where row `index` of a side begins.
WARPLINE_HOST_DEVICE inline RowPlace RowOfBox(const BoxRows& rows, std::uint32_t index) {
  RowPlace place;
  for (int i = 0; i < rows.rank; ++i) {
    const std::uint32_t coordinate = TakeRemainder(index, rows.axes[i].size);
    place.offset += coordinate * rows.axes[i].stride;
    place.tile += coordinate * rows.axes[i].tile_stride;
  }
  return place;
}

// The positions of two words, in bytes from the beginning of the box: of the word that is loaded, and of the
// word that is stored. In the tile, the elements of the stored word are gather.inner_stride apart.
struct WordPlace {
  std::uint32_t in = 0, loaded = 0;   // position in the tile
  std::uint32_t out = 0, stored = 0;  // position of its first element in the tile
};

// Words are numbered along rows. Words beyond the last one of a side have no position on that side.
WARPLINE_HOST_DEVICE inline WordPlace FindWord(const PackedBox& box, std::uint32_t word,
                                               std::uint32_t element_bytes) {
  WordPlace place;
  if (word < box.load.row_count * box.load.words) {
    const RowPlace row = RowOfBox(box.load, word / box.load.words);
    const std::uint32_t of_row = word % box.load.words * kEqualBoxWord;
    place.in = static_cast<std::uint32_t>(row.offset) + of_row;
    place.loaded = row.tile + of_row;
  }
  if (word < box.store.row_count * box.store.words) {
    const RowPlace row = RowOfBox(box.store, word / box.store.words);
    const std::uint32_t of_row = word % box.store.words;
    place.out = static_cast<std::uint32_t>(row.offset) + of_row * kEqualBoxWord;
    place.stored = row.tile + TableEntry(box.gather, of_row * (kEqualBoxWord / element_bytes));
  }
  return place;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_EQUAL_BOXES_H_
