// Elements of raw tensors as numbers, by code that shares nothing with kernels/ beyond the DType.
#ifndef WARPLINE_TESTS_TESTING_ELEMENT_H_
#define WARPLINE_TESTS_TESTING_ELEMENT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/dtype.h"

namespace warpline::testing {

// The raw, little-endian storage of a tensor, as it travels.
using Bytes = std::vector<std::byte>;

// Element `index`, of a type that IsReal. A long double has at least 64 bits of mantissa, so every value of
// every type is exact.
long double Load(DType dtype, std::span<const std::byte> data, std::int64_t index);

// Rounds to nearest even, once; integers must be in range.
void Store(DType dtype, long double value, std::span<std::byte> data, std::int64_t index);

// The range of an integer type, or of bool.
long double LeastOf(DType dtype);
long double GreatestOf(DType dtype);
// The number of an integer type, or of bool, that is congruent to `bits`; bool is whether they are not 0.
long double Wrapped(DType dtype, std::uint64_t bits);
// An integer or bool, sign-extended.
std::uint64_t BitsOf(DType dtype, std::span<const std::byte> data, std::int64_t index);

// A dense tensor of these values.
Bytes Pack(DType dtype, std::span<const long double> values);
std::vector<long double> Unpack(DType dtype, std::span<const std::byte> data);

// A floating-point format. Of f32: 24 bits of precision, 2^-149 the smallest positive number.
struct FloatFormat {
  int precision;     // bits of significand, the hidden one included
  int min_exponent;  // of the smallest positive number
  int max_exponent;  // 2^max_exponent is the first power beyond the largest finite number
};
FloatFormat FormatOf(DType dtype);

// Largest relative error of rounding to nearest: 2^-precision. 0 for integers.
long double UnitRoundoff(DType dtype);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_ELEMENT_H_
