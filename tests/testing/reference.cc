#include "tests/testing/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace warpline::testing {
namespace {

using Index = PerAxis<std::int64_t>;

// The multi-index of element `flat` of a dense row-major array.
Index Unflatten(const Shape& shape, std::int64_t flat) {
  Index index{};
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    index[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return index;
}

// Returns where an element lies in storage with `row_stride` elements per row; 0: dense.
std::int64_t Flatten(const Shape& shape, const Index& index, std::int64_t row_stride = 0) {
  std::int64_t flat = 0;
  for (int axis = 0; axis < shape.rank; ++axis) {
    const bool is_padded_row = axis == shape.rank - 1 && row_stride != 0;
    flat = flat * (is_padded_row ? row_stride : shape[axis]) + index[axis];
  }
  return flat;
}

struct Value {
  long double value = 0;
  long double magnitude = 0;
};

long double Sum(const std::vector<long double>& terms) {
  long double sum = 0;
  for (long double term : terms) sum += term;
  return sum;
}

long double SumOfMagnitudes(const std::vector<long double>& terms) {
  long double sum = 0;
  for (long double term : terms) sum += std::fabs(term);
  return sum;
}

// Index of the first element that is better than all before it, the first NaN above all.
std::size_t BestIndex(const std::vector<long double>& x, bool greatest) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < x.size(); ++i) {
    if (std::isnan(x[best])) break;
    if (std::isnan(x[i]) || (greatest ? x[i] > x[best] : x[i] < x[best])) best = i;
  }
  return best;
}

// The variance, and what its rounding errors are proportional to. `rounds`: each x, an integer of 64 bits, is
// rounded to f64 first.
Value Variance(const std::vector<long double>& x, std::int32_t ddof, bool rounds) {
  const auto n = static_cast<long double>(x.size());
  const long double mean = Sum(x) / n;
  long double spread = 0, magnitude = 0;
  for (long double each : x) {
    const long double distance = std::fabs(each - mean);
    spread += distance * distance;
    // In f64 distances are from a mean of some elements, which is not further from that of all of them than
    // they are on average: each square is at most a few times too large. (Of narrower types they are from one
    // element, but what f64 loses there is less than what the rounding of the result does.)
    magnitude += 8 * distance * distance;
    if (rounds) magnitude += 8 * distance * std::fabs(each) + std::ldexp(1.0L, -52) * each * each;
  }
  const long double degrees = std::max(0.0L, n - static_cast<long double>(ddof));
  return {spread / degrees, magnitude / degrees};
}

long double LogSumExp(const std::vector<long double>& x) {
  long double greatest = -std::numeric_limits<long double>::infinity();
  for (long double each : x) {
    if (std::isnan(each)) return each;
    greatest = std::max(greatest, each);
  }
  if (std::isinf(greatest)) return greatest;
  long double sum = 0;
  for (long double each : x) sum += std::exp(each - greatest);
  return greatest + std::log(sum);
}

// Reduces elements that are not integers, or for an operation that takes integers for real numbers.
Value ReduceReals(const ReduceProblem& p, const std::vector<long double>& x) {
  const auto n = static_cast<long double>(x.size());
  const bool rounds = IsInteger(p.dtype) && SizeOf(p.dtype) == 8;
  const auto sum_of_squares = [&] {
    long double sum = 0;
    for (long double each : x) sum += each * each;
    return sum;
  };
  switch (p.op) {
    case ReduceOp::kSum:
      return {Sum(x), SumOfMagnitudes(x)};
    case ReduceOp::kMean:
      return {Sum(x) / n, SumOfMagnitudes(x) / n};
    case ReduceOp::kProd: {
      long double product = 1;
      for (long double each : x) product *= each;
      return {product, std::fabs(product)};
    }
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return {x[BestIndex(x, p.op == ReduceOp::kMax)], 0};
    case ReduceOp::kArgmin:
    case ReduceOp::kArgmax:
      return {static_cast<long double>(BestIndex(x, p.op == ReduceOp::kArgmax)), 0};
    case ReduceOp::kAny:
    case ReduceOp::kAll:
    case ReduceOp::kCountNonzero: {
      const auto nonzero = static_cast<long double>(
          std::count_if(x.begin(), x.end(), [](long double each) { return each != 0; }));
      if (p.op == ReduceOp::kAny) return {nonzero > 0 ? 1.0L : 0.0L, 0};
      if (p.op == ReduceOp::kAll) return {nonzero == n ? 1.0L : 0.0L, 0};
      return {nonzero, 0};
    }
    case ReduceOp::kNorm1:
      return {SumOfMagnitudes(x), SumOfMagnitudes(x)};
    case ReduceOp::kNorm2:
      return {std::sqrt(sum_of_squares()), std::sqrt(sum_of_squares())};
    case ReduceOp::kSumSq:
      return {sum_of_squares(), sum_of_squares()};
    case ReduceOp::kNormInf: {
      std::vector<long double> magnitudes;
      for (long double each : x) magnitudes.push_back(std::fabs(each));
      return {magnitudes[BestIndex(magnitudes, true)], 0};
    }
    case ReduceOp::kVar:
      return Variance(x, p.ddof, rounds);
    case ReduceOp::kStd: {
      const Value variance = Variance(x, p.ddof, rounds);
      return {std::sqrt(variance.value), variance.magnitude};
    }
    case ReduceOp::kLogSumExp:
      return {LogSumExp(x), 0};
  }
  return {};
}

// Sums and products of integers, modulo 2^64 and then modulo the type of the result.
long double ReduceIntegers(const ReduceProblem& p, const std::vector<std::uint64_t>& x) {
  std::uint64_t total = p.op == ReduceOp::kProd ? 1 : 0;
  for (std::uint64_t each : x) {
    if (p.op == ReduceOp::kSum) total += each;
    if (p.op == ReduceOp::kProd) total *= each;
    if (p.op == ReduceOp::kSumSq) total += each * each;
  }
  const DType wide = DefaultOutDType(p.op, p.dtype);
  return Converted(wide, Wrapped(wide, total), total, p.OutDType());
}

}  // namespace

std::int64_t StorageElements(const Shape& shape, std::int64_t row_stride) {
  return StorageElements(shape, RowMajorStrides(shape, row_stride));
}

std::int64_t StorageElements(const Shape& shape, const Strides& strides) {
  std::int64_t last = 0;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (shape[axis] == 0) return 0;
    last += (shape[axis] - 1) * std::abs(strides[axis]);
  }
  return last + 1;
}
std::int64_t ElementsBefore(const Shape& shape, const Strides& strides) {
  std::int64_t before = 0;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (shape[axis] == 0) return 0;
    before += (shape[axis] - 1) * std::max<std::int64_t>(-strides[axis], 0);
  }
  return before;
}

long double Converted(DType from, long double value, std::uint64_t bits, DType to) {
  if (IsFloat(to)) return value;
  if (to == DType::kBool) return value != 0 ? 1 : 0;
  if (!IsFloat(from)) return Wrapped(to, bits);
  if (std::isnan(value)) return 0;
  return std::trunc(std::clamp(value, LeastOf(to), GreatestOf(to)));
}

Bytes Transpose(const TransposeProblem& problem, std::span<const std::byte> x) {
  const std::size_t size = SizeOf(problem.dtype);
  Shape y_shape;
  for (int i = 0; i < problem.shape.rank; ++i) y_shape.Append(problem.shape[problem.perm[i]]);
  Bytes y(y_shape.Count() * size);
  // A row of the result is read from x in steps of one stride.
  const int last = problem.shape.rank - 1;
  const std::int64_t row = last < 0 ? 1 : y_shape[last];
  Index step{};
  if (last >= 0) step[problem.perm[last]] = 1;
  const std::int64_t stride = Flatten(problem.shape, step, problem.row_stride);
  for (std::int64_t i = 0; i < y_shape.Count(); i += row) {
    const Index y_index = Unflatten(y_shape, i);
    Index x_index{};
    for (int axis = 0; axis < y_shape.rank; ++axis) x_index[problem.perm[axis]] = y_index[axis];
    const std::int64_t first = Flatten(problem.shape, x_index, problem.row_stride);
    for (std::int64_t j = 0; j < row; ++j) {
      std::memcpy(y.data() + (i + j) * size, x.data() + (first + j * stride) * size, size);
    }
  }
  return y;
}

Reference Reduce(const ReduceProblem& problem, std::span<const std::byte> x) {
  Shape y_shape;  // with the reduced axes of size 1
  for (int axis = 0; axis < problem.shape.rank; ++axis) {
    y_shape.Append(problem.axes_mask >> axis & 1 ? 1 : problem.shape[axis]);
  }
  // Row-major over x meets the elements of every result row-major over the reduced axes.
  const bool integers = !IsFloat(problem.dtype);
  std::vector<std::vector<long double>> elements(y_shape.Count());
  std::vector<std::vector<std::uint64_t>> bits(y_shape.Count());
  for (auto& of_result : elements) of_result.reserve(problem.ReducedCount());
  for (auto& of_result : bits) of_result.reserve(integers ? problem.ReducedCount() : 0);
  for (std::int64_t i = 0; i < problem.shape.Count(); ++i) {
    Index index = Unflatten(problem.shape, i);
    const std::int64_t at = Flatten(problem.shape, index, problem.row_stride);
    for (int axis = 0; axis < problem.shape.rank; ++axis) {
      if (problem.axes_mask >> axis & 1) index[axis] = 0;
    }
    const std::int64_t result = Flatten(y_shape, index);
    elements[result].push_back(Load(problem.dtype, x, at));
    if (integers) bits[result].push_back(BitsOf(problem.dtype, x, at));
  }

  // Sums that become floats are computed as such.
  const bool sums = problem.op == ReduceOp::kSum || problem.op == ReduceOp::kSumSq;
  const bool wraps = integers && (problem.op == ReduceOp::kProd || (sums && !IsFloat(problem.OutDType())));
  Reference y{problem.OutDType(), {}, {}};
  for (std::int64_t i = 0; i < y_shape.Count(); ++i) {
    if (wraps) {
      y.values.push_back(ReduceIntegers(problem, bits[i]));
      y.magnitudes.push_back(0);
      continue;
    }
    Value value = ReduceReals(problem, elements[i]);
    const DType usual = DefaultOutDType(problem.op, problem.dtype);
    if (!IsFloat(usual) && !(sums && IsFloat(problem.OutDType()))) {  // then it is exact
      const auto as_bits =
          static_cast<std::uint64_t>(usual == DType::kU64 ? 0 : static_cast<std::int64_t>(value.value));
      value.value =
          Converted(usual, value.value,
                    usual == DType::kU64 ? static_cast<std::uint64_t>(value.value) : as_bits, y.dtype);
    }
    y.values.push_back(value.value);
    y.magnitudes.push_back(value.magnitude);
  }
  return y;
}

}  // namespace warpline::testing
