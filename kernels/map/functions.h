// The scalar functions of elementwise operations: one struct for each row of operations.h, with Apply for
// every number type that the row supports. Both backends compile this header without contraction, and with
// exact division and square root. So on one backend an operation gives the same bits in every map.
//
// Numbers are float and double; std::int32_t, std::uint32_t and their 64-bit forms; and ComplexNumber. Narrow
// elements are widened to one of these, and rounded again after each operation. Bools are 0 or 1.
#ifndef WARPLINE_KERNELS_MAP_FUNCTIONS_H_
#define WARPLINE_KERNELS_MAP_FUNCTIONS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/host_device.h"
#include "kernels/map/complex_functions.h"
#include "kernels/map/complex_number.h"
#include "kernels/map/fmod.h"
#include "kernels/saturating_cast.h"

namespace warpline::map {

// The type of results of comparisons and predicates.
using Truth = std::uint32_t;

#define WARPLINE_FN     \
  template <typename T> \
  WARPLINE_HOST_DEVICE static

// Integers are computed modulo 2^bits, as unsigned numbers.
template <typename T>
using Modular = std::make_unsigned_t<T>;

struct Add {
  WARPLINE_FN T Apply(T x, T y) {
    if constexpr (kIsComplex<T>) {
      return {x.re + y.re, x.im + y.im};
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(Modular<T>(x) + Modular<T>(y));
    } else {
      return x + y;
    }
  }
};

struct Subtract {
  WARPLINE_FN T Apply(T x, T y) {
    if constexpr (kIsComplex<T>) {
      return {x.re - y.re, x.im - y.im};
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(Modular<T>(x) - Modular<T>(y));
    } else {
      return x - y;
    }
  }
};

struct Multiply {
  WARPLINE_FN T Apply(T x, T y) {
    if constexpr (kIsComplex<T>) {
      return Product(x, y);
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(Modular<T>(x) * Modular<T>(y));
    } else {
      return x * y;
    }
  }
};

struct Divide {
  WARPLINE_FN T Apply(T x, T y) {
    if constexpr (kIsComplex<T>) {
      return Quotient(x, y);
    } else {
      return x / y;
    }
  }
};

// The remainder has the sign of the divisor, and x equals the divisor times FloorDivide plus Remainder. An
// integer divided by 0 gives 0. The most negative integer divided by -1 gives itself.
struct Remainder {
  WARPLINE_FN T Apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      if (y == 0 || y == static_cast<T>(-1)) return std::is_signed_v<T> || y == 0 ? 0 : x % y;
      const T rest = x % y;
      if constexpr (std::is_signed_v<T>) {
        return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
      } else {
        return rest;
      }
    } else {
      const T rest = Fmod(x, y);
      if (rest == 0) return std::copysign(rest, y);
      return (rest < 0) != (y < 0) ? rest + y : rest;
    }
  }
};

struct FloorDivide {
  WARPLINE_FN T Apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      if (y == 0) return 0;
      if constexpr (std::is_signed_v<T>) {
        if (y == -1) return static_cast<T>(0 - Modular<T>(x));
        const T quotient = x / y;
        return quotient * y != x && (x < 0) != (y < 0) ? quotient - 1 : quotient;
      } else {
        return x / y;
      }
    } else {
      const T quotient = x / y;
      // fmod of an infinity is NaN, but according to the standard the quotient is the infinity.
      const bool is_nan = quotient != quotient;  // NOLINT(misc-redundant-expression)
      if (y == 0 || std::isinf(x) || is_nan) return quotient;
      T rest = Fmod(x, y);
      // x - rest is a multiple of y, apart from rounding.
      T exact = (x - rest) / y;
      if (rest != 0 && (rest < 0) != (y < 0)) exact -= 1;
      const T nearest = std::rint(exact);
      return nearest == 0 ? std::copysign(T{0}, quotient) : nearest;
    }
  }
};

struct Pow {
  // An integer to a negative power gives 0.
  WARPLINE_FN T Apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>) {
        if (y < 0) return 0;
      }
      Modular<T> power = 1, square = x;
      for (Modular<T> left = y; left != 0; left >>= 1) {
        if (left & 1) power *= square;
        square *= square;
      }
      return static_cast<T>(power);
    } else if constexpr (kIsComplex<T>) {
      return ComplexPow(x, y);
    } else {
      return std::pow(x, y);
    }
  }
};

struct Negative {
  WARPLINE_FN T Apply(T x) {
    if constexpr (kIsComplex<T>) {
      return {-x.re, -x.im};
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(0 - Modular<T>(x));
    } else {
      return -x;
    }
  }
};

struct Abs {
  WARPLINE_FN auto Apply(T x) {
    if constexpr (kIsComplex<T>) {
      return std::hypot(x.re, x.im);
    } else if constexpr (std::is_unsigned_v<T>) {
      return x;
    } else if constexpr (std::is_integral_v<T>) {
      return x < 0 ? Negative::Apply(x) : x;
    } else {
      return std::fabs(x);
    }
  }
};

struct Sign {
  WARPLINE_FN T Apply(T x) {
    if constexpr (kIsComplex<T>) {
      return ComplexSign(x);
    } else if constexpr (std::is_unsigned_v<T>) {
      return x != 0;
    } else {
      return IsNaN(x) ? x : static_cast<T>((x > 0) - (x < 0));
    }
  }
};

// Minimum and Maximum return NaN if either operand is NaN.
struct Minimum {
  WARPLINE_FN T Apply(T x, T y) { return IsNaN(x) || x < y ? x : y; }
};
struct Maximum {
  WARPLINE_FN T Apply(T x, T y) { return IsNaN(x) || x > y ? x : y; }
};
struct Clip {
  WARPLINE_FN T Apply(T x, T low, T high) { return Minimum::Apply(Maximum::Apply(x, low), high); }
};

struct Equal {
  WARPLINE_FN Truth Apply(T x, T y) {
    if constexpr (kIsComplex<T>) {
      return x.re == y.re && x.im == y.im;
    } else {
      return x == y;
    }
  }
};
struct NotEqual {
  WARPLINE_FN Truth Apply(T x, T y) { return Equal::Apply(x, y) ^ 1u; }
};
struct Less {
  WARPLINE_FN Truth Apply(T x, T y) { return x < y; }
};
struct LessEqual {
  WARPLINE_FN Truth Apply(T x, T y) { return x <= y; }
};
struct Greater {
  WARPLINE_FN Truth Apply(T x, T y) { return x > y; }
};
struct GreaterEqual {
  WARPLINE_FN Truth Apply(T x, T y) { return x >= y; }
};

struct LogicalAnd {
  WARPLINE_FN T Apply(T x, T y) { return x & y; }
};
struct LogicalOr {
  WARPLINE_FN T Apply(T x, T y) { return x | y; }
};
struct LogicalXor {
  WARPLINE_FN T Apply(T x, T y) { return x ^ y; }
};
struct LogicalNot {
  WARPLINE_FN T Apply(T x) { return x ^ 1u; }
};

struct BitwiseAnd {
  WARPLINE_FN T Apply(T x, T y) { return x & y; }
};
struct BitwiseOr {
  WARPLINE_FN T Apply(T x, T y) { return x | y; }
};
struct BitwiseXor {
  WARPLINE_FN T Apply(T x, T y) { return x ^ y; }
};
struct BitwiseInvert {
  WARPLINE_FN T Apply(T x) { return ~x; }
};

// A shift by at least the width of the type, or by a negative number, gives 0 or the sign.
struct BitwiseLeftShift {
  WARPLINE_FN T Apply(T x, T y) {
    if (Modular<T>(y) >= sizeof(T) * 8) return 0;
    return static_cast<T>(Modular<T>(x) << Modular<T>(y));
  }
};
struct BitwiseRightShift {
  WARPLINE_FN T Apply(T x, T y) {
    if (Modular<T>(y) < sizeof(T) * 8) return x >> y;
    if constexpr (std::is_signed_v<T>) {
      return x < 0 ? -1 : 0;
    } else {
      return 0;
    }
  }
};

struct Floor {
  WARPLINE_FN T Apply(T x) { return std::floor(x); }
};
struct Ceil {
  WARPLINE_FN T Apply(T x) { return std::ceil(x); }
};
struct Trunc {
  WARPLINE_FN T Apply(T x) { return std::trunc(x); }
};
// Rounds halves to the even neighbour.
struct Round {
  WARPLINE_FN T Apply(T x) {
    if constexpr (kIsComplex<T>) {
      return {std::rint(x.re), std::rint(x.im)};
    } else {
      return std::rint(x);
    }
  }
};

// A complex number is infinite or NaN if a part of it is.
struct IsNan {
  WARPLINE_FN Truth Apply(T x) {
    if constexpr (kIsComplex<T>) {
      return IsNaN(x.re) || IsNaN(x.im);
    } else {
      return IsNaN(x);
    }
  }
};
struct IsInf {
  WARPLINE_FN Truth Apply(T x) {
    if constexpr (kIsComplex<T>) {
      return std::isinf(x.re) || std::isinf(x.im);
    } else {
      return std::isinf(x);
    }
  }
};
struct IsFinite {
  WARPLINE_FN Truth Apply(T x) {
    if constexpr (kIsComplex<T>) {
      return std::isfinite(x.re) && std::isfinite(x.im);
    } else {
      return std::isfinite(x);
    }
  }
};
struct SignBit {
  WARPLINE_FN Truth Apply(T x) { return std::signbit(x); }
};
struct CopySign {
  WARPLINE_FN T Apply(T x, T y) { return std::copysign(x, y); }
};
struct NextAfter {
  WARPLINE_FN T Apply(T x, T y) { return std::nextafter(x, y); }
};

struct Real {
  WARPLINE_FN auto Apply(T x) { return x.re; }
};
struct Imag {
  WARPLINE_FN auto Apply(T x) { return x.im; }
};
struct Conj {
  WARPLINE_FN T Apply(T x) { return {x.re, -x.im}; }
};

// A function of the C library and, for complex numbers, `of_complex`.
#define WARPLINE_FUNCTION(identifier, name, of_complex) \
  struct identifier {                                   \
    WARPLINE_FN T Apply(T x) {                          \
      if constexpr (kIsComplex<T>) {                    \
        return of_complex;                              \
      } else {                                          \
        return std::name(x);                            \
      }                                                 \
    }                                                   \
  };
#define WARPLINE_OF_LIBRARY(identifier, name) \
  WARPLINE_FUNCTION(identifier, name, FromLibrary(complex_library::name(ToLibrary(x))))

WARPLINE_FUNCTION(Exp, exp, ComplexExp(x))
WARPLINE_FUNCTION(Expm1, expm1, ComplexExpm1(x))
WARPLINE_FUNCTION(Log, log, ComplexLog(x))
WARPLINE_FUNCTION(Log1p, log1p, ComplexLog1p(x))
WARPLINE_FUNCTION(Log2, log2, ComplexLog2(x))
WARPLINE_FUNCTION(Log10, log10, ComplexLog10(x))
WARPLINE_OF_LIBRARY(Sqrt, sqrt)
WARPLINE_OF_LIBRARY(Sin, sin)
WARPLINE_OF_LIBRARY(Cos, cos)
WARPLINE_FUNCTION(Tan, tan, ComplexTan(x))
WARPLINE_OF_LIBRARY(Asin, asin)
WARPLINE_OF_LIBRARY(Acos, acos)
WARPLINE_OF_LIBRARY(Atan, atan)
WARPLINE_OF_LIBRARY(Sinh, sinh)
WARPLINE_OF_LIBRARY(Cosh, cosh)
WARPLINE_FUNCTION(Tanh, tanh, ComplexTanh(x))
WARPLINE_OF_LIBRARY(Asinh, asinh)
WARPLINE_FUNCTION(Acosh, acosh, ComplexAcosh(x))
WARPLINE_OF_LIBRARY(Atanh, atanh)

#undef WARPLINE_OF_LIBRARY
#undef WARPLINE_FUNCTION

struct Exp2 {
  WARPLINE_FN T Apply(T x) { return std::exp2(x); }
};
struct LogAddExp {
  WARPLINE_FN T Apply(T x, T y) {
    if (x == y) return x + static_cast<T>(0.693147180559945309417232121458176568);  // log(2); infinities too
    const T difference = x - y;
    if (IsNaN(difference)) return difference;
    return difference > 0 ? x + std::log1p(std::exp(-difference)) : y + std::log1p(std::exp(difference));
  }
};
struct Hypot {
  WARPLINE_FN T Apply(T x, T y) { return std::hypot(x, y); }
};
struct Atan2 {
  WARPLINE_FN T Apply(T x, T y) { return std::atan2(x, y); }
};
struct Erf {
  WARPLINE_FN T Apply(T x) { return std::erf(x); }
};
struct Cbrt {
  WARPLINE_FN T Apply(T x) { return std::cbrt(x); }
};

#undef WARPLINE_FN

}  // namespace warpline::map

#endif  // WARPLINE_KERNELS_MAP_FUNCTIONS_H_
