// Transposes a micro-tile in registers. Byte permutations regroup words instead of extracting single
// elements: one instruction for two 16-bit elements, two for four bytes. The loops have constant bounds, and
// nvcc unrolls them without a pragma (which would cause warnings from the host compiler in the test).
#ifndef WARPLINE_KERNELS_TRANSPOSE_MICRO_TRANSPOSE_H_
#define WARPLINE_KERNELS_TRANSPOSE_MICRO_TRANSPOSE_H_

#include <cstdint>

#include "kernels/transpose/swizzle.h"

namespace warpline {

struct alignas(kChunkBytes) Chunk {
  std::uint32_t words[4];
};

// The PRMT instruction: byte i of the result is byte (nibble i of the selector) of the 8 bytes hi:lo.
WARPLINE_HOST_DEVICE inline std::uint32_t PermuteBytes(std::uint32_t lo, std::uint32_t hi,
                                                       std::uint32_t selector) {
#ifdef __CUDA_ARCH__
  return __byte_perm(lo, hi, selector);
#else
  const std::uint64_t bytes = std::uint64_t{hi} << 32 | lo;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    result |= static_cast<std::uint32_t>(bytes >> (selector >> (4 * i) & 7) * 8 & 0xff) << (8 * i);
  }
  return result;
#endif
}

// Return the word of two 16-bit elements, or of four bytes. Each element is in its own word, whose other
// bytes are zero.
WARPLINE_HOST_DEVICE inline std::uint32_t Join16Bit(std::uint32_t a, std::uint32_t b) {
  return PermuteBytes(a, b, 0x5410);
}
WARPLINE_HOST_DEVICE inline std::uint32_t JoinBytes(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                                    std::uint32_t d) {
  return Join16Bit(PermuteBytes(a, b, 0x0040), PermuteBytes(c, d, 0x0040));
}

// Transposes in place: 4 words of 4 bytes each, 2 words of two 16-bit elements each, or 1 word of any
// element.
template <int kBytes, typename Word, int kPerWord>
WARPLINE_HOST_DEVICE inline void TransposeWords(Word (&words)[kPerWord]) {
  static_assert(kPerWord == 1 || kPerWord * kBytes == sizeof(Word));
  if constexpr (kBytes == 1) {
    const Word a = words[0], b = words[1], c = words[2], d = words[3];
    const Word ab_lo = PermuteBytes(a, b, 0x5140), ab_hi = PermuteBytes(a, b, 0x7362);
    const Word cd_lo = PermuteBytes(c, d, 0x5140), cd_hi = PermuteBytes(c, d, 0x7362);
    words[0] = PermuteBytes(ab_lo, cd_lo, 0x5410);
    words[1] = PermuteBytes(ab_lo, cd_lo, 0x7632);
    words[2] = PermuteBytes(ab_hi, cd_hi, 0x5410);
    words[3] = PermuteBytes(ab_hi, cd_hi, 0x7632);
  } else if constexpr (kBytes == 2) {
    const Word a = words[0], b = words[1];
    words[0] = PermuteBytes(a, b, 0x5410);
    words[1] = PermuteBytes(a, b, 0x7632);
  }
}

// `in` and `out` have kVector rows of kVector elements each: element j of out[i] is element i of in[j].
template <int kBytes>
WARPLINE_HOST_DEVICE inline void TransposeMicroTile(const Chunk (&in)[kChunkBytes / kBytes],
                                                    Chunk (&out)[kChunkBytes / kBytes]) {
  constexpr int kVector = kChunkBytes / kBytes;
  if constexpr (kBytes >= 4) {
    constexpr int kWords = kBytes / 4;
    for (int i = 0; i < kVector; ++i) {
      for (int word = 0; word < 4; ++word) {
        out[i].words[word] = in[word / kWords].words[i * kWords + word % kWords];
      }
    }
  } else if constexpr (kBytes == 2) {
    for (int i = 0; i < kVector; ++i) {
      for (int word = 0; word < 4; ++word) {
        out[i].words[word] = PermuteBytes(in[2 * word].words[i / 2], in[2 * word + 1].words[i / 2],
                                          i % 2 == 0 ? 0x5410 : 0x7632);
      }
    }
  } else {
    for (int column = 0; column < 4; ++column) {  // column of 4 x 4 bytes
      for (int row = 0; row < 4; ++row) {
        std::uint32_t words[4];
        for (int i = 0; i < 4; ++i) words[i] = in[4 * row + i].words[column];
        TransposeWords<1>(words);
        for (int i = 0; i < 4; ++i) out[4 * column + i].words[row] = words[i];
      }
    }
  }
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_MICRO_TRANSPOSE_H_
