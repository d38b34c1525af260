#include "server/schedule/lane_shares.h"

#include <gtest/gtest.h>

namespace warpline {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const MonotonicTime kStart = MonotonicTime() + std::chrono::hours(1000);
constexpr Claimant kA{.share = 1}, kB{.share = 2}, kC{.share = 3};

class LaneSharesTest : public ::testing::Test {
 protected:
  // Whether the claimant got another lane.
  bool Start(const Claimant& claimant, MonotonicTime now = kStart) {
    shares_.Arrive(claimant);
    if (!shares_.MayStart(claimant, 1, now)) {
      shares_.Leave(claimant, now);
      return false;
    }
    shares_.Start(claimant, 1);
    return true;
  }
  void End(const Claimant& claimant, MonotonicTime now = kStart) {
    shares_.End(claimant, 1);
    shares_.Leave(claimant, now);
  }
  LaneShares shares_{{.lanes = 6, .seconds_max = 100}};
};

TEST_F(LaneSharesTest, WhoIsAloneMayHaveAllLanes) {
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(Start(kA)) << i;
}

TEST_F(LaneSharesTest, BesideOthersEachLeavesThemALane) {
  shares_.Arrive(kB);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Start(kA)) << i;
  EXPECT_FALSE(Start(kA));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Start(kB)) << i;
  EXPECT_FALSE(Start(kB));
  EXPECT_TRUE(Start(kC)) << "at least one";
}

TEST_F(LaneSharesTest, TheClientsOfAShareLeaveEachOtherALane) {
  const Claimant first{.share = 1, .client = 1}, second{.share = 1, .client = 2};
  shares_.Arrive(second);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Start(first)) << i;
  EXPECT_FALSE(Start(first));
  EXPECT_TRUE(Start(second));
  shares_.Arrive(kB);
  End(first);
  EXPECT_FALSE(Start(second)) << "the share has five of six lanes, and leaves one to another share";
}

TEST_F(LaneSharesTest, WhoHadAJobASecondAgoStillCounts) {
  shares_.Arrive(kB);
  shares_.Leave(kB, kStart);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Start(kA, kStart + milliseconds(900))) << i;
  EXPECT_FALSE(Start(kA, kStart + milliseconds(900)));
  EXPECT_TRUE(Start(kA, kStart + seconds(1)));
}

TEST_F(LaneSharesTest, LanesThatComeBackMayBeHadAgain) {
  shares_.Arrive(kB);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Start(kA));
  End(kA);
  EXPECT_TRUE(Start(kA));
  EXPECT_FALSE(Start(kA));
}

TEST(LaneSharesSecondsTest, AShareRunsOneVeryLongJobOrSeveralThatAreNotTooLong) {
  LaneShares shares({.lanes = 6, .seconds_max = 10});
  shares.Arrive(kA);
  EXPECT_TRUE(shares.MayStart(kA, 60, kStart));
  shares.Start(kA, 60);
  EXPECT_FALSE(shares.MayStart(kA, 1, kStart));
  EXPECT_TRUE(shares.MayStart(kB, 1, kStart));
  shares.End(kA, 60);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(shares.MayStart(kA, 3, kStart)) << i;
    shares.Start(kA, 3);
  }
  EXPECT_FALSE(shares.MayStart(kA, 3, kStart));
}

}  // namespace
}  // namespace warpline
