// Variant `small_blocks`: reorders the elements within small blocks. Each block is contiguous in input and
// output (small_blocks.h). A box is a group of blocks, at most 21 KiB. A CTA copies a box word by word into
// shared memory. It then gathers the elements of each output word from there, and writes the words in memory
// order. The positions of the elements are the same in every box: a thread computes them once, keeps them in
// registers, and moves one box after another. While it writes one box, the next one is being loaded.
//
// Limit: instructions, and reads of shared memory (one for each element).
#include <cuda_pipeline_primitives.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/ceil_div.h"
#include "kernels/launch_grids.h"
#include "kernels/transpose/kernels.h"
#include "kernels/transpose/micro_transpose.h"
#include "kernels/transpose/small_blocks.h"

namespace warpline {
namespace {

// Return the two numbers that are packed in a word. Volatile, so that they are unpacked where they are used.
// Otherwise the compiler would unpack them before the loop over boxes, and spill half of them.
__device__ std::uint32_t LowerHalf(std::uint32_t word) {
  std::uint32_t half;
  asm volatile("and.b32 %0, %1, 0xffff;" : "=r"(half) : "r"(word));
  return half;
}
__device__ std::uint32_t UpperHalf(std::uint32_t word) {
  std::uint32_t half;
  asm volatile("shr.u32 %0, %1, 16;" : "=r"(half) : "r"(word));
  return half;
}

// Calls launch(grid_x) so that each CTA has at most `most` boxes, and all multiprocessors have the same
// amount of work. `ctas_each` CTAs run on a multiprocessor at a time.
template <typename Launch>
cudaError_t LaunchInTurn(std::int64_t boxes, int most, int ctas_each, int multiprocessors, Launch launch) {
  const std::int64_t at_once = std::int64_t{ctas_each} * std::max(1, multiprocessors);
  const std::int64_t ctas = std::min(boxes, at_once * CeilDiv(boxes, at_once * most));
  if (ctas > kMaxGridX) return cudaErrorNotSupported;
  launch(static_cast<unsigned>(ctas));
  return cudaGetLastError();
}

template <int kBytes>
using Element = std::conditional_t<kBytes == 1, std::uint8_t,
                                   std::conditional_t<kBytes == 2, std::uint16_t, std::uint32_t>>;

// 16-bit numbers, two per register.
template <int kCount>
class PackedNumbers {
 public:
  __device__ void Set(int i, std::uint32_t number) {
    if (i % 2 == 0) {
      words_[i / 2] = number;
    } else {
      words_[i / 2] |= number << 16;
    }
  }
  __device__ std::uint32_t operator[](int i) const {
    return i % 2 == 0 ? LowerHalf(words_[i / 2]) : UpperHalf(words_[i / 2]);
  }

 private:
  std::uint32_t words_[(kCount + 1) / 2];
};

// These are real calls, so that their registers do not add to those of the loop over boxes.
__device__ __noinline__ std::uint32_t CallPlaceOfElement(const SmallBlocks& blocks, std::uint32_t index,
                                                         std::uint32_t element_bytes) {
  return blocks.PlaceOfElement(index, element_bytes);
}
__device__ __noinline__ BlocksAt CallLocateBlocks(const SmallBlocks& blocks, std::int64_t index) {
  return LocateBlocks(blocks, index);
}

template <int kBytes>
__global__ void __launch_bounds__(kBlockThreads, kBlockCtas)
    MoveSmallBlocks(const char* __restrict__ in, char* __restrict__ out,
                    const __grid_constant__ SmallBlocks blocks) {
  using T = Element<kBytes>;
  constexpr int kPerWord = kBlockWord / kBytes;
  extern __shared__ uint4 shared[];
  __shared__ BlocksAt boxes_at[kBoxesInTurn];  // PlanSmallBlocks includes this in its limit
  char* const tiles = reinterpret_cast<char*>(shared);
  const std::uint32_t thread = threadIdx.x;
  const auto word_of = [thread](int i) { return thread + static_cast<std::uint32_t>(i) * kBlockThreads; };
  PackedNumbers<kWordsOfBox> loaded;
  PackedNumbers<kWordsOfBox * kPerWord> stored;
#pragma unroll
  for (int i = 0; i < kWordsOfBox; ++i) {
    loaded.Set(i, blocks.PlaceOf(word_of(i) * kBlockWord));
#pragma unroll
    for (int k = 0; k < kPerWord; ++k) {
      stored.Set(i * kPerWord + k, CallPlaceOfElement(blocks, word_of(i) * kPerWord + k, kBytes));
    }
  }
  // This CTA moves boxes blockIdx.x, blockIdx.x + gridDim.x, and so on.
  const auto boxes = static_cast<int>((blocks.boxes - blockIdx.x + gridDim.x - 1) / gridDim.x);
  if (thread < static_cast<std::uint32_t>(boxes)) {
    boxes_at[thread] = CallLocateBlocks(blocks, blockIdx.x + std::int64_t{thread} * gridDim.x);
  }
  __syncthreads();
  const auto load = [&](int box) {
    if (box < boxes) {
      const char* from = in + boxes_at[box].in;
      const std::uint32_t bytes = boxes_at[box].bytes, words = bytes / kBlockWord;
      char* tile = tiles + box % 2 * blocks.tile_bytes;
#pragma unroll
      for (int i = 0; i < kWordsOfBox; ++i) {
        if (word_of(i) >= words) break;
        __pipeline_memcpy_async(tile + loaded[i], from + word_of(i) * kBlockWord, kBlockWord);
      }
      // Loads the elements after the last whole word of a last box along an axis.
      if (kBytes < kBlockWord && thread < bytes % kBlockWord / kBytes) {
        const std::uint32_t at = words * kBlockWord + thread * kBytes;
        *reinterpret_cast<T*>(tile + blocks.PlaceOf(at)) = *reinterpret_cast<const T*>(from + at);
      }
    }
    __pipeline_commit();
  };

  load(0);
  for (int box = 0; box < boxes; ++box) {
    load(box + 1);
    __pipeline_wait_prior(1);
    __syncthreads();
    const char* tile = tiles + box % 2 * blocks.tile_bytes;
    char* to = out + boxes_at[box].out;
    const std::uint32_t bytes = boxes_at[box].bytes, words = bytes / kBlockWord;
#pragma unroll
    for (int i = 0; i < kWordsOfBox; ++i) {
      if (word_of(i) >= words) break;
      std::uint32_t elements[kPerWord];
#pragma unroll
      for (int k = 0; k < kPerWord; ++k) {
        elements[k] = *reinterpret_cast<const T*>(tile + stored[i * kPerWord + k]);
      }
      std::uint32_t word = elements[0];
      if constexpr (kBytes == 1) word = JoinBytes(elements[0], elements[1], elements[2], elements[3]);
      if constexpr (kBytes == 2) word = Join16Bit(elements[0], elements[1]);
      *reinterpret_cast<std::uint32_t*>(to + word_of(i) * kBlockWord) = word;
    }
    if (kBytes < kBlockWord && thread < bytes % kBlockWord / kBytes) {
      const std::uint32_t element = words * kPerWord + thread;
      reinterpret_cast<T*>(to)[element] =
          *reinterpret_cast<const T*>(tile + CallPlaceOfElement(blocks, element, kBytes));
    }
    __syncthreads();
  }
}

template <int kBytes>
cudaError_t Launch(const SmallBlocks& blocks, int multiprocessors, const void* in, void* out,
                   cudaStream_t stream) {
  return LaunchInTurn(blocks.boxes, kBoxesInTurn, kBlockCtas, multiprocessors, [&](unsigned grid) {
    MoveSmallBlocks<kBytes><<<grid, kBlockThreads, 2 * blocks.tile_bytes, stream>>>(
        static_cast<const char*>(in), static_cast<char*>(out), blocks);
  });
}

}  // namespace

cudaError_t LaunchSmallBlocks(const SmallBlocks& blocks, std::size_t element_bytes,
                              const DeviceTraits& traits, const void* in, void* out, cudaStream_t stream) {
  switch (element_bytes) {
    case 1:
      return Launch<1>(blocks, traits.multiprocessors, in, out, stream);
    case 2:
      return Launch<2>(blocks, traits.multiprocessors, in, out, stream);
    case 4:
      return Launch<4>(blocks, traits.multiprocessors, in, out, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
