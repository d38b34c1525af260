// Converts pixels with few channels between the two usual orders of images: all channels of a pixel together
// (interleaved), or one plane per channel (planar). Works in registers. Separate from the kernel
// (transpose/channels.cu), so that host tests can check it.
#ifndef WARPLINE_KERNELS_TRANSPOSE_INTERLEAVE_H_
#define WARPLINE_KERNELS_TRANSPOSE_INTERLEAVE_H_

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/transpose/micro_transpose.h"
#include "kernels/transpose/swizzle.h"

namespace warpline {

// A group of the pixels that share one chunk of a plane. Their channels have kBytes each, 1 or 2. The group
// has kChannels chunks in either order.
template <int kBytes, int kChannels>
struct PixelGroup {
  static constexpr int kPixels = kChunkBytes / kBytes;
  static constexpr int kPerWord = 4 / kBytes;
  static_assert(kBytes == 1 || kBytes == 2);

  // The position of a pixel's element: the word of the group, and the element within the word.
  struct Place {
    int word, element;
  };
  WARPLINE_HOST_DEVICE static constexpr Place Interleaved(int pixel, int channel) {
    const int element = pixel * kChannels + channel;
    return {element / kPerWord, element % kPerWord};
  }
  WARPLINE_HOST_DEVICE static constexpr Place Planar(int pixel, int channel) {
    return {channel * 4 + pixel / kPerWord, pixel % kPerWord};
  }

  // out[i] has all elements of channel i. Interleave is the reverse.
  WARPLINE_HOST_DEVICE static void Deinterleave(const Chunk (&in)[kChannels], Chunk (&out)[kChannels]) {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int word = 0; word < 4 * kChannels; ++word) {
      const int channel = word / 4, pixel = word % 4 * kPerWord;
      Place from[kPerWord];
      for (int i = 0; i < kPerWord; ++i) from[i] = Interleaved(pixel + i, channel);
      out[word / 4].words[word % 4] = Gather(in, from);
    }
  }
  WARPLINE_HOST_DEVICE static void Interleave(const Chunk (&in)[kChannels], Chunk (&out)[kChannels]) {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int word = 0; word < 4 * kChannels; ++word) {
      Place from[kPerWord];
      for (int i = 0; i < kPerWord; ++i) {
        const int element = word * kPerWord + i;
        from[i] = Planar(element / kChannels, element % kChannels);
      }
      out[word / 4].words[word % 4] = Gather(in, from);
    }
  }

 private:
  // Returns the word that consists of these elements.
  WARPLINE_HOST_DEVICE static std::uint32_t Gather(const Chunk (&in)[kChannels],
                                                   const Place (&from)[kPerWord]) {
    const auto both = [&](int first, int second) {
      const Place a = from[first], b = from[second];
      const auto bytes = [](Place place) -> std::uint32_t {  // nibbles for the selector of PermuteBytes
        return kBytes == 1 ? static_cast<std::uint32_t>(place.element)
                           : static_cast<std::uint32_t>(place.element) * 0x22u + 0x10u;
      };
      constexpr std::uint32_t kOfSecond = kBytes == 1 ? 0x4u : 0x44u;
      return PermuteBytes(in[a.word / 4].words[a.word % 4], in[b.word / 4].words[b.word % 4],
                          bytes(a) | (bytes(b) + kOfSecond) << (4 * kBytes));
    };
    if constexpr (kBytes == 2) {
      return both(0, 1);
    } else {
      return PermuteBytes(both(0, 1), both(2, 3), 0x5410);
    }
  }
};

// Returns the position of a chunk in shared memory, where the interleaved groups of a warp lie one after
// another, with kChannels chunks each. Lanes access either one group each, or neighbouring chunks. Neither
// access has bank conflicts, for 2, 4, 8 or 16 channels or any odd number of them.
template <int kChannels>
WARPLINE_HOST_DEVICE constexpr int PlaceOfChunk(int chunk) {
  return kChannels % 2 != 0 ? chunk : chunk ^ ((chunk >> 3 ^ chunk >> 6) & 7);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_INTERLEAVE_H_
