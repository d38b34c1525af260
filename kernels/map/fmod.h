// The remainder of a division of floats, in bounded time. The loops of glibc 2.36 and of CUDA need one step
// for each bit by which the exponents differ, up to 2045 steps for f64.
#ifndef WARPLINE_KERNELS_MAP_FMOD_H_
#define WARPLINE_KERNELS_MAP_FMOD_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/host_device.h"

namespace warpline::map {

// A number is significand * 2^exponent; the significand has at most 53 bits.
struct FloatParts {
  std::int64_t significand = 0;
  int exponent = 0;

  // Splits the absolute value of a finite number.
  WARPLINE_HOST_DEVICE explicit FloatParts(double number) {
    constexpr int kFractionBits = 52, kBias = 1075;
    std::uint64_t bits = 0;
    std::memcpy(&bits, &number, sizeof(bits));
    const std::uint64_t fraction = bits & ((std::uint64_t{1} << kFractionBits) - 1);
    const int biased = static_cast<int>(bits >> kFractionBits & 0x7ff);
    significand =
        static_cast<std::int64_t>(biased == 0 ? fraction : fraction | std::uint64_t{1} << kFractionBits);
    exponent = (biased == 0 ? 1 : biased) - kBias;
  }
};

// Returns x * y modulo m, with x, y < m < 2^53. The quotient in double is exact to within four units. The
// multiple of m wraps around. But its difference from the product is below 2^56, and does not.
WARPLINE_HOST_DEVICE inline std::int64_t MultiplyModulo(std::int64_t x, std::int64_t y, std::int64_t m,
                                                        double reciprocal_of_m) {
  const double product = static_cast<double>(x) * static_cast<double>(y);
  const auto quotient = static_cast<std::int64_t>(product * reciprocal_of_m);
  const auto wrapped = static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y) -
                       static_cast<std::uint64_t>(quotient) * static_cast<std::uint64_t>(m);
  auto rest = static_cast<std::int64_t>(wrapped);
  while (rest < 0) rest += m;
  while (rest >= m) rest -= m;
  return rest;
}

// Returns 2^exponent modulo m < 2^53, by squaring. Calls `on_step` for each square.
template <typename OnStep>
WARPLINE_HOST_DEVICE std::int64_t PowerOfTwoModulo(int exponent, std::int64_t m, double reciprocal_of_m,
                                                   const OnStep& on_step) {
  constexpr int kMaxShift = 52;
  int squares = 0;
  while (exponent >> squares > kMaxShift) ++squares;
  std::int64_t power = (std::int64_t{1} << (exponent >> squares)) % m;
  while (squares-- > 0) {
    power = MultiplyModulo(power, power, m, reciprocal_of_m);
    if ((exponent >> squares & 1) != 0) power = power + power >= m ? power + power - m : power + power;
    on_step();
  }
  return power;
}

// Multiplies the remainder of the significands by the power of two between the exponents: x = a * 2^(e + d)
// and y = b * 2^e have the remainder (a * 2^d mod b) * 2^e. Calls `on_step` for each product.
template <typename OnStep>
WARPLINE_HOST_DEVICE double FmodInSteps(double x, double y, const OnStep& on_step) {
  if (std::isnan(x) || std::isnan(y) || std::isinf(x) || y == 0) return (x * y) / (x * y);
  if (std::fabs(x) < std::fabs(y)) return x;
  const FloatParts of_x(x), of_y(y);
  const std::int64_t divisor = of_y.significand;
  std::int64_t rest = of_x.significand % divisor;
  const int apart = of_x.exponent - of_y.exponent;  // at least 0, because |x| >= |y|
  if (apart > 0 && rest != 0) {
    const double reciprocal = 1 / static_cast<double>(divisor);
    rest = MultiplyModulo(rest, PowerOfTwoModulo(apart, divisor, reciprocal, on_step), divisor, reciprocal);
    on_step();
  }
  return std::copysign(std::scalbn(static_cast<double>(rest), of_y.exponent), x);
}

struct IgnoreSteps {
  WARPLINE_HOST_DEVICE void operator()() const {}
};

// Exact, like std::fmod: x - y * trunc(x / y), with the sign of x. Needs at most 7 products, and 4 for f32.
WARPLINE_HOST_DEVICE inline double Fmod(double x, double y) { return FmodInSteps(x, y, IgnoreSteps()); }
WARPLINE_HOST_DEVICE inline float Fmod(float x, float y) {
  return static_cast<float>(Fmod(static_cast<double>(x), static_cast<double>(y)));
}

}  // namespace warpline::map

#endif  // WARPLINE_KERNELS_MAP_FMOD_H_
