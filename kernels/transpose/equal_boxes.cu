// Variant `equal_boxes`: many boxes (packed_box.h) that all begin and end on 4-byte word boundaries. The
// words that a thread moves lie at the same positions in every box. The thread computes these positions once,
// keeps them in registers, and moves one box after another. While it writes one box, the next one is being
// loaded. packed_box.cu handles all other boxes; there, computing the positions takes most of the
// instructions.
//
// Limit: waiting for words from shared memory, because the positions need so many registers that a
// multiprocessor has only 24 warps; and sectors that boxes share if runs are short.
#include <cuda_pipeline_primitives.h>

#include "kernels/transpose/boxes_in_turn.cuh"
#include "kernels/transpose/equal_boxes.h"
#include "kernels/transpose/kernels.h"
#include "kernels/transpose/micro_transpose.h"

namespace warpline {
namespace {

constexpr int kMaxWords = kEqualBoxBytes / kEqualBoxThreads / kEqualBoxWord;  // per thread
static_assert(kMaxWords * kEqualBoxThreads * kEqualBoxWord == kEqualBoxBytes);
static_assert(kBoxesOfCta <= kEqualBoxThreads);

// The positions of a thread's words, in bytes from the beginning of a box.
struct WordPlaces {
  std::uint32_t in[kMaxWords], out[kMaxWords];
  std::uint32_t tile[kMaxWords];  // lower half: for loads; upper half: for stores
};

// These are real calls, so that their registers do not add to those of the loop over boxes.
__device__ __noinline__ WordPlace CallFindWord(const PackedBox& box, std::uint32_t word,
                                               std::uint32_t element_bytes) {
  return FindWord(box, word, element_bytes);
}
__device__ __noinline__ BoxOrigin CallLocateBox(const PackedBox& box, std::int64_t index) {
  return LocateBox(box, index);
}

// Gathers the word whose first element is at `from` and whose elements are `stride` bytes apart.
template <int kBytes>
__device__ std::uint32_t GatherWord(const char* from, std::uint32_t stride) {
  if constexpr (kBytes == 4) {
    return *reinterpret_cast<const std::uint32_t*>(from);
  } else if constexpr (kBytes == 2) {
    const auto half = [&](std::uint32_t i) {
      return std::uint32_t{*reinterpret_cast<const std::uint16_t*>(from + i * stride)};
    };
    return Join16Bit(half(0), half(1));
  } else {
    const auto byte = [&](std::uint32_t i) {
      return std::uint32_t{*reinterpret_cast<const std::uint8_t*>(from + i * stride)};
    };
    return JoinBytes(byte(0), byte(1), byte(2), byte(3));
  }
}

template <int kBytes>
__global__ void __launch_bounds__(kEqualBoxThreads, kEqualBoxCtas)
    MoveEqualBoxes(const char* __restrict__ in, char* __restrict__ out,
                   const __grid_constant__ PackedBox box) {
  extern __shared__ uint4 shared[];
  __shared__ BoxOrigin origins[kBoxesOfCta];  // SuitEqualBoxes includes this in its limit
  char* const tiles = reinterpret_cast<char*>(shared);
  const std::uint32_t thread = threadIdx.x;
  // Returns how many words this thread moves.
  const auto count = [thread](const BoxRows& rows) {
    return static_cast<int>((rows.row_count * rows.words + kEqualBoxThreads - 1 - thread) / kEqualBoxThreads);
  };
  const int loads = count(box.load), stores = count(box.store);
  WordPlaces places;
#pragma unroll
  for (int i = 0; i < kMaxWords; ++i) {
    const std::uint32_t word = thread + static_cast<std::uint32_t>(i) * kEqualBoxThreads;
    const WordPlace found = CallFindWord(box, word, kBytes);
    places.in[i] = found.in;
    places.out[i] = found.out;
    places.tile[i] = found.loaded | found.stored << 16;
  }
  // This CTA moves boxes blockIdx.x, blockIdx.x + gridDim.x, and so on.
  const auto boxes = static_cast<int>((box.boxes - blockIdx.x + gridDim.x - 1) / gridDim.x);
  if (thread < static_cast<std::uint32_t>(boxes)) {
    origins[thread] = CallLocateBox(box, blockIdx.x + std::int64_t{thread} * gridDim.x);
  }
  __syncthreads();
  const auto load = [&](int i_box) {
    if (i_box < boxes) {
      const char* from = in + origins[i_box].in;
      char* tile = tiles + i_box % 2 * box.tile_bytes;
#pragma unroll
      for (int i = 0; i < kMaxWords; ++i) {
        if (i < loads) {
          __pipeline_memcpy_async(tile + LowerHalf(places.tile[i]), from + places.in[i], kEqualBoxWord);
        }
      }
    }
    __pipeline_commit();
  };

  load(0);
  for (int i_box = 0; i_box < boxes; ++i_box) {
    load(i_box + 1);
    __pipeline_wait_prior(1);
    __syncthreads();
    const char* tile = tiles + i_box % 2 * box.tile_bytes;
    char* to = out + origins[i_box].out;
#pragma unroll
    for (int i = 0; i < kMaxWords; ++i) {
      if (i < stores) {
        *reinterpret_cast<std::uint32_t*>(to + places.out[i]) =
            GatherWord<kBytes>(tile + UpperHalf(places.tile[i]), box.gather.inner_stride);
      }
    }
    __syncthreads();
  }
}

template <int kBytes>
cudaError_t Launch(const PackedBox& box, int multiprocessors, const void* in, void* out,
                   cudaStream_t stream) {
  return LaunchInTurn(box.boxes, kBoxesOfCta, kEqualBoxCtas, multiprocessors, [&](unsigned grid) {
    MoveEqualBoxes<kBytes><<<grid, kEqualBoxThreads, 2 * box.tile_bytes, stream>>>(
        static_cast<const char*>(in), static_cast<char*>(out), box);
  });
}

}  // namespace

cudaError_t LaunchEqualBoxes(const PackedBox& box, std::size_t element_bytes, int multiprocessors,
                             const void* in, void* out, cudaStream_t stream) {
  switch (element_bytes) {
    case 1:
      return Launch<1>(box, multiprocessors, in, out, stream);
    case 2:
      return Launch<2>(box, multiprocessors, in, out, stream);
    case 4:
      return Launch<4>(box, multiprocessors, in, out, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline
