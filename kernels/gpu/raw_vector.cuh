// Elements that are loaded or stored together, as words. Their type is given only when one is extracted. (The
// compiler would keep arrays of 8-bit and 16-bit elements in local memory.)
#ifndef WARPLINE_KERNELS_GPU_RAW_VECTOR_CUH_
#define WARPLINE_KERNELS_GPU_RAW_VECTOR_CUH_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/gpu/real.cuh"

namespace warpline {

// 1 to 16 bytes, a power of two, aligned to their size.
template <int kBytes>
struct alignas(kBytes) RawVector {
  using Word = std::conditional_t<kBytes >= 4, std::uint32_t,
                                  std::conditional_t<kBytes == 2, std::uint16_t, std::uint8_t>>;
  static constexpr int kWords = kBytes / static_cast<int>(sizeof(Word));
  Word words[kWords];
};

// Converts the bits of an element to the element.
template <typename T, typename Bits>
__device__ T FromBits(Bits bits) {
  if constexpr (std::is_same_v<T, DeviceBool>) {
    return static_cast<DeviceBool>(bits);
  } else {
    T element;
    memcpy(&element, &bits, sizeof(T));
    return element;
  }
}

// Returns element i; i must be a constant after unrolling.
template <typename T, int kBytes>
__device__ T Element(const RawVector<kBytes>& raw, int i) {
  using Word = typename RawVector<kBytes>::Word;
  if constexpr (sizeof(T) >= sizeof(Word)) {
    T element;
    memcpy(&element, &raw.words[i * (sizeof(T) / sizeof(Word))], sizeof(T));
    return element;
  } else {
    constexpr int kPerWord = sizeof(Word) / sizeof(T), kBits = 8 * sizeof(T);
    const Word shifted = raw.words[i / kPerWord] >> (i % kPerWord * kBits);
    if constexpr (sizeof(T) == 2) return FromBits<T>(static_cast<std::uint16_t>(shifted));
    return FromBits<T>(static_cast<std::uint8_t>(shifted));
  }
}

// Sets element i of a vector, where it must have been zero.
template <typename T, int kBytes>
__device__ void SetElement(RawVector<kBytes>& raw, int i, T element) {
  using Word = typename RawVector<kBytes>::Word;
  if constexpr (sizeof(T) >= sizeof(Word)) {
    memcpy(&raw.words[i * (sizeof(T) / sizeof(Word))], &element, sizeof(T));
  } else {
    using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>;
    Bits bits;
    memcpy(&bits, &element, sizeof(bits));
    constexpr int kPerWord = sizeof(Word) / sizeof(T), kBits = 8 * sizeof(T);
    const Word placed = static_cast<Word>(static_cast<Word>(bits) << (i % kPerWord * kBits));
    raw.words[i / kPerWord] = static_cast<Word>(raw.words[i / kPerWord] | placed);
  }
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GPU_RAW_VECTOR_CUH_
