// Division by a number that is known before a kernel starts. A multiplication and a shift replace the twenty
// instructions of a 32-bit division.
#ifndef WARPLINE_KERNELS_FAST_DIVISOR_H_
#define WARPLINE_KERNELS_FAST_DIVISOR_H_

#include <bit>
#include <cstdint>

#include "kernels/host_device.h"

namespace warpline {

// Divides dividends below 2^31 by a divisor in [1, 2^31]. Let s be the base-2 logarithm of the divisor d,
// rounded up, and m = ceil(2^(31 + s) / d), which fits in 32 bits. Then m d exceeds 2^(31 + s) by less than
// 2^s. So n m / 2^(31 + s) exceeds n / d by less than 1 / d, and both have the same integral part.
struct FastDivisor {
  std::uint32_t divisor = 1;
  std::uint32_t multiplier = std::uint32_t{1} << 31;
  std::uint32_t shift = 0;

  static constexpr std::int64_t kMax = std::int64_t{1} << 31;  // upper limit of both dividends and divisors

  FastDivisor() = default;
  explicit FastDivisor(std::int64_t d) : divisor(static_cast<std::uint32_t>(d)) {
    shift = static_cast<std::uint32_t>(std::bit_width(divisor - 1));
    multiplier = static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + shift)) + divisor - 1) / divisor);
  }

  WARPLINE_HOST_DEVICE std::uint32_t Quotient(std::uint32_t dividend) const {
#ifdef __CUDA_ARCH__
    return __umulhi(dividend << 1, multiplier) >> shift;
#else
    return static_cast<std::uint32_t>(std::uint64_t{dividend} * multiplier >> 31 >> shift);
#endif
  }
};

// Divides `index` and returns the remainder.
WARPLINE_HOST_DEVICE inline std::uint32_t TakeRemainder(std::uint32_t& index, const FastDivisor& divisor) {
  const std::uint32_t quotient = divisor.Quotient(index);
  const std::uint32_t remainder = index - quotient * divisor.divisor;
  index = quotient;
  return remainder;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_FAST_DIVISOR_H_
