// Boxes (packed_box.h) of which all begin and end with words, as the kernel of equal_boxes.cu moves them: the
// words of a box lie at the same places of every other.
#ifndef WARPLINE_KERNELS_TRANSPOSE_EQUAL_BOXES_H_
#define WARPLINE_KERNELS_TRANSPOSE_EQUAL_BOXES_H_

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/transpose/packed_box.h"

namespace warpline {

inline constexpr int kEqualBoxWord = 4;  // bytes
// The most bytes of a box, threads of a CTA, and CTAs a multiprocessor.
inline constexpr int kEqualBoxBytes = 21 << 10;
inline constexpr int kEqualBoxThreads = 384, kEqualBoxCtas = 2;
// The most boxes of a CTA. It ends then, so that kernels of short jobs, which go before others, find room.
inline constexpr int kBoxesOfCta = 32;

// Returns whether the kernel can take these boxes, if input and output begin with words, and moves them
// faster than the kernel of packed_box.cu. It is faster if each CTA has several boxes, and finding words
// takes the other kernel most of its time. The words that lanes gather must also lie in different banks.
// Elements have 1, 2 or 4 bytes.
bool SuitEqualBoxes(const PackedBox& box, int element_bytes, int multiprocessors);

// The place where row `index` of a side begins.
WARPLINE_HOST_DEVICE inline RowPlace RowOfBox(const BoxRows& rows, std::uint32_t index) {
  RowPlace place;
  for (int i = 0; i < rows.rank; ++i) {
    const std::uint32_t coordinate = TakeRemainder(index, rows.axes[i].size);
    place.offset += coordinate * rows.axes[i].stride;
    place.tile += coordinate * rows.axes[i].tile_stride;
  }
  return place;
}

// The places of two words, in bytes from the beginning of the box: the word that is loaded, and the word that
// is stored. In the tile, the elements of the stored word are gather.inner_stride apart.
struct WordPlace {
  std::uint32_t in = 0, loaded = 0;   // in the tile
  std::uint32_t out = 0, stored = 0;  // its first element in the tile
};

// Words follow each other along rows; those past the last of a side have no place on it.
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
