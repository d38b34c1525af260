#include "server/rpc/call_counts.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace warpline {
namespace {

TEST(CallCountsTest, ACallIsInProgressWhetherItKeepsAThreadBusyOrNot) {
  CallCounts counts;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(counts.AddInProgress());
  counts.AddBusy();
  EXPECT_EQ(counts.in_progress(), 3);
  EXPECT_EQ(counts.busy(), 1);
  counts.RemoveBusy();
  EXPECT_EQ(counts.in_progress(), 3);
  EXPECT_EQ(counts.busy(), 0);
}

TEST(CallCountsTest, AnEndWaitsForCallsInProgressAndTakesNoOthers) {
  CallCounts counts;
  ASSERT_TRUE(counts.AddInProgress());
  counts.Drain();
  EXPECT_FALSE(counts.AddInProgress());
  EXPECT_FALSE(counts.AwaitNoneInProgress(absl::Now()));
  counts.RemoveInProgress();
  EXPECT_TRUE(counts.AwaitNoneInProgress(absl::Now()));
}

}  // namespace
}  // namespace warpline
