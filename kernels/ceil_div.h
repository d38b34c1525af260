#ifndef WARPLINE_KERNELS_CEIL_DIV_H_
#define WARPLINE_KERNELS_CEIL_DIV_H_

#include <cstdint>

namespace warpline {

// Divides and rounds up, for non-negative a and positive b.
constexpr std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace warpline

#endif  // WARPLINE_KERNELS_CEIL_DIV_H_
