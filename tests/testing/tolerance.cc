#include "tests/testing/tolerance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace warpline::testing {
namespace {

// The unit of the accumulation that the semantics promise at least.
long double AccumulationUnit(DType dtype) {
  if (IsComplex(dtype)) return UnitRoundoff(PartOf(dtype));
  return UnitRoundoff(dtype == DType::kF64 || !IsFloat(dtype) ? DType::kF64 : DType::kF32);
}

// Tensor cores add in f32, but they truncate where IEEE rounds (twice the unit), and align the products of a
// block to the greatest of them and of the sum so far before they add (again an error of one truncation of
// the sum per product). Hence four times the unit of f32. M. Fasi et al., "Numerical behavior of NVIDIA
// tensor cores", PeerJ Computer Science 2021.
constexpr long double kTensorCoreFactor = 4;

// The error of rounding inputs to tf32, which keeps 10 bits of f32's mantissa: 2^-11 for round to nearest.
// The hardware, given plain f32, drops the other bits instead: 2^-10.
const long double kTf32InputUnit = std::ldexp(1.0L, -10);

// The error of gelu in f32: a dozen roundings, and one of tanh near -1, in units of f32.
const long double kGeluError = std::ldexp(1.0L, -20);

// From the error before the result is rounded to the error after: at most u of what is rounded, or half the
// smallest number where the format is subnormal.
long double AfterRounding(long double error, long double value, DType dtype) {
  if (!IsFloat(dtype)) return error;
  const long double smallest = std::ldexp(1.0L, FormatOf(dtype).min_exponent);
  return error + UnitRoundoff(dtype) * (std::fabs(value) + error) + smallest / 2;
}

// |error| <= relative * magnitude, and the rounding of the result.
std::vector<long double> Bounds(const Reference& reference, long double relative) {
  std::vector<long double> bounds(reference.values.size());
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    bounds[i] = AfterRounding(relative * reference.magnitudes[i], reference.values[i], reference.dtype);
  }
  return bounds;
}

// The smallest value that rounds to infinity: half a unit beyond the largest finite number.
long double LargestRounded(DType dtype) {
  const FloatFormat format = FormatOf(dtype);
  return std::ldexp(1.0L, format.max_exponent) - std::ldexp(1.0L, format.max_exponent - format.precision - 1);
}

}  // namespace

long double Gamma(std::int64_t n, long double u) {
  const long double nu = static_cast<long double>(n) * u;
  return nu < 1 ? nu / (1 - nu) : std::numeric_limits<long double>::infinity();
}

// Each of the k terms a b meets one rounding of the product, at most k of the sum (k - 1, and one more where
// the sum starts from beta C or is kept in blocks), one of alpha and one each of the additions of beta C,
// itself rounded once before, and of the bias: k + 3 on each path, so
//   |error| <= gamma_{k+3} (|alpha| |A| |B| + |beta| |C| + |bias|).
// Fused multiply-adds only save roundings. Rounding the inputs to tf32 multiplies each term by another
// (1 + d)^2 with |d| <= the unit of that. Each part of a complex product is a sum of 2k real terms, and alpha
// and beta are complex there too. relu is a contraction; gelu has slopes of up to 1.13, and its own
// evaluation an error of kGeluError |x|.
std::vector<long double> Tolerance(const GemmProblem& problem, const Reference& reference) {
  if (IsInteger(problem.dtype)) return std::vector<long double>(reference.values.size(), 0);
  const bool tf32 = problem.dtype == DType::kF32 && problem.precision == Precision::kTf32;
  const bool tensor_cores = tf32 || problem.dtype == DType::kF16 || problem.dtype == DType::kBF16;
  const long double unit = AccumulationUnit(problem.dtype) * (tensor_cores ? kTensorCoreFactor : 1);
  const std::int64_t terms = IsComplex(problem.dtype) ? 2 * problem.k + 2 : problem.k;
  const long double gamma = Gamma(terms + 3, unit);
  const long double inputs = tf32 ? kTf32InputUnit * (2 + kTf32InputUnit) : 0;
  const long double relative = gamma + inputs * (1 + gamma);
  if (problem.activation != Activation::kGelu) return Bounds(reference, relative);
  return Bounds(reference, 1.13L * relative + (problem.dtype == DType::kF64 ? 16 * unit : kGeluError));
}

// A sum of n terms in any order: gamma_{n-1} sum |x|. The mean divides, or multiplies by 1 / n (two
// roundings). A square is rounded once, a root halves the relative error before it and is rounded itself.
// Comparisons, counts and integer sums are exact; the integers of a mean may be rounded on conversion.
std::vector<long double> Tolerance(const ReduceProblem& problem, const Reference& reference) {
  const std::int64_t n = problem.ReducedCount();
  const bool in_f64 = !IsFloat(problem.dtype) || problem.OutDType() == DType::kF64;
  const long double unit = AccumulationUnit(in_f64 ? DType::kF64 : problem.dtype);
  switch (problem.op) {
    case ReduceOp::kSum:
    case ReduceOp::kSumSq:
    case ReduceOp::kNorm1:
    case ReduceOp::kNorm2:
    case ReduceOp::kMean:
      return Bounds(reference, Gamma(n + 3, unit));
    case ReduceOp::kProd: {
      // A product that underflows on the way is lost, but no other factor here is above 1.
      const long double smallest = std::ldexp(
          1.0L, FormatOf(in_f64 || problem.dtype == DType::kF64 ? DType::kF64 : DType::kF32).min_exponent);
      std::vector<long double> bounds = Bounds(reference, Gamma(n, unit));
      if (IsFloat(problem.dtype)) {
        for (long double& bound : bounds) bound += static_cast<long double>(n) * smallest;
      }
      return bounds;
    }
    case ReduceOp::kVar:
      return Bounds(reference, Gamma(2 * n + 16, UnitRoundoff(DType::kF64)));
    case ReduceOp::kStd: {
      // The error of the root of v + e is at most e / sqrt(v), and at most sqrt(e).
      std::vector<long double> bounds(reference.values.size());
      for (std::size_t i = 0; i < bounds.size(); ++i) {
        const long double e = Gamma(2 * n + 16, UnitRoundoff(DType::kF64)) * reference.magnitudes[i];
        const long double root = reference.values[i];
        const long double error = root > 0 ? std::min(e / root, std::sqrt(e)) : std::sqrt(e);
        bounds[i] = AfterRounding(error + UnitRoundoff(DType::kF64) * root, root, reference.dtype);
      }
      return bounds;
    }
    case ReduceOp::kLogSumExp: {
      // The sum has a relative error of some units a term, and those of the differences that are exponents:
      // at most (log n + 2) units on average, as larger ones have no weight. The logarithm makes it absolute.
      std::vector<long double> bounds(reference.values.size());
      const long double log_n = std::log(static_cast<long double>(std::max<std::int64_t>(n, 2)));
      for (std::size_t i = 0; i < bounds.size(); ++i) {
        const long double value = reference.values[i];
        const long double error = Gamma(n + 16, unit) + 8 * unit * (log_n + 2) + 4 * unit * std::fabs(value);
        bounds[i] = AfterRounding(error, value, reference.dtype);
      }
      return bounds;
    }
    default:
      // Exact, but for the rounding of an integer to a float.
      return Bounds(reference, 0);
  }
}

std::optional<std::string> FindWorstError(const Reference& reference, std::span<const long double> bounds,
                                          std::span<const std::byte> got_bytes) {
  const std::size_t count = reference.values.size();
  std::ostringstream message;
  message.precision(std::numeric_limits<double>::max_digits10);
  if (got_bytes.size() != count * SizeOf(reference.dtype)) {
    message << "got " << got_bytes.size() << " bytes, want " << count << " elements of "
            << Name(reference.dtype);
    return message.str();
  }
  std::size_t wrong = 0;
  std::size_t worst = 0;
  long double worst_excess = -1;  // error / bound; infinite if the bound is 0 or one of the two is not finite
  for (std::size_t i = 0; i < count; ++i) {
    const long double got = Load(reference.dtype, got_bytes, static_cast<std::int64_t>(i));
    const long double want = reference.values[i];
    if (got == want || (std::isnan(got) && std::isnan(want))) continue;
    const long double error = std::fabs(got - want);
    if (std::isfinite(want) && error <= bounds[i]) continue;  // false if the error is NaN or infinite
    if (IsFloat(reference.dtype) && std::isinf(got) && std::signbit(got) == std::signbit(want) &&
        std::fabs(want) + bounds[i] >= LargestRounded(reference.dtype)) {
      continue;
    }
    ++wrong;
    const bool comparable = std::isfinite(error) && bounds[i] > 0;
    const long double excess = comparable ? error / bounds[i] : std::numeric_limits<long double>::infinity();
    if (excess > worst_excess) {
      worst_excess = excess;
      worst = i;
    }
  }
  if (wrong == 0) return std::nullopt;
  message << wrong << " of " << count << " elements are wrong, the worst is [" << worst << "]: got "
          << Load(reference.dtype, got_bytes, static_cast<std::int64_t>(worst)) << ", want "
          << reference.values[worst] << ", bound " << bounds[worst];
  return message.str();
}

}  // namespace warpline::testing
