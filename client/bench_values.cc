#include "client/bench_values.h"

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

absl::Status Check(DType dtype, std::int64_t index, double got, double want, double magnitude) {
  // The rounding of the result, and that of an accumulator of 24 bits over terms of this magnitude.
  const double tolerance = 2 * RoundingUnit(dtype) * std::abs(want) + std::ldexp(magnitude, -22);
  if (got == want || std::abs(got - want) <= tolerance || (std::isnan(got) && std::isnan(want))) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat("wrong result: element ", index, " is ", got, " instead of ", want));
}

absl::Status CheckCount(const Array& array, std::int64_t count) {
  if (array.shape().Count() == count) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("wrong result: shape ", ToString(array.shape()), " instead of ", count, " elements"));
}

}  // namespace

void FillDistinct(DType dtype, void* data, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    // The two highest bits of sign and exponent are 0: no type's NaN.
    const std::uint64_t bits = Mix(static_cast<std::uint64_t>(i)) >> 2;
    if (SizeOf(dtype) == 2) Put(data, i, static_cast<std::uint16_t>(bits >> 48));
    if (SizeOf(dtype) == 4) Put(data, i, static_cast<std::uint32_t>(bits >> 32));
    if (SizeOf(dtype) == 8) Put(data, i, bits);
  }
}

void FillSmall(DType dtype, void* data, std::int64_t count, std::uint64_t seed) {
  constexpr std::array<std::uint16_t, 5> kHalf = {0xc000, 0xbc00, 0, 0x3c00, 0x4000};
  constexpr std::array<std::uint16_t, 5> kBFloat = {0xc000, 0xbf80, 0, 0x3f80, 0x4000};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t which = Mix(static_cast<std::uint64_t>(i) ^ seed << 48) % 5;
    const int value = static_cast<int>(which) - 2;
    switch (dtype) {
      case DType::kI32:
        Put(data, i, static_cast<std::int32_t>(value));
        break;
      case DType::kI64:
        Put(data, i, static_cast<std::int64_t>(value));
        break;
      case DType::kF16:
        Put(data, i, kHalf[which]);
        break;
      case DType::kBF16:
        Put(data, i, kBFloat[which]);
        break;
      case DType::kF32:
        Put(data, i, static_cast<float>(value));
        break;
      case DType::kF64:
        Put(data, i, static_cast<double>(value));
        break;
    }
  }
}

double ElementAt(DType dtype, const void* data, std::int64_t index) {
  switch (dtype) {
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
  }
  return 0;
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
  struct Cell {
    double sum = 0, magnitude = 0, least = HUGE_VAL, greatest = -HUGE_VAL;
    std::int64_t where = 0;
  };
  std::vector<Cell> cells(static_cast<std::size_t>(kept));
  for (std::int64_t i = 0; i < shape.Count(); ++i) {
    std::int64_t rest = i, to = 0, within = 0;
    for (int axis = shape.rank - 1; axis >= 0; --axis) {
      to += rest % shape[axis] * kept_stride[axis];
      within += rest % shape[axis] * reduced_stride[axis];
      rest /= shape[axis];
    }
    const double value = ElementAt(args.x.dtype, args.x.data, i);
    Cell& cell = cells[static_cast<std::size_t>(to)];
    cell.sum += value;
    cell.magnitude += std::abs(value);
    cell.least = std::min(cell.least, value);
    if (value > cell.greatest) {
      cell.greatest = value;
      cell.where = within;
    }
  }
  for (std::int64_t i = 0; i < kept; ++i) {
    const Cell& cell = cells[static_cast<std::size_t>(i)];
    double want = cell.sum, magnitude = cell.magnitude;
    if (args.op == v1::REDUCE_OP_MEAN)
      want /= static_cast<double>(reduced), magnitude /= static_cast<double>(reduced);
    if (args.op == v1::REDUCE_OP_MIN) want = cell.least, magnitude = 0;
    if (args.op == v1::REDUCE_OP_MAX) want = cell.greatest, magnitude = 0;
    if (args.op == v1::REDUCE_OP_ARGMAX) want = static_cast<double>(cell.where), magnitude = 0;
    const double got = ElementAt(y.dtype(), y.data(), i);
    if (absl::Status status = Check(y.dtype(), i, got, want, magnitude); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace warpline::client
