#include "server/rpc/call_counts.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace warpline {
namespace {

TEST(CallCountsTest, StreamsAndWhatAwaitsADeviceSayNothingOfTheLoad) {
  CallCounts counts;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(counts.AddInProgress());
  EXPECT_EQ(counts.in_progress(), 3);
  counts.AddStream();
  counts.AddAwaiting();
  EXPECT_EQ(counts.in_progress(), 1);
  EXPECT_EQ(counts.all_in_progress(), 3);
  counts.RemoveAwaiting();
  EXPECT_EQ(counts.in_progress(), 2);
}

TEST(CallCountsTest, AnEndWaitsForWhatAwaitsADeviceToo) {
  CallCounts counts;
  ASSERT_TRUE(counts.AddInProgress());
  counts.AddAwaiting();
  counts.Drain();
  EXPECT_FALSE(counts.AddInProgress());
  EXPECT_FALSE(counts.AwaitNoneInProgress(absl::Now()));
  counts.RemoveAwaiting();
  counts.RemoveInProgress();
  EXPECT_TRUE(counts.AwaitNoneInProgress(absl::Now()));
}

}  // namespace
}  // namespace warpline
