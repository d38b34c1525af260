#include "kernels/reduce/shifted_moments.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace warpline {
namespace {

using Monoid = ShiftedMomentsMonoid;

double Finished(const ShiftedMoments& acc, std::size_t count, ReduceOp op = ReduceOp::kVar) {
  ReduceFinish finish;
  finish.op = op;
  finish.count = static_cast<std::int64_t>(count);
  double result = 0;
  Monoid::Finish(acc, finish, [&](double value) { result = value; });
  return result;
}

// Computes the variance as threads do: shares of the elements, then pairs of shares. All are shifted by the
// first element.
double Variance(const std::vector<double>& x, std::size_t threads = 32) {
  std::vector<ShiftedMoments> shares(threads, Monoid::Identity());
  for (std::size_t t = 0; t < threads; ++t) {
    shares[t].shift = x[0];
    for (std::size_t i = t; i < x.size(); i += threads) Monoid::Add(shares[t], x[i], 0);
  }
  for (std::size_t half = threads / 2; half > 0; half /= 2) {
    for (std::size_t t = 0; t < half; ++t) shares[t] = Monoid::Combine(shares[t], shares[t + half]);
  }
  return Finished(shares[0], x.size());
}

double TwoPasses(const std::vector<double>& x) {
  long double sum = 0, spread = 0;
  for (double each : x) sum += each;
  const long double mean = sum / static_cast<long double>(x.size());
  for (double each : x) spread += (each - mean) * (each - mean);
  return static_cast<double>(spread / static_cast<long double>(x.size()));
}

std::vector<double> Random(std::size_t count, double mean) {
  std::mt19937 random(1);
  std::normal_distribution<float> distribution(static_cast<float>(mean), 1);
  std::vector<double> x(count);
  for (double& each : x) each = distribution(random);
  return x;
}

TEST(ShiftedMomentsTest, AMeanFarFromZeroCostsNothing) {
  for (double mean : {0.0, 1e3, 1e6}) {
    const std::vector<double> x = Random(100003, mean);
    EXPECT_NEAR(Variance(x) / TwoPasses(x), 1, 1e-12) << mean;
  }
}

// The worst case: the bound that the comment on the monoid gives, n 2^-53, with room for the sums' own
// errors.
TEST(ShiftedMomentsTest, AnOutlierAsTheShiftLosesNoMoreThanItsShare) {
  std::vector<double> x = Random(1 << 20, 0);
  x[0] = 1e9;
  EXPECT_NEAR(Variance(x) / TwoPasses(x), 1, std::ldexp(1.0, -24));
}

TEST(ShiftedMomentsTest, EqualElementsHaveNoVariance) {
  EXPECT_EQ(Variance(std::vector<double>(1000, 0.1f)), 0);
}

TEST(ShiftedMomentsTest, NaNAndInfinitiesGiveNaN) {
  for (std::size_t at : {0, 500}) {
    for (double special : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      std::vector<double> x = Random(1000, 0);
      x[at] = special;
      EXPECT_TRUE(std::isnan(Variance(x))) << special << " at " << at;
    }
  }
  EXPECT_TRUE(std::isnan(Finished(Monoid::Identity(), 0)));
}

TEST(ShiftedMomentsTest, StdIsTheRoot) {
  ShiftedMoments acc = {1, 0, 0};
  for (double x : {1.0, 5.0}) Monoid::Add(acc, x, 0);
  EXPECT_EQ(Finished(acc, 2), 4);
  EXPECT_EQ(Finished(acc, 2, ReduceOp::kStd), 2);
}

}  // namespace
}  // namespace warpline
