#include "tests/testing/map_reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace warpline::testing {
namespace {

// An element of any type: a real number or two parts, and the bits of an integer.
struct Number {
  long double re = 0, im = 0;
  std::uint64_t bits = 0;
};

// Rounds to f32 or f64, in which floats are computed; f16 and bf16 are rounded again when they are stored.
long double Computed(DType dtype, long double value) {
  return dtype == DType::kF64 || dtype == DType::kC128 ? static_cast<double>(value)
                                                       : static_cast<float>(value);
}

Number Read(DType dtype, std::span<const std::byte> data, std::int64_t index) {
  if (IsComplex(dtype)) {
    const DType part = PartOf(dtype);
    return {Load(part, data, 2 * index), Load(part, data, 2 * index + 1)};
  }
  return {Load(dtype, data, index), 0, IsFloat(dtype) ? 0 : BitsOf(dtype, data, index)};
}

// Returns the number after it has been stored and loaded again.
Number Rounded(DType dtype, const Number& number) {
  Bytes one(SizeOf(dtype));
  if (IsComplex(dtype)) {
    Store(PartOf(dtype), number.re, one, 0);
    Store(PartOf(dtype), number.im, one, 1);
  } else {
    Store(dtype, number.re, one, 0);
  }
  return Read(dtype, one, 0);
}

Number OfBits(DType dtype, std::uint64_t bits) { return Rounded(dtype, {Wrapped(dtype, bits)}); }

// Floats as the processor computes them: each of these is exact but for one rounding.
template <typename T>
long double Exact(MapOp op, T x, T y) {
  switch (op) {
    case MapOp::kAdd:
      return x + y;
    case MapOp::kSubtract:
      return x - y;
    case MapOp::kMultiply:
      return x * y;
    case MapOp::kDivide:
      return x / y;
    case MapOp::kSqrt:
      return std::sqrt(x);
    case MapOp::kNextAfter:
      return std::nextafter(x, y);
    case MapOp::kRemainder: {
      const T rest = std::fmod(x, y);
      if (rest == 0) return std::copysign(rest, y);
      return (rest < 0) == (y < 0) ? rest : rest + y;
    }
    default:
      return std::numeric_limits<T>::quiet_NaN();
  }
}

long double FloorOfQuotient(long double x, long double y) {
  if (y == 0 || std::isinf(x) || std::isnan(x) || std::isnan(y)) return x / y;
  if (std::isinf(y)) return x != 0 && (x < 0) != (y < 0) ? -1 : x / y;
  const long double rest = std::fmod(x, y);
  long double quotient = std::rint((x - rest) / y);
  if (rest != 0 && (rest < 0) != (y < 0)) quotient -= 1;
  return quotient == 0 ? std::copysign(0.0L, x / y) : quotient;
}

long double OfFloats(MapOp op, DType dtype, long double x, long double y, long double z) {
  switch (op) {
    case MapOp::kNegative:
      return -x;
    case MapOp::kAbs:
      return std::fabs(x);
    case MapOp::kSign:
      return std::isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0;
    // The result is the second one of two zeros.
    case MapOp::kMinimum:
      return std::isnan(x) || std::isnan(y) ? std::nanl("") : x < y ? x : y;
    case MapOp::kMaximum:
      return std::isnan(x) || std::isnan(y) ? std::nanl("") : x > y ? x : y;
    case MapOp::kClip: {
      if (std::isnan(x) || std::isnan(y) || std::isnan(z)) return std::nanl("");
      const long double raised = x > y ? x : y;
      return raised < z ? raised : z;
    }
    case MapOp::kFloor:
      return std::floor(x);
    case MapOp::kCeil:
      return std::ceil(x);
    case MapOp::kTrunc:
      return std::trunc(x);
    case MapOp::kRound:
      return std::rint(x);
    case MapOp::kCopySign:
      return std::copysign(x, y);
    case MapOp::kFloorDivide:
      return FloorOfQuotient(x, y);
    case MapOp::kPow:
      return std::pow(x, y);
    case MapOp::kExp:
      return std::exp(x);
    case MapOp::kExp2:
      return std::exp2(x);
    case MapOp::kExpm1:
      return std::expm1(x);
    case MapOp::kLog:
      return std::log(x);
    case MapOp::kLog2:
      return std::log2(x);
    case MapOp::kLog10:
      return std::log10(x);
    case MapOp::kLog1p:
      return std::log1p(x);
    case MapOp::kLogAddExp:
      if (x == y) return x + std::log(2.0L);
      return std::max(x, y) + std::log1p(std::exp(-std::fabs(x - y)));
    case MapOp::kHypot:
      return std::hypot(x, y);
    case MapOp::kSin:
      return std::sin(x);
    case MapOp::kCos:
      return std::cos(x);
    case MapOp::kTan:
      return std::tan(x);
    case MapOp::kAsin:
      return std::asin(x);
    case MapOp::kAcos:
      return std::acos(x);
    case MapOp::kAtan:
      return std::atan(x);
    case MapOp::kAtan2:
      return std::atan2(x, y);
    case MapOp::kSinh:
      return std::sinh(x);
    case MapOp::kCosh:
      return std::cosh(x);
    case MapOp::kTanh:
      return std::tanh(x);
    case MapOp::kAsinh:
      return std::asinh(x);
    case MapOp::kAcosh:
      return std::acosh(x);
    case MapOp::kAtanh:
      return std::atanh(x);
    case MapOp::kErf:
      return std::erf(x);
    case MapOp::kCbrt:
      return std::cbrt(x);
    default:
      return dtype == DType::kF64 ? Exact(op, static_cast<double>(x), static_cast<double>(y))
                                  : Exact(op, static_cast<float>(x), static_cast<float>(y));
  }
}

// Integers in 128 bits, in which nothing overflows but powers, and bools.
std::uint64_t OfIntegers(MapOp op, DType dtype, const Number& a, const Number& b, const Number& c) {
  using Wide = __int128;
  const auto wide = [&](const Number& n) {
    return IsSigned(dtype) ? Wide{static_cast<std::int64_t>(n.bits)} : Wide{n.bits};
  };
  const Wide x = wide(a), y = wide(b), z = wide(c);
  const int width = static_cast<int>(SizeOf(dtype)) * 8;
  Wide quotient = y == 0 ? 0 : x / y;
  if (y != 0 && quotient * y != x && (x < 0) != (y < 0)) --quotient;
  switch (op) {
    case MapOp::kAdd:
      return static_cast<std::uint64_t>(x + y);
    case MapOp::kSubtract:
      return static_cast<std::uint64_t>(x - y);
    case MapOp::kMultiply:
      return a.bits * b.bits;
    case MapOp::kFloorDivide:
      return static_cast<std::uint64_t>(quotient);
    case MapOp::kRemainder:
      return y == 0 ? 0 : static_cast<std::uint64_t>(x - quotient * y);
    case MapOp::kPow: {
      if (y < 0) return 0;
      std::uint64_t power = 1, square = a.bits;
      for (auto left = static_cast<std::uint64_t>(y); left != 0; left /= 2, square *= square) {
        if (left % 2 == 1) power *= square;
      }
      return power;
    }
    case MapOp::kNegative:
      return static_cast<std::uint64_t>(-x);
    case MapOp::kAbs:
      return static_cast<std::uint64_t>(x < 0 ? -x : x);
    case MapOp::kSign:
      return static_cast<std::uint64_t>(x > 0 ? Wide{1} : x < 0 ? Wide{-1} : Wide{0});
    case MapOp::kMinimum:
      return static_cast<std::uint64_t>(std::min(x, y));
    case MapOp::kMaximum:
      return static_cast<std::uint64_t>(std::max(x, y));
    case MapOp::kClip:
      return static_cast<std::uint64_t>(std::min(std::max(x, y), z));
    case MapOp::kLogicalAnd:
    case MapOp::kBitwiseAnd:
      return a.bits & b.bits;
    case MapOp::kLogicalOr:
    case MapOp::kBitwiseOr:
      return a.bits | b.bits;
    case MapOp::kLogicalXor:
    case MapOp::kBitwiseXor:
      return a.bits ^ b.bits;
    case MapOp::kLogicalNot:
      return a.bits == 0;
    case MapOp::kBitwiseInvert:
      return dtype == DType::kBool ? a.bits == 0 : ~a.bits;
    case MapOp::kBitwiseLeftShift:
      return y < 0 || y >= width ? 0 : a.bits << static_cast<int>(y);
    case MapOp::kBitwiseRightShift:
      return y < 0 || y >= width ? (x < 0 ? ~std::uint64_t{0} : 0)
                                 : static_cast<std::uint64_t>(x >> static_cast<int>(y));
    default:
      return 0;
  }
}

bool IsTrue(MapOp op, const Number& x, const Number& y) {
  switch (op) {
    case MapOp::kEqual:
      return x.re == y.re && x.im == y.im;
    case MapOp::kNotEqual:
      return !(x.re == y.re && x.im == y.im);
    case MapOp::kLess:
      return x.re < y.re;
    case MapOp::kLessEqual:
      return x.re <= y.re;
    case MapOp::kGreater:
      return x.re > y.re;
    case MapOp::kGreaterEqual:
      return x.re >= y.re;
    case MapOp::kIsNan:
      return std::isnan(x.re) || std::isnan(x.im);
    case MapOp::kIsInf:
      return std::isinf(x.re) || std::isinf(x.im);
    case MapOp::kIsFinite:
      return std::isfinite(x.re) && std::isfinite(x.im);
    default:
      return std::signbit(x.re);  // signbit
  }
}

template <typename T>
Number ProductOf(const Number& x, const Number& y) {
  const T a = static_cast<T>(x.re), b = static_cast<T>(x.im), c = static_cast<T>(y.re),
          d = static_cast<T>(y.im);
  return {static_cast<T>(a * c) - static_cast<T>(b * d), static_cast<T>(a * d) + static_cast<T>(b * c)};
}

using Complex = std::complex<long double>;

Complex SignOf(const Complex& z) {
  const bool re_is_infinite = std::isinf(z.real()), im_is_infinite = std::isinf(z.imag());
  if (z == 0.0L) return 0;
  if (re_is_infinite && std::isfinite(z.imag())) return {std::copysign(1.0L, z.real()), 0};
  if (im_is_infinite && std::isfinite(z.real())) return {0, std::copysign(1.0L, z.imag())};
  return z / std::abs(z);
}

constexpr long double kTiny = 1e-10L;

Complex FunctionOf(MapOp op, const Complex& z, const Complex& w) {
  switch (op) {
    case MapOp::kPow:
      return w == 0.0L ? 1 : std::pow(z, w);
    case MapOp::kSign:
      return SignOf(z);
    case MapOp::kSqrt:
      return std::sqrt(z);
    case MapOp::kExp:
      return std::exp(z);
    // Near 0, where the 1 would hide z, the first terms of the series are enough.
    case MapOp::kExpm1:
      return std::abs(z) < kTiny ? z + z * z / 2.0L : std::exp(z) - 1.0L;
    case MapOp::kLog:
      return std::log(z);
    case MapOp::kLog1p:
      return std::abs(z) < kTiny ? z - z * z / 2.0L : std::log(1.0L + z);
    case MapOp::kLog2:
      return std::log(z) / std::log(2.0L);
    case MapOp::kLog10:
      return std::log10(z);
    case MapOp::kSin:
      return std::sin(z);
    case MapOp::kCos:
      return std::cos(z);
    case MapOp::kTan:
      return std::tan(z);
    case MapOp::kAsin:
      return std::asin(z);
    case MapOp::kAcos:
      return std::acos(z);
    case MapOp::kAtan:
      return std::atan(z);
    case MapOp::kSinh:
      return std::sinh(z);
    case MapOp::kCosh:
      return std::cosh(z);
    case MapOp::kTanh:
      return std::tanh(z);
    case MapOp::kAsinh:
      return std::asinh(z);
    case MapOp::kAcosh:
      return std::acosh(z);
    default:
      return std::atanh(z);
  }
}

Number OfComplex(MapOp op, DType dtype, const Number& x, const Number& y) {
  if (WeightOf(op, dtype) == MapWeight::kHeavy) {
    const Complex z = FunctionOf(op, {x.re, x.im}, {y.re, y.im});
    return {z.real(), z.imag()};
  }
  switch (op) {
    case MapOp::kAdd:
      return {Computed(dtype, x.re + y.re), Computed(dtype, x.im + y.im)};
    case MapOp::kSubtract:
      return {Computed(dtype, x.re - y.re), Computed(dtype, x.im - y.im)};
    case MapOp::kMultiply:
      return dtype == DType::kC128 ? ProductOf<double>(x, y) : ProductOf<float>(x, y);
    case MapOp::kDivide: {
      const Complex quotient = Complex(x.re, x.im) / Complex(y.re, y.im);
      return {quotient.real(), quotient.imag()};
    }
    case MapOp::kNegative:
      return {-x.re, -x.im};
    case MapOp::kConj:
      return {x.re, -x.im};
    case MapOp::kAbs:
      return {std::hypot(x.re, x.im)};
    case MapOp::kRound:
      return {std::rint(x.re), std::rint(x.im)};
    case MapOp::kReal:
      return {x.re};
    default:
      return {x.im};  // imag
  }
}

Number CastOf(DType from, const Number& x, DType to) {
  if (IsComplex(from)) return IsComplex(to) ? x : Number{x.re != 0 || x.im != 0 ? 1.0L : 0.0L};
  if (IsComplex(to)) return {Converted(from, x.re, x.bits, PartOf(to))};
  return {Converted(from, x.re, x.bits, to)};
}

Number Evaluate(MapOp op, DType from, DType to, const std::array<Number, 3>& x) {
  if (op == MapOp::kCast) return CastOf(from, x[0], to);
  if (op == MapOp::kWhere) return x[0].bits != 0 ? x[1] : x[2];
  if (RowOf(op).result == MapResult::kBool) return {IsTrue(op, x[0], x[1]) ? 1.0L : 0.0L};
  if (IsComplex(from)) return OfComplex(op, from, x[0], x[1]);
  if (!IsFloat(from)) return OfBits(to, OfIntegers(op, from, x[0], x[1], x[2]));
  return {Computed(from, OfFloats(op, from, x[0].re, x[1].re, x[2].re))};
}

Number ConstantOf(DType dtype, const StepScalars& scalars) {
  if (IsComplex(dtype)) return {scalars.alpha_f64, scalars.beta_f64};
  if (IsFloat(dtype)) return {scalars.alpha_f64};
  return OfBits(dtype, static_cast<std::uint64_t>(scalars.alpha_i64));
}

// The distance between neighbours of this type around a value.
long double UlpOf(DType dtype, long double value) {
  const FloatFormat format = FormatOf(dtype);
  if (value == 0 || !std::isfinite(value)) return std::ldexp(1.0L, format.min_exponent);
  return std::ldexp(1.0L, std::max(std::ilogb(value) - format.precision + 1, format.min_exponent));
}

// The error of each part of a complex result.
long double BoundOfComplex(MapOp op, DType dtype, const Number& z, const std::array<Number, 3>& x) {
  const DType part = PartOf(dtype);
  if (op != MapOp::kDivide && WeightOf(op, dtype) != MapWeight::kHeavy) return 0;
  long double ulps = kComplexUlp;
  if (op == MapOp::kPow) {
    const Complex exponent = Complex(x[1].re, x[1].im) * std::log(Complex(x[0].re, x[0].im));
    ulps *= 1 + std::abs(exponent);
  }
  long double size = 0;
  for (const long double each : {z.re, z.im}) {
    if (std::isfinite(each)) size = std::max(size, std::fabs(each));
  }
  return ulps * UlpOf(part, size);
}

// The error that the table allows to a result of floats, after it has been rounded to its type.
long double BoundOf(MapOp op, DType from, DType to, long double value, const std::array<Number, 3>& x) {
  const int allowed = RowOf(op).max_ulp;
  if (IsComplex(from) && op == MapOp::kAbs) return 3 * UlpOf(to, value);  // as hypot
  if (!IsFloat(to) || allowed == 0) return 0;
  // If the terms cancel, the error is that of the larger operand.
  if (op == MapOp::kLogAddExp) value = std::max({std::fabs(value), std::fabs(x[0].re), std::fabs(x[1].re)});
  const DType computed = to == DType::kF64 ? to : DType::kF32;
  return allowed * UlpOf(computed, value) + (to == computed ? 0 : UlpOf(to, value));
}

}  // namespace

MapAnswer Map(const MapProblem& problem, std::span<const StepScalars> scalars,
              std::span<const Bytes> inputs) {
  const DType out = problem.OutDType();
  MapAnswer answer{{PartOf(out), {}, {}}, {}};
  PerAxis<std::int64_t> index{};
  for (std::int64_t element = 0; element < problem.shape.Count(); ++element) {
    std::vector<Number> values;
    std::vector<DType> types;
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
      std::int64_t offset = ElementsBefore(problem.shape, problem.inputs[i].strides);
      for (int axis = 0; axis < problem.shape.rank; ++axis) {
        offset +=
            index[static_cast<std::size_t>(axis)] * problem.inputs[i].strides[static_cast<std::size_t>(axis)];
      }
      types.push_back(problem.inputs[i].dtype);
      values.push_back(Read(types.back(), inputs[i], offset));
    }
    long double bound = 0;
    for (const MapNode& node : problem.nodes) {
      std::array<Number, 3> x;
      Number result;
      if (node.op == MapOp::kConstant) {
        result = ConstantOf(node.dtype, scalars[static_cast<std::size_t>(node.operands[0])]);
      } else if (node.op == MapOp::kIndex) {
        result = {static_cast<long double>(index[static_cast<std::size_t>(node.operands[0])])};
      } else {
        for (int k = 0; k < RowOf(node.op).operands; ++k) {
          x[static_cast<std::size_t>(k)] =
              values[static_cast<std::size_t>(node.operands[static_cast<std::size_t>(k)])];
        }
        const DType from = types[static_cast<std::size_t>(node.operands[node.op == MapOp::kWhere ? 1 : 0])];
        result = Evaluate(node.op, from, node.dtype, x);
        bound = IsComplex(node.dtype) ? BoundOfComplex(node.op, from, result, x)
                                      : BoundOf(node.op, from, node.dtype, result.re, x);
      }
      values.push_back(Rounded(node.dtype, result));
      types.push_back(node.dtype);
    }
    answer.want.values.push_back(values.back().re);
    answer.bounds.push_back(bound);
    if (IsComplex(out)) {
      answer.want.values.push_back(values.back().im);
      answer.bounds.push_back(bound);
    }
    for (int axis = problem.shape.rank - 1; axis >= 0; --axis) {
      if (++index[static_cast<std::size_t>(axis)] < problem.shape[axis]) break;
      index[static_cast<std::size_t>(axis)] = 0;
    }
  }
  return answer;
}

}  // namespace warpline::testing
