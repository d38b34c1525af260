// The C++ types that represent the element types on the CPU, and the types in which they are computed.
#ifndef WARPLINE_KERNELS_CPU_FLOAT16_H_
#define WARPLINE_KERNELS_CPU_FLOAT16_H_

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/dtype.h"

namespace warpline::cpu {

// Eigen's types have the bit layouts of IEEE binary16 and of bfloat16, and round to nearest even.
using Float16 = Eigen::half;
using BFloat16 = Eigen::bfloat16;

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// The type to which an element is widened before arithmetic: float for 16-bit types, otherwise T itself.
template <typename T>
using Compute = std::conditional_t<kIsHalf<T>, float, T>;

// A byte; only zero is false.
struct Bool {
  std::uint8_t byte;
  Bool() = default;
  explicit Bool(bool value) : byte(value ? 1 : 0) {}
};

// Rounds to f32 so that a second rounding, to a 16-bit type, gives the same as a single rounding of `value`:
// inexact results get an odd last bit. S. Boldo, G. Melquiond, "When double rounding is odd", 2005.
inline float RoundToOdd(long double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<long double>(nearest) == value || !std::isfinite(nearest)) return nearest;
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  const bool away = std::fabs(static_cast<long double>(nearest)) > std::fabs(value);
  return std::bit_cast<float>((away ? bits - 1 : bits) | 1);
}

// Rounds to T once, to nearest even.
template <typename T, typename From>
T RoundTo(From value) {
  if constexpr (kIsHalf<T> && std::is_same_v<From, float>) {
    return T(value);
  } else if constexpr (kIsHalf<T>) {
    return T(RoundToOdd(static_cast<long double>(value)));
  } else {
    return static_cast<T>(value);
  }
}

// Calls `f` with std::type_identity<T> of the type T that represents `dtype`, which must be IsReal.
template <typename F>
void VisitReal(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool:
      return f(std::type_identity<Bool>());
    case DType::kU8:
      return f(std::type_identity<std::uint8_t>());
    case DType::kU16:
      return f(std::type_identity<std::uint16_t>());
    case DType::kU32:
      return f(std::type_identity<std::uint32_t>());
    case DType::kU64:
      return f(std::type_identity<std::uint64_t>());
    case DType::kI8:
      return f(std::type_identity<std::int8_t>());
    case DType::kI16:
      return f(std::type_identity<std::int16_t>());
    case DType::kI32:
      return f(std::type_identity<std::int32_t>());
    case DType::kI64:
      return f(std::type_identity<std::int64_t>());
    case DType::kF16:
      return f(std::type_identity<Float16>());
    case DType::kBF16:
      return f(std::type_identity<BFloat16>());
    case DType::kF32:
      return f(std::type_identity<float>());
    case DType::kF64:
      return f(std::type_identity<double>());
    case DType::kC64:
    case DType::kC128:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return;
  }
}

}  // namespace warpline::cpu

#endif  // WARPLINE_KERNELS_CPU_FLOAT16_H_
