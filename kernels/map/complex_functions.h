// Functions of complex numbers: the C library's on the host, Thrust's on a device. Both follow the special
// cases of Annex G of the C standard. What they lack, or compute with large errors, is here.
#ifndef WARPLINE_KERNELS_MAP_COMPLEX_FUNCTIONS_H_
#define WARPLINE_KERNELS_MAP_COMPLEX_FUNCTIONS_H_

#include <cmath>
#include <limits>

#include "kernels/host_device.h"
#include "kernels/map/complex_number.h"
#include "kernels/saturating_cast.h"

#ifdef __CUDACC__
#include <thrust/complex.h>
#else
#include <complex>
#endif

namespace warpline::map {

#ifdef __CUDACC__
namespace complex_library = thrust;
#else
namespace complex_library = std;
#endif

template <typename T>
WARPLINE_HOST_DEVICE complex_library::complex<T> ToLibrary(ComplexNumber<T> x) {
  return {x.re, x.im};
}
template <typename T>
WARPLINE_HOST_DEVICE ComplexNumber<T> FromLibrary(complex_library::complex<T> x) {
  return {x.real(), x.imag()};
}

// Variables, because device code can use their values but cannot call functions of numeric_limits.
template <typename T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <typename T>
inline constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

template <typename T>
WARPLINE_HOST_DEVICE ComplexNumber<T> Product(ComplexNumber<T> x, ComplexNumber<T> y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

// The method of R. Smith, "Algorithm 116: Complex division", 1962: with the quotient of the divisor's parts,
// their squares cannot overflow.
template <typename T>
WARPLINE_HOST_DEVICE ComplexNumber<T> Quotient(ComplexNumber<T> x, ComplexNumber<T> y) {
  const bool wide = std::fabs(y.re) >= std::fabs(y.im);
  const T large = wide ? y.re : y.im, small = wide ? y.im : y.re;
  if (large == 0 && small == 0) return {x.re / std::fabs(y.re), x.im / std::fabs(y.re)};
  const T ratio = small / large;
  const T scale = 1 / (large + small * ratio);
  if (wide) return {(x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale};
  return {(x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale};
}

template <typename T>
WARPLINE_HOST_DEVICE ComplexNumber<T> Scaled(ComplexNumber<T> x, T factor) {
  return {x.re * factor, x.im * factor};
}

template <typename T>
WARPLINE_HOST_DEVICE ComplexNumber<T> ComplexExp(ComplexNumber<T> x) {
  return FromLibrary<T>(complex_library::exp(ToLibrary(x)));
}

// Thrust has NaN for the absolute value of an infinity and a NaN.
template <typename T>
WARPLINE_HOST_DEVICE ComplexNumber<T> ComplexLog(ComplexNumber<T> x) {
  if (std::isinf(x.re) || std::isinf(x.im)) return {kInfinity<T>, std::atan2(x.im, x.re)};
  return FromLibrary<T>(complex_library::log(ToLibrary(x)));
}

template <typename T>
WARPLINE_HOST_DEVICE ComplexNumber<T> ComplexLog2(ComplexNumber<T> x) {
  return Scaled(ComplexLog(x), static_cast<T>(1.44269504088896340735992468100189214));  // 1 / log(2)
}
template <typename T>
WARPLINE_HOST_DEVICE ComplexNumber<T> ComplexLog10(ComplexNumber<T> x) {
  return Scaled(ComplexLog(x), static_cast<T>(0.43429448190325182765112891891660508));  // 1 / log(10)
}

// Near 0, |1 + x|^2 - 1 is computed without the 1.
template <typename T>
WARPLINE_HOST_DEVICE ComplexNumber<T> ComplexLog1p(ComplexNumber<T> x) {
  constexpr T kHalf = 0.5;
  if (!(std::fabs(x.re) < kHalf && std::fabs(x.im) < kHalf)) {
    return ComplexLog(ComplexNumber<T>{1 + x.re, x.im});
  }
  return {kHalf * std::log1p(x.re * (2 + x.re) + x.im * x.im), std::atan2(x.im, 1 + x.re)};
}

// Near 0, cos(y) - 1 is computed as -2 sin(y/2)^2.
template <typename T>
WARPLINE_HOST_DEVICE ComplexNumber<T> ComplexExpm1(ComplexNumber<T> x) {
  if (!(std::fabs(x.re) < 1 && std::isfinite(x.im))) {
    const ComplexNumber<T> power = ComplexExp(x);
    return {power.re - 1, power.im};
  }
  const T sine = std::sin(x.im / 2);
  // The last 0 makes 0 of -0, which the array API standard wants.
  return {std::expm1(x.re) * std::cos(x.im) - 2 * sine * sine + 0, std::exp(x.re) * std::sin(x.im)};
}

// Thrust has NaN for the real part of tanh(0 + inf i), which is 0.
template <typename T>
WARPLINE_HOST_DEVICE ComplexNumber<T> ComplexTanh(ComplexNumber<T> x) {
  if (x.re == 0 && !std::isfinite(x.im)) return {x.re, x.im - x.im};
  return FromLibrary<T>(complex_library::tanh(ToLibrary(x)));
}
// tan(x) = -i tanh(i x)
template <typename T>
WARPLINE_HOST_DEVICE ComplexNumber<T> ComplexTan(ComplexNumber<T> x) {
  const ComplexNumber<T> turned = ComplexTanh(ComplexNumber<T>{-x.im, x.re});
  return {turned.im, -turned.re};
}

// Thrust has NaN for the imaginary part of acosh(0 + NaN i), which is half of pi.
template <typename T>
WARPLINE_HOST_DEVICE ComplexNumber<T> ComplexAcosh(ComplexNumber<T> x) {
  if (x.re == 0 && IsNaN(x.im)) return {x.im, static_cast<T>(1.57079632679489661923132169163975144)};
  return FromLibrary<T>(complex_library::acosh(ToLibrary(x)));
}

// Small whole powers are products, as in NumPy. The power 0 of anything is 1. Other powers of 0 are 0 or, if
// their real part is not positive, NaN.
template <typename T>
WARPLINE_HOST_DEVICE ComplexNumber<T> ComplexPow(ComplexNumber<T> x, ComplexNumber<T> y) {
  constexpr T kMostProducts = 100;
  if (y.re == 0 && y.im == 0) return {1, 0};
  if (x.re == 0 && x.im == 0) return y.re > 0 ? ComplexNumber<T>{0, 0} : ComplexNumber<T>{kNaN<T>, kNaN<T>};
  if (y.im != 0 || y.re != std::trunc(y.re) || std::fabs(y.re) >= kMostProducts) {
    return ComplexExp(Product(y, ComplexLog(x)));
  }
  ComplexNumber<T> power{1, 0}, square = x;
  for (int left = static_cast<int>(std::fabs(y.re)); left != 0; left /= 2) {
    if (left % 2 == 1) power = Product(power, square);
    if (left > 1) square = Product(square, square);
  }
  return y.re < 0 ? Quotient(ComplexNumber<T>{1, 0}, power) : power;
}

// x / |x|. If one part is infinite, the sign is that of this part.
template <typename T>
WARPLINE_HOST_DEVICE ComplexNumber<T> ComplexSign(ComplexNumber<T> x) {
  if (x.re == 0 && x.im == 0) return {0, 0};
  if (std::isinf(x.re) && std::isfinite(x.im)) return {std::copysign(T{1}, x.re), 0};
  if (std::isinf(x.im) && std::isfinite(x.re)) return {0, std::copysign(T{1}, x.im)};
  if (std::isinf(std::hypot(x.re, x.im))) x = Scaled(x, static_cast<T>(0.5));
  const T size = std::hypot(x.re, x.im);
  return {x.re / size, x.im / size};
}

}  // namespace warpline::map

#endif  // WARPLINE_KERNELS_MAP_COMPLEX_FUNCTIONS_H_
