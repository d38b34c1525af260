#include "tests/testing/tolerance.h"

#include <cmath>
#include <limits>
#include <sstream>

namespace warpline::testing {
namespace {

// The unit of the accumulation that the semantics promise at least.
long double AccumulationUnit(DType dtype) {
  return UnitRoundoff(dtype == DType::kF64 || !IsFloat(dtype) ? DType::kF64 : DType::kF32);
}

// Tensor cores add in f32, but they truncate where IEEE rounds (twice the unit), and align the products of a
// block to the greatest of them and of the sum so far before they add (again an error of one truncation of
// the sum per product). Hence four times the unit of f32. M. Fasi et al., "Numerical behavior of NVIDIA
// tensor cores", PeerJ Computer Science 2021.
constexpr long double kTensorCoreFactor = 4;

// Of rounding inputs to tf32, which keeps 10 bits of f32's mantissa: 2^-11 for round to nearest. The
// hardware, given plain f32, drops the other bits instead: 2^-10.
const long double kTf32InputUnit = std::ldexp(1.0L, -10);

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

}  // namespace

long double Gamma(std::int64_t n, long double u) {
  const long double nu = static_cast<long double>(n) * u;
  return nu < 1 ? nu / (1 - nu) : std::numeric_limits<long double>::infinity();
}

// Each of the k terms a b meets one rounding of the product, at most k of the sum (k - 1, and one more where
// the sum starts from beta C or is kept in blocks), one of alpha and one of the addition of beta C, itself
// rounded once before: k + 2 on each path, so
//   |error| <= gamma_{k+2} (|alpha| |A| |B| + |beta| |C|).
// Fused multiply-adds only save roundings. Rounding the inputs to tf32 multiplies each term by another
// (1 + d)^2 with |d| <= the unit of that.
std::vector<long double> Tolerance(const GemmProblem& problem, const Reference& reference) {
  const bool tf32 = problem.dtype == DType::kF32 && problem.precision == Precision::kTf32;
  const bool tensor_cores = tf32 || problem.dtype == DType::kF16 || problem.dtype == DType::kBF16;
  const long double unit = AccumulationUnit(problem.dtype) * (tensor_cores ? kTensorCoreFactor : 1);
  const long double gamma = Gamma(problem.k + 2, unit);
  const long double inputs = tf32 ? kTf32InputUnit * (2 + kTf32InputUnit) : 0;
  return Bounds(reference, gamma + inputs * (1 + gamma));
}

// A sum of n terms in any order: gamma_{n-1} sum |x|. The mean divides, or multiplies by 1 / n (two
// roundings). Comparisons and integer sums are exact; the integers of a mean may be rounded on conversion.
std::vector<long double> Tolerance(const ReduceProblem& problem, const Reference& reference) {
  const std::int64_t n = problem.ReducedCount();
  const long double unit = AccumulationUnit(problem.dtype);
  switch (problem.op) {
    case ReduceOp::kSum:
      return Bounds(reference, IsFloat(problem.dtype) && n > 1 ? Gamma(n - 1, unit) : 0);
    case ReduceOp::kMean:
      return Bounds(reference, Gamma(n + 2, unit));
    case ReduceOp::kMin:
    case ReduceOp::kMax:
    case ReduceOp::kArgmax:
      break;
  }
  return std::vector<long double>(reference.values.size(), 0);
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
