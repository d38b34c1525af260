// The types of matrix products on the CPU, and the conversion of a finished sum to an element of D. Integers
// are computed modulo 2^bits. The sign makes no difference then, unless the result is wider than the
// operands. So an unsigned type is used for both integer types of a width.
#ifndef WARPLINE_KERNELS_CPU_GEMM_TYPES_H_
#define WARPLINE_KERNELS_CPU_GEMM_TYPES_H_

#include <complex>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/float16.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/variant.h"

namespace warpline::cpu {

template <typename T>
inline constexpr bool kIsComplex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

// The type in which products of integers are added: at least as wide as A and D.
template <typename T>
using Modular = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

// Calls f with std::type_identity of the types of A and of D.
template <typename F>
void VisitGemmTypes(const GemmProblem& problem, F&& f) {
  const auto same = [&](auto type) { return f(type, type); };
  const bool to_f32 = problem.OutDType() == DType::kF32;
  switch (problem.dtype) {
    case DType::kI8:
      if (problem.OutDType() == DType::kI8) return same(std::type_identity<std::uint8_t>());
      return f(std::type_identity<std::int8_t>(), std::type_identity<std::int32_t>());
    case DType::kU8:
      return same(std::type_identity<std::uint8_t>());
    case DType::kI16:
    case DType::kU16:
      return same(std::type_identity<std::uint16_t>());
    case DType::kI32:
    case DType::kU32:
      return same(std::type_identity<std::uint32_t>());
    case DType::kI64:
    case DType::kU64:
      return same(std::type_identity<std::uint64_t>());
    case DType::kC64:
      return same(std::type_identity<std::complex<float>>());
    case DType::kC128:
      return same(std::type_identity<std::complex<double>>());
    case DType::kF16:
      if (to_f32) return f(std::type_identity<Float16>(), std::type_identity<float>());
      return same(std::type_identity<Float16>());
    case DType::kBF16:
      if (to_f32) return f(std::type_identity<BFloat16>(), std::type_identity<float>());
      return same(std::type_identity<BFloat16>());
    case DType::kF32:
      return same(std::type_identity<float>());
    case DType::kF64:
      return same(std::type_identity<double>());
    default:
      return;
  }
}

// alpha and beta in the type in which products are added.
template <typename V>
struct Factors {
  V alpha, beta;

  explicit Factors(const StepScalars& scalars) {
    if constexpr (std::is_integral_v<V>) {
      alpha = static_cast<V>(scalars.alpha_i64);
      beta = static_cast<V>(scalars.beta_i64);
    } else if constexpr (std::is_same_v<V, double> || std::is_same_v<V, std::complex<double>>) {
      alpha = scalars.alpha_f64;
      beta = scalars.beta_f64;
    } else {
      alpha = scalars.alpha_f32;
      beta = scalars.beta_f32;
    }
  }
};

// Returns alpha * sum + beta * c + bias, after the activation. Only floats have a bias and an activation. `c`
// and `bias` point to their element, or are null.
template <typename V, typename Out>
Out FinishElement(const GemmProblem& p, const Factors<V>& factors, V sum, const Out* c, const Out* bias) {
  V value = p.k == 0 ? V{0} : factors.alpha * sum;  // without a product alpha is ignored
  if (c != nullptr) value += factors.beta * static_cast<V>(*c);
  if constexpr (std::is_floating_point_v<V>) {
    if (bias != nullptr) value += static_cast<V>(*bias);
    value = Activate(p.activation, value);
  }
  return RoundTo<Out>(value);
}

}  // namespace warpline::cpu

#endif  // WARPLINE_KERNELS_CPU_GEMM_TYPES_H_
