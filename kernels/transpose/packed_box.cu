// Variant `box`, for a short axis at the end of either order, or odd sizes: a CTA moves a box of the tensor
// (packed_box.h) through shared memory. It reads runs of the input and writes runs of the output, which are
// long even if axes are short. It uses words of at least 4 bytes. Words at the ends of a run contain some
// bytes of its neighbours, which are read but not written.
//
// Limit: device memory for elements of at least 4 bytes, if runs are long. For smaller elements the
// gathering: one access of shared memory and two or three instructions per element.
#include <cuda_pipeline_primitives.h>

#include <type_traits>

#include "kernels/launch_grids.h"
#include "kernels/transpose/kernels.h"
#include "kernels/transpose/launch_tiles.cuh"
#include "kernels/transpose/micro_transpose.h"
#include "kernels/transpose/packed_box.h"

namespace warpline {
namespace {

template <int kBytes>
struct ElementOf {
  using Type = std::conditional_t<
      kBytes == 1, std::uint8_t,
      std::conditional_t<
          kBytes == 2, std::uint16_t,
          std::conditional_t<kBytes == 4, std::uint32_t, std::conditional_t<kBytes == 8, uint2, uint4>>>>;
};

// Returns how many bytes an address is past a word boundary.
template <int kBytes>
__device__ std::uint32_t BytesIntoWord(const char* address) {
  if constexpr (kBytes >= 4) return 0;
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(address) % 4);
}

// Copies the box at `in` to `tile` asynchronously. Both have the same offset from a word boundary, and so
// have each row and its position in the tile. `whole`: the words at the ends of the box are inside the
// tensor.
template <int kBytes>
__device__ void LoadBox(const BoxRows& rows, const char* in, bool whole, char* tile) {
  using T = typename ElementOf<kBytes>::Type;
  constexpr int kWord = PackedWordBytes(kBytes);
  const std::uint32_t lanes = 1u << rows.lanes_log2;
  const std::uint32_t lane = threadIdx.x & (lanes - 1);
  const std::uint32_t groups = kPackedThreads >> rows.lanes_log2;
  std::uint32_t index = threadIdx.x >> rows.lanes_log2;
  if (index >= rows.count) return;
  RowPlace place = LocateRow(rows, index);
  while (true) {
    const char* row = in + place.offset;
    const std::uint32_t skipped = BytesIntoWord<kBytes>(row);
    const char* from = row - skipped;
    char* to = tile + place.tile - skipped;
    const std::uint32_t words = kBytes >= 4 ? rows.words : (skipped + rows.row_bytes + 3) / 4;
    const std::uint32_t end = EndOfSegment(rows, place, words);
#pragma unroll 4
    for (std::uint32_t word = place.first_word + lane; word < end; word += lanes) {
      if (kBytes >= 4 || whole || (word > 0 && word + 1 < words)) {
        __pipeline_memcpy_async(to + word * kWord, from + word * kWord, kWord);
      } else {
        for (int i = 0; i < kWord; i += kBytes) {
          const std::uint32_t byte = word * kWord + i - skipped;  // wraps around before the row
          if (byte < rows.row_bytes) {
            *reinterpret_cast<T*>(to + word * kWord + i) = *reinterpret_cast<const T*>(row + byte);
          }
        }
      }
    }
    index += groups;
    if (index >= rows.count) return;
    AdvanceRow(rows, index, groups, place);
  }
}

// Returns the position of element `index` of a row of the output, relative to the first element of that row.
template <bool kTable>
__device__ std::uint32_t PlaceInRow(const GatherTable& gather, const std::uint16_t* table,
                                    std::uint32_t index) {
  if constexpr (kTable) {
    const std::uint32_t outer = gather.period.Quotient(index);
    return outer * gather.outer_stride + table[index - outer * gather.period.divisor];
  } else {
    return index * gather.inner_stride;
  }
}

// Gathers elements [index, index + kPerWord) of a row, which must all exist. `tile` is the position of the
// row's first element.
template <int kBytes, bool kTable>
__device__ std::uint32_t GatherWord(const GatherTable& gather, const std::uint16_t* table, bool stepwise,
                                    const char* tile, std::uint32_t index) {
  using T = typename ElementOf<kBytes>::Type;
  constexpr int kPerWord = 4 / kBytes;
  std::uint32_t elements[kPerWord];
  if (!kTable || stepwise) {
    const char* first = tile + PlaceInRow<kTable>(gather, table, index);
#pragma unroll
    for (int i = 0; i < kPerWord; ++i) {
      elements[i] = *reinterpret_cast<const T*>(first + i * gather.inner_stride);
    }
  } else {
    const std::uint32_t outer = gather.period.Quotient(index);
    const std::uint16_t* entries = table + (index - outer * gather.period.divisor);
    const char* first = tile + outer * gather.outer_stride;
#pragma unroll
    for (int i = 0; i < kPerWord; ++i) elements[i] = *reinterpret_cast<const T*>(first + entries[i]);
  }
  if constexpr (kBytes == 1) {
    return JoinBytes(elements[0], elements[1], elements[2], elements[3]);
  } else if constexpr (kBytes == 2) {
    return Join16Bit(elements[0], elements[1]);
  } else {
    return elements[0];
  }
}

// Writes the elements at the ends of rows that do not fill a word: up to 4 lanes for each end of a row.
template <int kBytes, bool kTable>
__device__ void StoreEnds(const BoxRows& rows, const GatherTable& gather, const std::uint16_t* table,
                          const char* tile, char* out) {
  using T = typename ElementOf<kBytes>::Type;
  constexpr std::uint32_t kPerWord = 4 / kBytes;
  const bool at_end = threadIdx.x / kPerWord % 2 != 0;
  for (std::uint32_t index = threadIdx.x / (2 * kPerWord); index < rows.row_count;
       index += kPackedThreads / (2 * kPerWord)) {
    const RowPlace place = LocateRow(rows, index);  // of the first segment of each row
    char* row = out + place.offset;
    const RowEnds ends = EndsOfRow<kBytes>(rows.row_bytes, BytesIntoWord<kBytes>(row));
    const std::uint32_t element = threadIdx.x % kPerWord + (at_end ? ends.tail : 0);
    if (element >= (at_end ? ends.count : ends.head)) continue;
    reinterpret_cast<T*>(row)[element] =
        *reinterpret_cast<const T*>(tile + place.tile + PlaceInRow<kTable>(gather, table, element));
  }
}

// Writes the box to `out`. `tile` is the position of its first element.
template <int kBytes, bool kTable>
__device__ void StoreBox(const BoxRows& rows, const GatherTable& gather, const std::uint16_t* table,
                         const char* tile, char* out) {
  using T = typename ElementOf<kBytes>::Type;
  const std::uint32_t lanes = 1u << rows.lanes_log2;
  const std::uint32_t lane = threadIdx.x & (lanes - 1);
  const std::uint32_t groups = kPackedThreads >> rows.lanes_log2;
  std::uint32_t index = threadIdx.x >> rows.lanes_log2;
  if (index >= rows.count) return;
  RowPlace place = LocateRow(rows, index);
  while (true) {
    const char* from = tile + place.tile;
    char* row = out + place.offset;
    if constexpr (kBytes >= 4) {
      const std::uint32_t end = EndOfSegment(rows, place, rows.words);
#pragma unroll 4
      for (std::uint32_t word = place.first_word + lane; word < end; word += lanes) {
        reinterpret_cast<T*>(row)[word] =
            *reinterpret_cast<const T*>(from + PlaceInRow<kTable>(gather, table, word));
      }
    } else {
      const std::uint32_t skipped = BytesIntoWord<kBytes>(row);
      const RowEnds ends = EndsOfRow<kBytes>(rows.row_bytes, skipped);
      auto* words = reinterpret_cast<std::uint32_t*>(row - skipped);
      const bool stepwise = gather.inner_words && skipped == 0;
      const std::uint32_t end = EndOfSegment(rows, place, ends.end_word);
      std::uint32_t word = place.first_word + lane;
      if (word < ends.first_word) word += lanes;
#pragma unroll 2
      for (; word < end; word += lanes) {
        words[word] =
            GatherWord<kBytes, kTable>(gather, table, stepwise, from, (4 * word - skipped) / kBytes);
      }
    }
    index += groups;
    if (index >= rows.count) return;
    AdvanceRow(rows, index, groups, place);
  }
}

// The CTAs per multiprocessor for which the compiler must leave registers: as many as there is room for
// boxes.
template <int kBytes>
inline constexpr int kResidentBoxes = kBytes < 4 ? 6 : kResidentThreads / kPackedThreads;

template <int kBytes, bool kTable>
__global__ void __launch_bounds__(kPackedThreads, kResidentBoxes<kBytes>)
    MoveBoxes(const char* __restrict__ in, char* __restrict__ out, const __grid_constant__ PackedBox box,
              std::int64_t first_box) {
  extern __shared__ uint4 shared[];
  char* tile = reinterpret_cast<char*>(shared);
  auto* table = reinterpret_cast<std::uint16_t*>(tile + box.tile_bytes);

  const BoxOrigin origin = LocateBox(box, first_box + blockIdx.x);
  const char* from = in + origin.in;
  const std::uint32_t before = BytesIntoWord<kBytes>(from);
  const std::uint32_t after = (0 - BytesIntoWord<kBytes>(from + box.box_extent)) % 4;
  tile += before;
  LoadBox<kBytes>(box.load, from, origin.in >= before && origin.in + box.box_extent + after <= box.in_extent,
                  tile);
  __pipeline_commit();
  if constexpr (kTable) {
    for (std::uint32_t i = threadIdx.x; i < box.table_entries; i += kPackedThreads) {
      table[i] = static_cast<std::uint16_t>(TableEntry(box.gather, i));
    }
  }
  __pipeline_wait_prior(0);
  __syncthreads();
  out += origin.out;
  StoreBox<kBytes, kTable>(box.store, box.gather, table, tile, out);
  if constexpr (kBytes < 4) {
    if (!box.store.aligned || BytesIntoWord<kBytes>(out) != 0) {
      StoreEnds<kBytes, kTable>(box.store, box.gather, table, tile, out);
    }
  }
}

template <int kBytes>
cudaError_t Launch(const PackedBox& box, const void* in, void* out, cudaStream_t stream) {
  auto* kernel = box.table_entries > 0 ? &MoveBoxes<kBytes, true> : &MoveBoxes<kBytes, false>;
  return LaunchGrids(box.boxes, [&](std::int64_t first, unsigned grid) {
    kernel<<<grid, kPackedThreads, box.SharedBytes(), stream>>>(static_cast<const char*>(in),
                                                                static_cast<char*>(out), box, first);
  });
}

}  // namespace

cudaError_t LaunchPackedBox(const PackedBox& box, std::size_t element_bytes, const void* in, void* out,
                            cudaStream_t stream) {
  switch (element_bytes) {
    case 1:
      return Launch<1>(box, in, out, stream);
    case 2:
      return Launch<2>(box, in, out, stream);
    case 4:
      return Launch<4>(box, in, out, stream);
    case 8:
      return Launch<8>(box, in, out, stream);
    case 16:
      return Launch<16>(box, in, out, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
