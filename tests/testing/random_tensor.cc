#include "tests/testing/random_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace warpline::testing {
namespace {

// Makes a value from the engine's 64 bits, which the standard fixes. The standard distributions differ
// between libraries.
long double Value(DType dtype, std::uint64_t bits) {
  if (!IsFloat(dtype)) return Wrapped(dtype, dtype == DType::kBool ? bits & 1 : bits);
  return static_cast<long double>(static_cast<std::int64_t>(bits)) * 0x1p-63L;
}

long double Special(DType dtype, std::uint64_t bits) {
  using Limits = std::numeric_limits<long double>;
  const std::uint64_t choice = bits % 5;
  if (IsFloat(dtype)) {
    return std::array<long double, 5>{Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), 0.0L,
                                      -0.0L}[choice];
  }
  const long double least = LeastOf(dtype), greatest = GreatestOf(dtype);
  return std::array<long double, 5>{least, greatest, 0, least, greatest}[choice];
}

}  // namespace

Bytes RandomTensor(DType dtype, std::int64_t count, std::uint64_t seed) {
  if (IsComplex(dtype)) return RandomTensor(PartOf(dtype), 2 * count, seed);
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

Bytes RandomWideTensor(DType dtype, std::int64_t count, std::uint64_t seed) {
  Bytes data = RandomTensorWithSpecials(dtype, count, seed);
  if (!IsFloat(dtype)) return data;
  std::mt19937_64 engine(seed + 2);
  for (std::int64_t i = 0; i < count; ++i) {
    const int exponent = static_cast<int>(engine() % 80);
    Store(dtype, std::ldexp(Load(dtype, data, i), exponent), data, i);
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
