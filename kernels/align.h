// Rounding of sizes and offsets.
#ifndef WARPLINE_KERNELS_ALIGN_H_
#define WARPLINE_KERNELS_ALIGN_H_

#include <cstddef>

namespace warpline {

// Returns the smallest multiple of `alignment` that is not below `bytes`.
constexpr std::size_t AlignUp(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_ALIGN_H_
