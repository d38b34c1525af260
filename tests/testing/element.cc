#include "tests/testing/element.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace warpline::testing {
namespace {

static_assert(std::numeric_limits<long double>::digits >= 64, "i64 must be exact in long double");

template <typename T>
T LoadAs(std::span<const std::byte> data, std::int64_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void StoreAs(T value, std::span<std::byte> data, std::int64_t index) {
  std::memcpy(data.data() + index * sizeof(T), &value, sizeof(T));
}

// The 16-bit formats, from the fields of IEEE interchange formats.
long double Decode(const FloatFormat& format, std::uint16_t bits) {
  const int mantissa_bits = format.precision - 1;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int exponent_mask = (1 << (16 - format.precision)) - 1;
  const int exponent = (bits >> mantissa_bits) & exponent_mask;
  const float sign = bits >> 15 ? -1.0f : 1.0f;
  if (exponent == exponent_mask) {
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  const int significand = exponent == 0 ? mantissa : mantissa | (1 << mantissa_bits);
  return sign * std::ldexp(static_cast<float>(significand), format.min_exponent + std::max(exponent - 1, 0));
}

std::uint16_t Encode(const FloatFormat& format, long double value) {
  const int mantissa_bits = format.precision - 1;
  const int sign = std::signbit(value) ? 1 << 15 : 0;
  const int infinity = ((1 << (16 - format.precision)) - 1) << mantissa_bits;
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | 1 << (mantissa_bits - 1));
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  if (value == 0) return static_cast<std::uint16_t>(sign);
  // The unit in the last place: of the binade of the value, but never below the smallest number.
  int exponent = 0;
  std::frexp(value, &exponent);
  if (exponent > format.max_exponent) return static_cast<std::uint16_t>(sign | infinity);
  const int ulp = std::max(exponent - format.precision, format.min_exponent);
  // At most 2^precision units; with so many, rounding has carried into the next binade, which the sum of the
  // fields below does by itself. (rint rounds to nearest even unless told otherwise.)
  const int units = static_cast<int>(std::rint(std::ldexp(std::fabs(value), -ulp)));
  const int magnitude = ((ulp - format.min_exponent) << mantissa_bits) + units;
  return static_cast<std::uint16_t>(sign | std::min(magnitude, infinity));
}

}  // namespace

FloatFormat FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {11, -24, 16};
    case DType::kBF16:
      return {8, -133, 128};
    case DType::kF32:
      return {24, -149, 128};
    default:
      return {53, -1074, 1024};
  }
}

long double UnitRoundoff(DType dtype) {
  return IsFloat(dtype) ? std::ldexp(1.0L, -FormatOf(dtype).precision) : 0;
}

long double Load(DType dtype, std::span<const std::byte> data, std::int64_t index) {
  switch (dtype) {
    case DType::kBool:
      return LoadAs<std::uint8_t>(data, index) != 0 ? 1 : 0;
    case DType::kU8:
      return LoadAs<std::uint8_t>(data, index);
    case DType::kU16:
      return LoadAs<std::uint16_t>(data, index);
    case DType::kU32:
      return LoadAs<std::uint32_t>(data, index);
    case DType::kU64:
      return static_cast<long double>(LoadAs<std::uint64_t>(data, index));
    case DType::kI8:
      return LoadAs<std::int8_t>(data, index);
    case DType::kI16:
      return LoadAs<std::int16_t>(data, index);
    case DType::kI32:
      return LoadAs<std::int32_t>(data, index);
    case DType::kI64:
      return static_cast<long double>(LoadAs<std::int64_t>(data, index));
    case DType::kF32:
      return LoadAs<float>(data, index);
    case DType::kF64:
      return LoadAs<double>(data, index);
    default:
      return Decode(FormatOf(dtype), LoadAs<std::uint16_t>(data, index));
  }
}

void Store(DType dtype, long double value, std::span<std::byte> data, std::int64_t index) {
  switch (dtype) {
    case DType::kBool:
      return StoreAs(static_cast<std::uint8_t>(value != 0 ? 1 : 0), data, index);
    case DType::kU8:
      return StoreAs(static_cast<std::uint8_t>(value), data, index);
    case DType::kU16:
      return StoreAs(static_cast<std::uint16_t>(value), data, index);
    case DType::kU32:
      return StoreAs(static_cast<std::uint32_t>(value), data, index);
    case DType::kU64:
      return StoreAs(static_cast<std::uint64_t>(value), data, index);
    case DType::kI8:
      return StoreAs(static_cast<std::int8_t>(value), data, index);
    case DType::kI16:
      return StoreAs(static_cast<std::int16_t>(value), data, index);
    case DType::kI32:
      return StoreAs(static_cast<std::int32_t>(value), data, index);
    case DType::kI64:
      return StoreAs(static_cast<std::int64_t>(value), data, index);
    case DType::kF32:
      return StoreAs(static_cast<float>(value), data, index);
    case DType::kF64:
      return StoreAs(static_cast<double>(value), data, index);
    default:
      return StoreAs(Encode(FormatOf(dtype), value), data, index);
  }
}

long double LeastOf(DType dtype) {
  return IsSigned(dtype) ? -std::ldexp(1.0L, 8 * static_cast<int>(SizeOf(dtype)) - 1) : 0;
}

long double GreatestOf(DType dtype) {
  if (dtype == DType::kBool) return 1;
  const int bits = 8 * static_cast<int>(SizeOf(dtype)) - (IsSigned(dtype) ? 1 : 0);
  return std::ldexp(1.0L, bits) - 1;
}

long double Wrapped(DType dtype, std::uint64_t bits) {
  switch (dtype) {
    case DType::kBool:
      return bits != 0 ? 1 : 0;
    case DType::kU8:
      return static_cast<std::uint8_t>(bits);
    case DType::kU16:
      return static_cast<std::uint16_t>(bits);
    case DType::kU32:
      return static_cast<std::uint32_t>(bits);
    case DType::kU64:
      return static_cast<long double>(bits);
    case DType::kI8:
      return static_cast<std::int8_t>(bits);
    case DType::kI16:
      return static_cast<std::int16_t>(bits);
    case DType::kI32:
      return static_cast<std::int32_t>(bits);
    default:
      return static_cast<long double>(static_cast<std::int64_t>(bits));
  }
}

std::uint64_t BitsOf(DType dtype, std::span<const std::byte> data, std::int64_t index) {
  if (dtype == DType::kU64) return LoadAs<std::uint64_t>(data, index);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(Load(dtype, data, index)));
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
