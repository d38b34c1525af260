#include "kernels/gemm/epilogue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace warpline {
namespace {

template <typename V>
class GeluTest : public ::testing::Test {};

using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(GeluTest, Reals);

TYPED_TEST(GeluTest, KeepsItsDigitsWhereTheTanhIsNearMinusOne) {
  using V = TypeParam;
  const long double root = std::sqrt(8 / std::acos(-1.0L));
  for (int i = -80; i <= 80; ++i) {
    const V x = static_cast<V>(i) / 10;
    const long double wide = x;
    const long double exponent = root * (wide + 0.044715L * wide * wide * wide);
    const long double want = wide / (1 + std::exp(-exponent));
    // A few roundings of the exponent, which are absolute errors of the logarithm, and a few of the rest.
    const long double bound =
        (4 * std::fabs(exponent) + 4) * static_cast<long double>(std::numeric_limits<V>::epsilon());
    EXPECT_LE(std::fabs(Activate(Activation::kGelu, x) - want), bound * std::fabs(want)) << x;
  }
}

TYPED_TEST(GeluTest, IsZeroFarBelowAndTheArgumentFarAbove) {
  using V = TypeParam;
  const V infinity = std::numeric_limits<V>::infinity();
  for (const V x : {V{-64}, V{-65}, V{-1e30F}, std::numeric_limits<V>::lowest(), -infinity}) {
    EXPECT_EQ(Activate(Activation::kGelu, x), 0) << x;
  }
  for (const V x : {V{64}, V{1e30F}, infinity}) EXPECT_EQ(Activate(Activation::kGelu, x), x);
  EXPECT_TRUE(std::isnan(Activate(Activation::kGelu, std::numeric_limits<V>::quiet_NaN())));
}

}  // namespace
}  // namespace warpline
