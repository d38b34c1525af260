// Division of an index. Kernels divide once for every element or tile that they locate by its number.
#ifndef WARPLINE_KERNELS_TAKE_REMAINDER_H_
#define WARPLINE_KERNELS_TAKE_REMAINDER_H_

#include <cstdint>

#include "kernels/host_device.h"

namespace warpline {

// Divides `index` and returns the remainder; neither is negative. A 64-bit division takes about a hundred
// instructions per thread, more than all other work for an element. So it is used only if necessary.
WARPLINE_HOST_DEVICE inline std::int64_t TakeRemainder(std::int64_t& index, std::int64_t divisor) {
  if (((index | divisor) >> 32) == 0) {
    const auto dividend = static_cast<std::uint32_t>(index);
    const std::uint32_t quotient = dividend / static_cast<std::uint32_t>(divisor);
    index = quotient;
    return dividend - quotient * static_cast<std::uint32_t>(divisor);
  }
  const std::int64_t remainder = index % divisor;
  index /= divisor;
  return remainder;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TAKE_REMAINDER_H_
