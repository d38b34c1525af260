#include "kernels/fast_divisor.h"

#include <cstdint>
#include <random>

#include "gtest/gtest.h"

namespace warpline {
namespace {

constexpr std::uint32_t kLast = 0x7fffffff;  // of the dividends

TEST(FastDivisorTest, DividesAllOfSmallNumbers) {
  for (std::uint32_t divisor = 1; divisor <= 600; ++divisor) {
    const FastDivisor fast(divisor);
    for (std::uint32_t dividend = 0; dividend <= 3000; ++dividend) {
      ASSERT_EQ(fast.Quotient(dividend), dividend / divisor) << dividend << " / " << divisor;
    }
  }
}

// Quotients change at multiples of the divisor: an error shows there, and at the largest of them first.
TEST(FastDivisorTest, DividesAtTheEdges) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const std::uint32_t divisor = 1 + (random() >> (random() % 31)) % kLast;
    const FastDivisor fast(divisor);
    const std::uint32_t multiple = kLast / divisor * divisor;
    for (std::uint32_t dividend : {kLast, multiple, multiple - 1, divisor, divisor - 1}) {
      ASSERT_EQ(fast.Quotient(dividend), dividend / divisor) << dividend << " / " << divisor;
    }
  }
  const FastDivisor largest(FastDivisor::kMax);
  EXPECT_EQ(largest.Quotient(kLast), 0u);
}

TEST(FastDivisorTest, TakesRemainders) {
  std::uint32_t index = 1000;
  EXPECT_EQ(TakeRemainder(index, FastDivisor(7)), 6u);
  EXPECT_EQ(index, 142u);
}

}  // namespace
}  // namespace warpline
