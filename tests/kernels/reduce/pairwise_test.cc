#include "kernels/reduce/pairwise.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "kernels/reduce/monoids.h"

namespace warpline {
namespace {

// Not commutative: tells in which order elements were combined.
struct Written {
  using Value = char;
  using Acc = std::string;
  static Acc Identity() { return {}; }
  static void Add(Acc& acc, char x, std::int64_t) { acc += x; }
  static Acc Combine(const Acc& a, const Acc& b) { return a + b; }
};

TEST(PairwiseTest, TakesEveryElementOnceAndInOrder) {
  Pairwise<Written> pairwise;
  std::string expected;
  for (int i = 0; i < 20 * Pairwise<Written>::kBlock; ++i) {
    if (i % 37 == 0) {
      EXPECT_EQ(pairwise.Total(), expected);
    }
    const char x = static_cast<char>('a' + i * i % 23);
    pairwise.Add(x);
    expected += x;
  }
  EXPECT_EQ(pairwise.Total(), expected);
}

TEST(PairwiseTest, TellsIndices) {
  Pairwise<ArgmaxMonoid<double>> pairwise;
  for (int i = 0; i < 1000; ++i) pairwise.Add(i == 700 || i == 900 ? 2.0 : 1.0);
  EXPECT_EQ(pairwise.Total().index, 700);
}

// One loop over all terms loses three digits more.
TEST(PairwiseTest, ErrorsDoNotGrowWithTheNumberOfTerms) {
  using Sum = SumMonoid<double, Lift::kIdentity>;
  constexpr std::int64_t kTerms = std::int64_t{1} << 23;
  Pairwise<Sum> pairwise;
  double serial = 0;
  for (std::int64_t i = 0; i < kTerms; ++i) {
    pairwise.Add(0.1);
    serial += 0.1;
  }
  const double exact = 0.1 * kTerms;  // a power of two times it
  EXPECT_LE(std::abs(pairwise.Total() - exact) / exact, 4e-15);
  EXPECT_GT(std::abs(serial - exact) / exact, 1e-13);
}

}  // namespace
}  // namespace warpline
