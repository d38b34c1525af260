#include "kernels/reduce/integer_moments.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace warpline {
namespace {

// Computes the variance as two threads do, each from every other element.
template <typename V>
double Variance(const std::vector<V>& x, std::int64_t ddof = 0, ReduceOp op = ReduceOp::kVar) {
  using Monoid = IntegerMomentsMonoid<V>;
  IntegerMoments even = Monoid::Identity(), odd = Monoid::Identity();
  for (std::size_t i = 0; i < x.size(); ++i) Monoid::Add(i % 2 == 0 ? even : odd, x[i], 0);
  ReduceFinish finish;
  finish.op = op;
  finish.count = static_cast<std::int64_t>(x.size());
  finish.ddof = ddof;
  double result = 0;
  Monoid::Finish(Monoid::Combine(even, odd), finish, [&](double value) { result = value; });
  return result;
}

template <typename V>
double TwoPasses(const std::vector<V>& x) {
  long double sum = 0, spread = 0;
  for (V each : x) sum += each;
  const long double mean = sum / static_cast<long double>(x.size());
  for (V each : x) spread += (each - mean) * (each - mean);
  return static_cast<double>(spread / static_cast<long double>(x.size()));
}

template <typename V>
std::vector<V> Random(std::size_t count, V least, V greatest) {
  std::mt19937 random(1);
  std::uniform_int_distribution<V> distribution(least, greatest);
  std::vector<V> x(count);
  for (V& each : x) each = distribution(random);
  return x;
}

TEST(IntegerMomentsTest, IsRoundedOnceOrTwice) {
  const std::vector<std::int32_t> of_8_bits = Random<std::int32_t>(100003, -128, 127);
  const std::vector<std::int32_t> of_16_bits = Random<std::int32_t>(100003, -32768, 32767);
  const std::vector<std::uint32_t> unsigned_ones = Random<std::uint32_t>(100003, 0, 65535);
  constexpr double kFewRoundings = 4 * std::numeric_limits<double>::epsilon();
  EXPECT_NEAR(Variance(of_8_bits) / TwoPasses(of_8_bits), 1, kFewRoundings);
  EXPECT_NEAR(Variance(of_16_bits) / TwoPasses(of_16_bits), 1, kFewRoundings);
  EXPECT_NEAR(Variance(unsigned_ones) / TwoPasses(unsigned_ones), 1, kFewRoundings);
}

// The variance of n elements that are equal except for one, which is 1 away, is (n - 1) / n^2.
TEST(IntegerMomentsTest, ASmallSpreadFarFromZeroCancelsNothing) {
  constexpr double kCount = 1000003;
  constexpr double kVariance = (kCount - 1) / kCount / kCount;
  for (const auto& [most, one] : {std::pair{65535, 65534}, {65534, 65535}, {-32768, -32767}, {0, 1}}) {
    std::vector<std::int32_t> x(static_cast<std::size_t>(kCount), most);
    x[77] = one;
    EXPECT_DOUBLE_EQ(Variance(x), kVariance) << most;
  }
}

TEST(IntegerMomentsTest, TheMostElementsThatSuitDoNotOverflow) {
  constexpr std::int64_t kCount = std::int64_t{1} << 31;
  ReduceFinish finish;
  finish.op = ReduceOp::kVar;
  finish.count = kCount;
  // Returns the variance if `count` elements are `x` and the others are 0.
  const auto variance = [&]<typename V>(V x, std::int64_t count) {
    const auto n = static_cast<std::uint64_t>(count);
    const IntegerMoments moments{static_cast<std::uint64_t>(std::int64_t{x} * count),
                                 IntegerMomentsMonoid<V>::Square(x) * n};
    double result = -1;
    IntegerMomentsMonoid<V>::Finish(moments, finish, [&](double value) { result = value; });
    return result;
  };
  EXPECT_EQ(variance(std::uint32_t{65535}, kCount), 0);
  EXPECT_EQ(variance(std::uint32_t{65535}, kCount / 2), 32767.5 * 32767.5);
  EXPECT_EQ(variance(std::int32_t{-32768}, kCount), 0);
  EXPECT_EQ(variance(std::int32_t{-32768}, kCount / 2), 16384.0 * 16384.0);
}

TEST(IntegerMomentsTest, DegreesOfFreedomAndRoots) {
  const std::vector<std::int32_t> x = {1, 2, 3, 4};
  EXPECT_EQ(Variance(x), 1.25);
  EXPECT_EQ(Variance(x, 1), 5.0 / 3);
  EXPECT_EQ(Variance(x, 0, ReduceOp::kStd), std::sqrt(1.25));
  EXPECT_EQ(Variance(x, 4), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(Variance(std::vector<std::int32_t>{})));
}

TEST(IntegerMomentsTest, SuitsNarrowIntegersOnly) {
  const auto suits = [](DType dtype, std::int64_t count) {
    return IntegerMomentsMonoid<std::int32_t>::Suits({ReduceOp::kVar, dtype, {count}, 1, {}, 0, 0});
  };
  constexpr std::int64_t kMax = std::int64_t{1} << 31;
  EXPECT_TRUE(suits(DType::kI8, kMax));
  EXPECT_TRUE(suits(DType::kI16, kMax));
  EXPECT_FALSE(suits(DType::kI16, kMax + 1));
  EXPECT_FALSE(suits(DType::kI32, 4));
}

}  // namespace
}  // namespace warpline
