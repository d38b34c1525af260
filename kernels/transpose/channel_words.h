// Matrices with one side that consists of any number of channels of pixels: decides which of them suit the
// kernels of channel_words.cu, and converts the pixels of a word between the two orders. Separate from the
// kernels, so that host tests can check it.
#ifndef WARPLINE_KERNELS_TRANSPOSE_CHANNEL_WORDS_H_
#define WARPLINE_KERNELS_TRANSPOSE_CHANNEL_WORDS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/fast_divisor.h"
#include "kernels/host_device.h"
#include "kernels/transpose/channels.h"
#include "kernels/transpose/micro_transpose.h"
#include "kernels/transpose/tile_walk.h"

namespace warpline {

// Returns how to move such a matrix by words: split if x is the channel axis, joined if y is; kNone if words
// do not suit it. Elements have 1 or 2 bytes, or 4 when they are split. The input must begin on a 4-byte word
// boundary.
ChannelSide ChannelWordsOf(const TileWalk& walk, std::size_t element_bytes, const void* in, const void* out);

// Returns whether the written planes, and the pixels of each matrix, begin on word boundaries.
bool BeginWithWords(const TileWalk& walk, std::size_t element_bytes, const void* in, const void* out);

// The part that a CTA moves: 2^words_log2 words of each plane, and the interleaved words of their pixels. If
// written planes are unaligned, it is one word in 32 less. In shared memory, the interleaved words of
// neighbouring plane words are `pitch` apart. `pitch` is odd, so that lanes access all banks.
struct ChannelShare {
  int channels, words_log2, pitch;
  FastDivisor divisor;  // for `channels`
  WARPLINE_HOST_DEVICE int Words() const { return 1 << words_log2; }
  // The number of words that a warp reads for unaligned planes. It writes one less, because each written word
  // is assembled from two. The last one is also the first of the next warp.
  static constexpr int kWarpWords = 32;
  WARPLINE_HOST_DEVICE int UnalignedWords() const { return Words() / kWarpWords * (kWarpWords - 1); }
  // Returns the position of an interleaved word in shared memory, in words.
  WARPLINE_HOST_DEVICE int PlaceOf(int word) const {
    if (pitch == channels) return word;
    return word + static_cast<int>(divisor.Quotient(static_cast<std::uint32_t>(word)));
  }
  // Rows of plane words have one more word, because planes that are read may begin in the middle of a word.
  WARPLINE_HOST_DEVICE int Row() const { return Words() + 1; }
};

// Chooses the share for planes of `words` 4-byte words, `plane_bytes` apart. Set `unaligned` if the planes
// are written and do not begin on a word boundary.
ChannelShare ShareOf(ChannelSide side, std::int64_t channels, std::int64_t words, std::int64_t plane_bytes,
                     bool unaligned);

// Returns 4 bytes of the sequence low, high: those that begin `bits` bits before `high`.
WARPLINE_HOST_DEVICE inline std::uint32_t ShiftIn(std::uint32_t low, std::uint32_t high, std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __funnelshift_l(low, high, bits);
#else
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) << bits >> 32);
#endif
}
// Returns 4 bytes of the sequence low, high: those that begin `bits` bits after the start of `low`.
WARPLINE_HOST_DEVICE inline std::uint32_t ShiftOut(std::uint32_t low, std::uint32_t high,
                                                   std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __funnelshift_r(low, high, bits);
#else
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> bits);
#endif
}

// The 4 / kBytes pixels of one word of a plane: `channels` words when interleaved, one word per plane when
// planar. They change between the two orders in groups of 4 / kBytes channels, so that threads can share the
// groups.
template <int kBytes>
struct WordOfPixels {
  static constexpr int kPixels = 4 / kBytes;
  static constexpr int kUnrolled = kPixels == 4 ? 2 : 4;  // groups; more would need too many registers

  WARPLINE_HOST_DEVICE static constexpr int Groups(int channels) {
    return (channels + kPixels - 1) / kPixels;
  }
  // The position at which an interleaved pixel begins: the word, and the number of bits into it.
  WARPLINE_HOST_DEVICE static constexpr int WordOf(int pixel, int channels) {
    return pixel * channels * kBytes / 4;
  }
  WARPLINE_HOST_DEVICE static constexpr std::uint32_t BitsInto(int pixel, int channels) {
    return static_cast<std::uint32_t>(pixel * channels * kBytes % 4 * 8);
  }

  // Joins groups [begin, end). load(c) returns the word of plane c; store(i, word) gets interleaved word i.
  // There must be at least kPixels channels.
  template <typename Load, typename Store>
  WARPLINE_HOST_DEVICE static void Join(int channels, int begin, int end, Load load, Store store) {
    // For each pixel, the channels before the group's channels: of the same pixel, or the last ones of the
    // previous pixel.
    std::uint32_t before[kPixels], words[kPixels];
    const int previous = begin > 0 ? (begin - 1) * kPixels : channels - kPixels;
    for (int i = 0; i < kPixels; ++i) words[i] = load(previous + i);
    TransposeWords<kBytes>(words);
    for (int pixel = 0; pixel < kPixels; ++pixel) {
      before[pixel] = begin > 0 ? words[pixel] : pixel > 0 ? words[pixel - 1] : 0;
    }
    const int whole = channels / kPixels;
#ifdef __CUDA_ARCH__
#pragma unroll kUnrolled
#endif
    for (int group = begin; group < (end < whole ? end : whole); ++group) {
      for (int i = 0; i < kPixels; ++i) words[i] = load(group * kPixels + i);
      TransposeWords<kBytes>(words);
      for (int pixel = 0; pixel < kPixels; ++pixel) {
        store(WordOf(pixel, channels) + group,
              ShiftIn(before[pixel], words[pixel], BitsInto(pixel, channels)));
        before[pixel] = words[pixel];
      }
    }
    if (end <= whole) return;
    for (int i = 0; i < kPixels; ++i) {
      const int channel = whole * kPixels + i;
      words[i] = load(channel < channels ? channel : channels - 1);
    }
    TransposeWords<kBytes>(words);
    for (int pixel = 0; pixel < kPixels; ++pixel) {
      const int word = WordOf(pixel, channels) + whole;
      // If the next pixel begins in this word, that pixel writes it.
      if (word < WordOf(pixel + 1, channels)) {
        store(word, ShiftIn(before[pixel], words[pixel], BitsInto(pixel, channels)));
      }
    }
  }

  // The reverse: load(i) for i in [0, channels] returns interleaved word i, of which the last may have any
  // value. store(c, word) gets the word of plane c.
  template <typename Load, typename Store>
  WARPLINE_HOST_DEVICE static void Split(int channels, int begin, int end, Load load, Store store) {
    std::uint32_t next[kPixels], words[kPixels];
    for (int pixel = 0; pixel < kPixels; ++pixel) next[pixel] = load(WordOf(pixel, channels) + begin);
    const int whole = channels / kPixels;
#ifdef __CUDA_ARCH__
#pragma unroll kUnrolled
#endif
    for (int group = begin; group < (end < whole ? end : whole); ++group) {
      for (int pixel = 0; pixel < kPixels; ++pixel) {
        const std::uint32_t word = load(WordOf(pixel, channels) + group + 1);
        words[pixel] = ShiftOut(next[pixel], word, BitsInto(pixel, channels));
        next[pixel] = word;
      }
      TransposeWords<kBytes>(words);
      for (int i = 0; i < kPixels; ++i) store(group * kPixels + i, words[i]);
    }
    if (end <= whole) return;
    for (int pixel = 0; pixel < kPixels; ++pixel) {
      const int after = WordOf(pixel, channels) + whole + 1;
      words[pixel] =
          ShiftOut(next[pixel], load(after < channels ? after : channels), BitsInto(pixel, channels));
    }
    TransposeWords<kBytes>(words);
    for (int i = 0; i < kPixels; ++i) {
      if (whole * kPixels + i < channels) store(whole * kPixels + i, words[i]);
    }
  }
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_CHANNEL_WORDS_H_
