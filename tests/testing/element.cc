#include "tests/testing/element.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace warpline::testing {
namespace {

static_assert(std::numeric_limits<long double>::digits >= 64, "i64 must be exact in long double");

std::uint64_t LoadBits(std::size_t size, std::span<const std::byte> data, std::int64_t index) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, data.data() + index * size, size);
  return bits;
}

// From the fields of an IEEE interchange format, whichever it is.
long double Decode(const FloatFormat& format, std::uint64_t bits) {
  const int mantissa_bits = format.precision - 1;
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << mantissa_bits) - 1);
  const std::uint64_t exponent_mask = (std::uint64_t{1} << (format.bits - format.precision)) - 1;
  const std::uint64_t exponent = (bits >> mantissa_bits) & exponent_mask;
  const long double sign = bits >> (format.bits - 1) & 1 ? -1 : 1;
  if (exponent == exponent_mask) {
    return mantissa == 0 ? sign * std::numeric_limits<long double>::infinity()
                         : std::numeric_limits<long double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<long double>(mantissa), format.min_exponent);
  const std::uint64_t significand = mantissa | (std::uint64_t{1} << mantissa_bits);
  return sign * std::ldexp(static_cast<long double>(significand),
                           format.min_exponent + static_cast<int>(exponent) - 1);
}

std::uint64_t Encode(const FloatFormat& format, long double value) {
  const int mantissa_bits = format.precision - 1;
  const std::uint64_t sign = std::uint64_t{std::signbit(value)} << (format.bits - 1);
  const std::uint64_t exponent_mask = (std::uint64_t{1} << (format.bits - format.precision)) - 1;
  const std::uint64_t infinity = exponent_mask << mantissa_bits;
  if (std::isnan(value)) return infinity | (std::uint64_t{1} << (mantissa_bits - 1));
  if (std::isinf(value)) return sign | infinity;
  // The unit in the last place: of the binade of the value, but never below the smallest number.
  int exponent = 0;
  std::frexp(value, &exponent);
  const int ulp = std::max(exponent - format.precision, format.min_exponent);
  // In units: at most 2^precision, and with it rounding has carried into the next binade, which the sum of
  // the fields below does by itself. (rint rounds to nearest even unless told otherwise.)
  const auto units = static_cast<std::uint64_t>(std::rint(std::ldexp(std::fabs(value), -ulp)));
  const std::uint64_t magnitude =
      (static_cast<std::uint64_t>(ulp - format.min_exponent) << mantissa_bits) + units;
  return sign | std::min(magnitude, infinity);
}

}  // namespace

FloatFormat FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {11, -24, 16, 16};
    case DType::kBF16:
      return {8, -133, 128, 16};
    case DType::kF32:
      return {24, -149, 128, 32};
    default:
      return {53, -1074, 1024, 64};
  }
}

long double UnitRoundoff(DType dtype) {
  return IsFloat(dtype) ? std::ldexp(1.0L, -FormatOf(dtype).precision) : 0;
}

long double Load(DType dtype, std::span<const std::byte> data, std::int64_t index) {
  const std::uint64_t bits = LoadBits(SizeOf(dtype), data, index);
  if (dtype == DType::kI32) return static_cast<std::int32_t>(bits);
  if (dtype == DType::kI64) return static_cast<std::int64_t>(bits);
  return Decode(FormatOf(dtype), bits);
}

void Store(DType dtype, long double value, std::span<std::byte> data, std::int64_t index) {
  const std::uint64_t bits = IsFloat(dtype) ? Encode(FormatOf(dtype), value)
                                            : static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  std::memcpy(data.data() + index * SizeOf(dtype), &bits, SizeOf(dtype));
}

Bytes Pack(DType dtype, std::span<const long double> values) {
  Bytes data(values.size() * SizeOf(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) Store(dtype, values[i], data, static_cast<std::int64_t>(i));
  return data;
}

std::vector<long double> Unpack(DType dtype, std::span<const std::byte> data) {
  std::vector<long double> values(data.size() / SizeOf(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = Load(dtype, data, static_cast<std::int64_t>(i));
  return values;
}

}  // namespace warpline::testing
