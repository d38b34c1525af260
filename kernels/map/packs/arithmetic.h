// The arithmetic of one element.
#ifndef WARPLINE_KERNELS_MAP_PACKS_ARITHMETIC_H_
#define WARPLINE_KERNELS_MAP_PACKS_ARITHMETIC_H_

#include <cstdint>
#include <type_traits>

#include "kernels/host_device.h"
#include "kernels/map/pair.h"

namespace warpline {

// Calls f with std::type_identity of the type in which the operation is computed. For a cast, it can
// represent every element. Otherwise it is float, double, or std::uint64_t, which computes all integer types
// modulo 2^64.
template <typename F>
auto VisitArithmetic(const PairMap& problem, F&& f) {
  const bool casts = problem.op == PairOp::kCast;
  if (IsFloat(problem.dtype)) {
    if (problem.dtype == DType::kF64) return f(std::type_identity<double>());
    return f(std::type_identity<float>());
  }
  if (casts && IsSigned(problem.dtype)) return f(std::type_identity<std::int64_t>());
  return f(std::type_identity<std::uint64_t>());
}

template <typename V>
WARPLINE_HOST_DEVICE V FactorOf(const StepScalars& scalars) {
  if constexpr (std::is_integral_v<V>) {
    return static_cast<V>(scalars.alpha_i64);
  } else if constexpr (std::is_same_v<V, double>) {
    return scalars.alpha_f64;
  } else {
    return scalars.alpha_f32;
  }
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_MAP_PACKS_ARITHMETIC_H_
