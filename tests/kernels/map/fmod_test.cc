#include "kernels/map/fmod.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace warpline::map {
namespace {

using Limits = std::numeric_limits<double>;

// The library's, bit for bit; any NaN for NaN.
void ExpectAsTheLibrary(double x, double y) {
  const double got = Fmod(x, y), want = std::fmod(x, y);
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << x << " % " << y;
    return;
  }
  EXPECT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(want)) << x << " % " << y;
}

TEST(FmodTest, IsExactForAllPairsOfSpecialNumbers) {
  const double numbers[] = {0,
                            Limits::denorm_min(),
                            3 * Limits::denorm_min(),
                            Limits::min() - Limits::denorm_min(),
                            Limits::min(),
                            0.1,
                            0.3,
                            1,
                            2,
                            7.5,
                            std::nextafter(8.0, 0.0),
                            0x1p53 - 1,
                            0x1p53,
                            1e300,
                            Limits::max(),
                            Limits::infinity(),
                            Limits::quiet_NaN()};
  for (const double x : numbers) {
    for (const double y : numbers) {
      for (const double of_x : {x, -x}) {
        for (const double of_y : {y, -y}) ExpectAsTheLibrary(of_x, of_y);
      }
    }
  }
}

TEST(FmodTest, IsExactForRandomBits) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const auto x = std::bit_cast<double>(random()), y = std::bit_cast<double>(random());
    ExpectAsTheLibrary(x, y);
    ExpectAsTheLibrary(x, x / static_cast<double>(1 + random() % 9));  // a multiple, or nearly one
  }
}

TEST(FmodTest, FloatsAreExactToo) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    const auto y = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    const float got = Fmod(x, y), want = std::fmod(x, y);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got));
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(want)) << x << " % " << y;
    }
  }
}

// A client chooses the operands, and pays for an estimate that does not know them.
TEST(FmodTest, TakesAFewProductsWhateverTheOperands) {
  int most = 0;
  const auto count = [&](double x, double y) {
    int steps = 0;
    FmodInSteps(x, y, [&] { ++steps; });
    most = std::max(most, steps);
  };
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    // Far apart: the exponents of x and y differ by up to 2045.
    const double fraction = static_cast<double>(random() | 1) * 0x1p-64 + 0.5;
    count(std::ldexp(fraction, 1020 - static_cast<int>(random() % 5)),
          std::ldexp(fraction, -static_cast<int>(random() % 1074)));
    count(Limits::max(), std::bit_cast<double>(1 + random() % (std::uint64_t{1} << 52)));
  }
  EXPECT_LE(most, 7);
  EXPECT_GE(most, 7) << "the worst case is not among them";
}

}  // namespace
}  // namespace warpline::map
