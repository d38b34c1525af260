#include "client/bench/values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"

namespace warpline::client {
namespace {

// SplitMix64: a good enough bijection of 64 bits, the same in every run.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

template <typename T>
void Put(void* data, std::int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + static_cast<std::size_t>(index) * sizeof(T), &value, sizeof(T));
}

template <typename T>
T Get(const void* data, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + static_cast<std::size_t>(index) * sizeof(T),
              sizeof(T));
  return value;
}

double FromHalf(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value =
        mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else {
    value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

// Half the distance between 1 and the next number.
double RoundingUnit(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return std::ldexp(1, -8);
    case DType::kF16:
      return std::ldexp(1, -11);
    case DType::kF32:
      return std::ldexp(1, -24);
    case DType::kF64:
      return std::ldexp(1, -53);
    default:
      return 0;
  }
}

// The greatest finite value; infinity for f64, whose overflow is that of the expectation too, and for types
// without infinities.
double Greatest(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return std::ldexp(255, 120);
    case DType::kF16:
      return 65504;
    case DType::kF32:
      return std::numeric_limits<float>::max();
    default:
      return HUGE_VAL;
  }
}

// A value from -2 to 4; of unsigned types and bool not below 0. Other types than the real ones get 0: no
// operation computes with them.
void PutSmall(DType dtype, void* data, std::int64_t index, int value) {
  constexpr std::array<std::uint16_t, 5> kHalf = {0xc000, 0xbc00, 0, 0x3c00, 0x4000};
  constexpr std::array<std::uint16_t, 5> kBFloat = {0xc000, 0xbf80, 0, 0x3f80, 0x4000};
  switch (dtype) {
    case DType::kBool:
      return Put(data, index, static_cast<std::uint8_t>(value != 0));
    case DType::kU8:
    case DType::kI8:
      return Put(data, index, static_cast<std::int8_t>(value));
    case DType::kU16:
    case DType::kI16:
      return Put(data, index, static_cast<std::int16_t>(value));
    case DType::kU32:
    case DType::kI32:
      return Put(data, index, static_cast<std::int32_t>(value));
    case DType::kU64:
    case DType::kI64:
      return Put(data, index, static_cast<std::int64_t>(value));
    case DType::kF16:
      return Put(data, index, kHalf[value + 2]);
    case DType::kBF16:
      return Put(data, index, kBFloat[value + 2]);
    case DType::kF32:
      return Put(data, index, static_cast<float>(value));
    case DType::kF64:
      return Put(data, index, static_cast<double>(value));
    case DType::kC64:
      return Put(data, index, std::uint64_t{0});
    case DType::kC128:
      Put(data, 2 * index, std::uint64_t{0});
      return Put(data, 2 * index + 1, std::uint64_t{0});
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return Put(data, index, std::uint8_t{0});
  }
}

absl::Status Check(DType dtype, std::int64_t index, double got, double want, double magnitude) {
  // The rounding of the result, and that of an accumulator of 24 bits over terms of this magnitude.
  const double tolerance = 2 * RoundingUnit(dtype) * std::abs(want) + std::ldexp(magnitude, -22);
  const bool overflows =
      std::isinf(got) && std::signbit(got) == std::signbit(want) && std::abs(want) > Greatest(dtype);
  if (got == want || overflows || std::abs(got - want) <= tolerance ||
      (std::isnan(got) && std::isnan(want))) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat("wrong result: element ", index, " is ", got, " instead of ", want));
}

// A value, and the magnitude of the terms that were added up for it: 0 if it has to be exact.
struct Expected {
  double value = 0;
  double magnitude = 0;
};

// What is known of the elements that become one.
class Cell {
 public:
  void Add(double value, std::int64_t where) {
    sum_ += value;
    magnitude_ += std::abs(value);
    squares_ += value * value;
    product_ *= value;
    exponentials_ += std::exp(value);
    nonzero_ += value != 0 ? 1 : 0;
    if (value < least_) least_ = value, least_at_ = where;
    if (value > greatest_) greatest_ = value, greatest_at_ = where;
  }

  Expected Reduced(v1::ReduceOp op, std::int64_t count) const {
    const auto n = static_cast<double>(count);
    const double variance = std::max(squares_ / n - sum_ / n * (sum_ / n), 0.0);
    switch (op) {
      case v1::REDUCE_OP_SUM:
        return {sum_, magnitude_};
      case v1::REDUCE_OP_PROD:
        return {product_};
      case v1::REDUCE_OP_MIN:
        return {least_};
      case v1::REDUCE_OP_MAX:
        return {greatest_};
      case v1::REDUCE_OP_MEAN:
        return {sum_ / n, magnitude_ / n};
      case v1::REDUCE_OP_ARGMIN:
        return {static_cast<double>(least_at_)};
      case v1::REDUCE_OP_ARGMAX:
        return {static_cast<double>(greatest_at_)};
      case v1::REDUCE_OP_ANY:
        return {nonzero_ > 0 ? 1.0 : 0.0};
      case v1::REDUCE_OP_ALL:
        return {nonzero_ == count ? 1.0 : 0.0};
      case v1::REDUCE_OP_COUNT_NONZERO:
        return {static_cast<double>(nonzero_)};
      case v1::REDUCE_OP_NORM1:
        return {magnitude_, magnitude_};
      case v1::REDUCE_OP_NORM2:
        return {std::sqrt(squares_), std::sqrt(squares_)};
      case v1::REDUCE_OP_NORMINF:
        return {std::max(-least_, greatest_)};
      case v1::REDUCE_OP_SUMSQ:
        return {squares_, squares_};
      case v1::REDUCE_OP_VAR:
        return {variance, squares_ / n};
      case v1::REDUCE_OP_STD:
        return {std::sqrt(variance), std::sqrt(squares_ / n)};
      case v1::REDUCE_OP_LOGSUMEXP:
        return {std::log(exponentials_), 1 + std::abs(std::log(exponentials_))};
      default:
        return {std::numeric_limits<double>::quiet_NaN()};
    }
  }

 private:
  double sum_ = 0, magnitude_ = 0, squares_ = 0, product_ = 1, exponentials_ = 0;
  double least_ = HUGE_VAL, greatest_ = -HUGE_VAL;
  std::int64_t nonzero_ = 0, least_at_ = 0, greatest_at_ = 0;
};

absl::Status CheckCount(const Array& array, std::int64_t count) {
  if (array.shape().Count() == count) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("wrong result: shape ", ToString(array.shape()), " instead of ", count, " elements"));
}

}  // namespace

void FillDistinct(DType dtype, void* data, std::int64_t count) {
  const bool is_complex = dtype == DType::kC64 || dtype == DType::kC128;
  const std::size_t size = is_complex ? SizeOf(dtype) / 2 : SizeOf(dtype);
  const std::int64_t numbers = is_complex ? count * 2 : count;
  for (std::int64_t i = 0; i < numbers; ++i) {
    // The two highest bits of sign and exponent are 0: no type's NaN.
    const std::uint64_t bits = Mix(static_cast<std::uint64_t>(i)) >> 2;
    if (size == 1) Put(data, i, static_cast<std::uint8_t>(bits >> (dtype == DType::kBool ? 61 : 56)));
    if (size == 2) Put(data, i, static_cast<std::uint16_t>(bits >> 48));
    if (size == 4) Put(data, i, static_cast<std::uint32_t>(bits >> 32));
    if (size == 8) Put(data, i, bits);
  }
}

void FillSmall(DType dtype, void* data, std::int64_t count, std::uint64_t seed) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t which = Mix(static_cast<std::uint64_t>(i) ^ seed << 48) % 5;
    PutSmall(dtype, data, i, static_cast<int>(which) - (IsUnsigned(dtype) ? 0 : 2));
  }
}

double ElementAt(DType dtype, const void* data, std::int64_t index) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return Get<std::uint8_t>(data, index);
    case DType::kU16:
      return Get<std::uint16_t>(data, index);
    case DType::kU32:
      return Get<std::uint32_t>(data, index);
    case DType::kU64:
      return static_cast<double>(Get<std::uint64_t>(data, index));
    case DType::kI8:
      return Get<std::int8_t>(data, index);
    case DType::kI16:
      return Get<std::int16_t>(data, index);
    case DType::kI32:
      return Get<std::int32_t>(data, index);
    case DType::kI64:
      return static_cast<double>(Get<std::int64_t>(data, index));
    case DType::kF16:
      return FromHalf(Get<std::uint16_t>(data, index));
    case DType::kBF16: {
      const std::uint32_t bits = std::uint32_t{Get<std::uint16_t>(data, index)} << 16;
      return Get<float>(&bits, 0);
    }
    case DType::kF32:
      return Get<float>(data, index);
    case DType::kF64:
      return Get<double>(data, index);
    case DType::kC64:
    case DType::kC128:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

absl::Status CheckTranspose(const TransposeArgs& args, const Array& y) {
  const Shape& shape = args.x.shape;
  Shape expected = shape;
  if (shape.rank >= 2) std::swap(expected[shape.rank - 2], expected[shape.rank - 1]);
  if (y.shape() != expected || y.dtype() != args.x.dtype) {
    return absl::InternalError(absl::StrCat("wrong result: shape ", ToString(y.shape())));
  }
  if (y.bytes() == 0) return absl::OkStatus();
  const std::size_t size = SizeOf(args.x.dtype);
  const std::int64_t columns = shape.rank >= 2 ? shape[shape.rank - 1] : 1;
  const std::int64_t rows = shape.rank >= 2 ? shape[shape.rank - 2] : shape.Count();
  const auto* from = static_cast<const char*>(args.x.data);
  const auto* to = static_cast<const char*>(y.data());
  for (std::int64_t i = 0; i < shape.Count(); ++i) {
    const std::int64_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
    const std::int64_t j = (matrix * columns + column) * rows + row;
    if (std::memcmp(from + static_cast<std::size_t>(i) * size, to + static_cast<std::size_t>(j) * size,
                    size) != 0) {
      return absl::InternalError(
          absl::StrCat("wrong result: element ", j, " is not element ", i, " of the input"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGemm(const GemmArgs& args, const Array& d) {
  constexpr std::uint64_t kSamples = 64;
  const std::int64_t m = args.a.shape[0], k = args.a.shape[1], n = args.b.shape[1];
  if (absl::Status status = CheckCount(d, m * n); !status.ok() || m * n == 0) return status;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    const auto index = static_cast<std::int64_t>(Mix(sample) % static_cast<std::uint64_t>(m * n));
    double sum = 0, magnitude = 0;
    for (std::int64_t i = 0; i < k; ++i) {
      const double term = ElementAt(args.a.dtype, args.a.data, index / n * k + i) *
                          ElementAt(args.b.dtype, args.b.data, i * n + index % n);
      sum += term;
      magnitude += std::abs(term);
    }
    const double got = ElementAt(d.dtype(), d.data(), index);
    if (absl::Status status = Check(d.dtype(), index, got, sum, magnitude); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckReduce(const ReduceArgs& args, const Array& y) {
  const Shape& shape = args.x.shape;
  unsigned mask = args.axes.empty() ? ~0u : 0;
  for (int axis : args.axes) mask |= 1u << (axis < 0 ? axis + shape.rank : axis);
  std::array<std::int64_t, kMaxRank> kept_stride{}, reduced_stride{};
  std::int64_t kept = 1, reduced = 1;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    const bool is_reduced = (mask >> axis & 1) != 0;
    (is_reduced ? reduced_stride : kept_stride)[axis] = is_reduced ? reduced : kept;
    (is_reduced ? reduced : kept) *= shape[axis];
  }
  if (absl::Status status = CheckCount(y, kept); !status.ok() || reduced == 0) return status;
  std::vector<Cell> cells(static_cast<std::size_t>(kept));
  for (std::int64_t i = 0; i < shape.Count(); ++i) {
    std::int64_t rest = i, to = 0, within = 0;
    for (int axis = shape.rank - 1; axis >= 0; --axis) {
      to += rest % shape[axis] * kept_stride[axis];
      within += rest % shape[axis] * reduced_stride[axis];
      rest /= shape[axis];
    }
    const double value = ElementAt(args.x.dtype, args.x.data, i);
    cells[static_cast<std::size_t>(to)].Add(value, within);
  }
  for (std::int64_t i = 0; i < kept; ++i) {
    const Expected want = cells[static_cast<std::size_t>(i)].Reduced(args.op, reduced);
    const double got = ElementAt(y.dtype(), y.data(), i);
    if (absl::Status status = Check(y.dtype(), i, got, want.value, want.magnitude); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

}  // namespace warpline::client
