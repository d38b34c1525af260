// Conversion from floating-point to integer without undefined behaviour, as casts and integer results of
// reductions require.
#ifndef WARPLINE_KERNELS_SATURATING_CAST_H_
#define WARPLINE_KERNELS_SATURATING_CAST_H_

#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/host_device.h"

namespace warpline {

// Variables, because device code can use their values but cannot call functions of numeric_limits.
template <typename Integer>
inline constexpr Integer kMinOf = std::numeric_limits<Integer>::min();
template <typename Integer>
inline constexpr Integer kGreatestOf = std::numeric_limits<Integer>::max();

// Also works in device code, where std::isnan does not accept integers. Integers are never NaN.
template <typename V>
WARPLINE_HOST_DEVICE constexpr bool IsNaN(V value) {
  return value != value;  // NOLINT(misc-redundant-expression)
}

// Truncates. Values out of range become the nearest integer in range; NaN becomes 0.
template <typename Integer, typename Float>
WARPLINE_HOST_DEVICE constexpr Integer SaturatingCast(Float value) {
  static_assert(std::is_integral_v<Integer> && std::is_floating_point_v<Float>);
  using Limits = std::numeric_limits<Integer>;
  // 2^digits is a power of two, so it is exact in every floating-point type. The greatest integer is not.
  constexpr Float kBeyond = static_cast<Float>(std::uint64_t{1} << (Limits::digits - 1)) * 2;
  if (IsNaN(value)) return 0;
  if (value >= kBeyond) return kGreatestOf<Integer>;
  if (value < static_cast<Float>(kMinOf<Integer>)) return kMinOf<Integer>;
  return static_cast<Integer>(value);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_SATURATING_CAST_H_
