// The C++ types that stand for the element types on the CPU, and what each is computed in.
#ifndef WARPLINE_KERNELS_CPU_FLOAT16_H_
#define WARPLINE_KERNELS_CPU_FLOAT16_H_

#include <Eigen/Core>
#include <cstdint>
#include <type_traits>

#include "kernels/dtype.h"

namespace warpline::cpu {

// Eigen's types have the bit layouts of IEEE binary16 and of bfloat16, and round to nearest even.
using Float16 = Eigen::half;
using BFloat16 = Eigen::bfloat16;

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// What an element is widened to before arithmetic: float for the 16-bit types, itself otherwise.
template <typename T>
using Compute = std::conditional_t<kIsHalf<T>, float, T>;

// Rounds to T. The 16-bit types go through float: their two roundings differ from one by less than one part
// in 2^12 of the last place, which no error bound of ours can tell.
template <typename T, typename From>
T RoundTo(From value) {
  if constexpr (kIsHalf<T>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

// Calls `f` with std::type_identity<T> of the type T that stands for `dtype`.
template <typename F>
void VisitDType(DType dtype, F&& f) {
  switch (dtype) {
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
  }
}

}  // namespace warpline::cpu

#endif  // WARPLINE_KERNELS_CPU_FLOAT16_H_
