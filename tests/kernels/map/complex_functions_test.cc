#include "kernels/map/complex_functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace warpline::map {
namespace {

using Complex = ComplexNumber<double>;

constexpr double kHuge = 1.7e308;

void ExpectIs(const Complex& got, double re, double im) {
  EXPECT_EQ(got.re, re);
  EXPECT_EQ(got.im, im);
}

TEST(ComplexFunctionsTest, WholePowersAreProducts) {
  ExpectIs(ComplexPow(Complex{0, 1}, Complex{2, 0}), -1, 0);
  ExpectIs(ComplexPow(Complex{1, 1}, Complex{4, 0}), -4, 0);
  ExpectIs(ComplexPow(Complex{0, 2}, Complex{-2, 0}), -0.25, 0);
}

TEST(ComplexFunctionsTest, PowersOfZero) {
  ExpectIs(ComplexPow(Complex{0, 0}, Complex{0, 0}), 1, 0);
  ExpectIs(ComplexPow(Complex{0, 0}, Complex{0.5, 3}), 0, 0);
  EXPECT_TRUE(std::isnan(ComplexPow(Complex{0, 0}, Complex{-1, 0}).re));
  EXPECT_TRUE(std::isnan(ComplexPow(Complex{0, 0}, Complex{0, 1}).im));
}

TEST(ComplexFunctionsTest, ThePowerZeroOfAnythingIsOne) {
  ExpectIs(ComplexPow(Complex{kNaN<double>, kInfinity<double>}, Complex{0, 0}), 1, 0);
}

TEST(ComplexFunctionsTest, SignsKeepTheirDirectionAtTheEndsOfTheRange) {
  ExpectIs(ComplexSign(Complex{3, -4}), 0.6, -0.8);
  const Complex diagonal = ComplexSign(Complex{kHuge, kHuge});
  EXPECT_DOUBLE_EQ(diagonal.re, std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(diagonal.im, std::sqrt(0.5));
  ExpectIs(ComplexSign(Complex{-kInfinity<double>, 5}), -1, 0);
  ExpectIs(ComplexSign(Complex{5, kInfinity<double>}), 0, 1);
  ExpectIs(ComplexSign(Complex{0, std::numeric_limits<double>::denorm_min()}), 0, 1);
}

TEST(ComplexFunctionsTest, SmallNumbersKeepTheirDigits) {
  ExpectIs(ComplexExpm1(Complex{1e-20, 1e-30}), 1e-20, 1e-30);
  ExpectIs(ComplexLog1p(Complex{1e-20, 1e-30}), 1e-20, 1e-30);
}

TEST(ComplexFunctionsTest, QuotientsOfLargeNumbersDoNotOverflow) {
  ExpectIs(Quotient(Complex{1e300, 1e300}, Complex{1e300, 1e300}), 1, 0);
}

}  // namespace
}  // namespace warpline::map
