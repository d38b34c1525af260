#include "server/base/errors.h"

#include <gtest/gtest.h>

#include <set>

namespace warpline {
namespace {

TEST(SpreadTest, AddsUpToAsMuchAgainAtRandom) {
  std::set<absl::Duration> delays;
  for (int i = 0; i < 100; ++i) delays.insert(Spread(absl::Seconds(1)));
  EXPECT_GT(delays.size(), 90u);
  EXPECT_GE(*delays.begin(), absl::Seconds(1));
  EXPECT_LE(*delays.rbegin(), absl::Seconds(2));
}

TEST(SpreadTest, KeepsTheRestOfAStatus) {
  const absl::Status full = WithRetryAfter(absl::ResourceExhaustedError("full"), absl::Milliseconds(100));
  const absl::Status spread = WithSpreadRetryAfter(full);
  EXPECT_EQ(spread.message(), "full");
  EXPECT_GE(*RetryAfterOf(spread), absl::Milliseconds(100));
  EXPECT_FALSE(RetryAfterOf(WithSpreadRetryAfter(absl::UnavailableError("away"))).has_value());
  EXPECT_TRUE(WithSpreadRetryAfter(absl::OkStatus()).ok());
}

}  // namespace
}  // namespace warpline
