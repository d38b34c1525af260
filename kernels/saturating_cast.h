// From floating-point to integer without undefined behaviour: what casts and integer results of reductions
// promise.
#ifndef WARPLINE_KERNELS_SATURATING_CAST_H_
#define WARPLINE_KERNELS_SATURATING_CAST_H_

#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/host_device.h"

namespace warpline {

// Variables, since device code may use their values but not call the functions of numeric_limits.
template <typename Integer>
inline constexpr Integer kMinOf = std::numeric_limits<Integer>::min();
template <typename Integer>
inline constexpr Integer kGreatestOf = std::numeric_limits<Integer>::max();

// In device code as well, where std::isnan is not for integers; those never are.
template <typename V>
WARPLINE_HOST_DEVICE constexpr bool IsNaN(V value) {
  return value != value;  // NOLINT(misc-redundant-expression)
}

// Truncates; what is out of range becomes the nearest integer in range, NaN 0.
template <typename Integer, typename Float>
WARPLINE_HOST_DEVICE constexpr Integer SaturatingCast(Float value) {
  static_assert(std::is_integral_v<Integer> && std::is_floating_point_v<Float>);
  using Limits = std::numeric_limits<Integer>;
  // 2^digits is a power of two and so exact in every floating-point type, unlike the greatest integer.
  constexpr Float kBeyond = static_cast<Float>(std::uint64_t{1} << (Limits::digits - 1)) * 2;
  if (IsNaN(value)) return 0;
  if (value >= kBeyond) return kGreatestOf<Integer>;
  if (value < static_cast<Float>(kMinOf<Integer>)) return kMinOf<Integer>;
  return static_cast<Integer>(value);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_SATURATING_CAST_H_
