// Each kind of vectors that this processor has, within the errors that docs/array-api.md promises.
#include "kernels/cpu/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/map/operations.h"

#ifdef WARPLINE_HAS_VECTOR_MATH

namespace warpline::cpu {
namespace {

template <typename T>
using Loop = void (*)(const T*, T*, int);

template <typename Function, typename T>
std::vector<Loop<T>> LoopsHere() {
  std::vector<Loop<T>> loops = {&ApplyTo16Bytes<Function, T>};
  if (VectorBytes() >= 32) loops.push_back(&ApplyTo32Bytes<Function, T>);
  if (VectorBytes() >= 64) loops.push_back(&ApplyTo64Bytes<Function, T>);
  return loops;
}

// From the smallest to where results overflow, of both signs, with the special numbers.
template <typename T>
std::vector<T> Operands() {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  std::vector<T> all = {0, T{-0.0}, kInfinity, -kInfinity, std::numeric_limits<T>::quiet_NaN(), 1, -1};
  std::mt19937 random(7);
  std::uniform_real_distribution<T> mantissa(1, 2);
  for (int i = 0; i < 40000; ++i) {
    const auto exponent = static_cast<int>(random() % 40) - 30;
    all.push_back(std::ldexp(random() % 2 == 0 ? mantissa(random) : -mantissa(random), exponent));
  }
  return all;
}

// The error of a result, in units of the last place of the true one.
template <typename T>
long double UlpsBetween(T got, long double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : std::numeric_limits<long double>::infinity();
  const T near = static_cast<T>(want);
  if (std::isinf(near) || near == 0) return got == near ? 0 : std::numeric_limits<long double>::infinity();
  const int exponent = std::max(std::ilogb(near), std::numeric_limits<T>::min_exponent - 1);
  return std::fabs(got - want) / std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits + 1);
}

template <typename Function, typename T>
void Check(MapOp op, long double (*exact)(long double)) {
  const std::vector<T> x = Operands<T>();
  for (const Loop<T> loop : LoopsHere<Function, T>()) {
    std::vector<T> y(x.size());
    loop(x.data(), y.data(), static_cast<int>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double error = UlpsBetween(y[i], exact(x[i]));
      ASSERT_LE(error, RowOf(op).max_ulp) << RowOf(op).name << " of " << x[i] << " gives " << y[i];
    }
    // A result does not depend on its place.
    T last = 0;
    loop(&x[100], &last, 1);
    EXPECT_EQ(last, y[100]) << RowOf(op).name;
  }
}

TEST(VectorMathTest, EveryKindKeepsTheErrorsOfTheTable) {
#define WARPLINE_CHECK(operation, of_float, of_double)                                              \
  Check<map::operation, float>(MapOp::k##operation, [](long double x) { return of_double##l(x); }); \
  Check<map::operation, double>(MapOp::k##operation, [](long double x) { return of_double##l(x); });
  WARPLINE_VECTOR_FUNCTIONS(WARPLINE_CHECK)
#undef WARPLINE_CHECK
}

}  // namespace
}  // namespace warpline::cpu

#endif
