#include "tests/testing/random_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace warpline::testing {
namespace {

// Of the engine's 64 bits, which the standard fixes; its distributions differ between libraries.
long double Value(DType dtype, std::uint64_t bits) {
  if (dtype == DType::kI32) return static_cast<std::int32_t>(bits >> 32);
  if (dtype == DType::kI64) return static_cast<std::int64_t>(bits);
  return static_cast<long double>(static_cast<std::int64_t>(bits)) * 0x1p-63L;
}

long double Special(DType dtype, std::uint64_t bits) {
  using Limits = std::numeric_limits<long double>;
  const std::uint64_t choice = bits % 5;
  if (IsFloat(dtype)) {
    return std::array<long double, 5>{Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), 0.0L,
                                      -0.0L}[choice];
  }
  const long double least = -std::ldexp(1.0L, dtype == DType::kI32 ? 31 : 63);
  return std::array<long double, 5>{least, -least - 1, 0, least, -least - 1}[choice];
}

}  // namespace

Bytes RandomTensor(DType dtype, std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  Bytes data(count * SizeOf(dtype));
  for (std::int64_t i = 0; i < count; ++i) Store(dtype, Value(dtype, engine()), data, i);
  return data;
}

Bytes RandomTensorWithSpecials(DType dtype, std::int64_t count, std::uint64_t seed) {
  Bytes data = RandomTensor(dtype, count, seed);
  std::mt19937_64 engine(seed + 1);
  for (std::int64_t i = 0; i < count; ++i) {
    if (engine() % 8 == 0) Store(dtype, Special(dtype, engine()), data, i);
  }
  return data;
}

Bytes RandomBytes(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  Bytes data(size);
  for (std::size_t i = 0; i < size; i += sizeof(std::uint64_t)) {
    const std::uint64_t bits = engine();
    std::memcpy(data.data() + i, &bits, std::min(sizeof(bits), size - i));
  }
  return data;
}

}  // namespace warpline::testing
