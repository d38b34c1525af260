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

TEST_F(LaneSharesTest, OneStaysFreeForWhoHadAJobWithinTheLastSecond) {
  shares_.Arrive(kB);
  shares_.Leave(kB, kStart);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Start(kA, kStart + milliseconds(900))) << i;
  EXPECT_FALSE(Start(kA, kStart + milliseconds(900)));
  EXPECT_TRUE(Start(kB, kStart + milliseconds(900)));
  End(kB, kStart + milliseconds(900));
  EXPECT_FALSE(Start(kA, kStart + milliseconds(1800)));
  EXPECT_TRUE(Start(kA, kStart + milliseconds(1900)));
}

TEST_F(LaneSharesTest, NoneStaysFreeForWhoHasAJobThatWaitsOrRuns) {
  ASSERT_TRUE(Start(kB));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Start(kA)) << i;
  End(kB);
  shares_.Arrive(kB);  // the queue says who gets the lane
  EXPECT_TRUE(Start(kA));
}

TEST(LaneSharesOfTwoTest, EverybodyMayHaveOne) {
  LaneShares two({.lanes = 2});
  two.Arrive(kB);
  two.Leave(kB, kStart);
  EXPECT_TRUE(two.MayStart(kA, 1, kStart));
  two.Start(kA, 1);
  EXPECT_FALSE(two.MayStart(kA, 1, kStart));
  EXPECT_TRUE(two.MayStart(kC, 1, kStart)) << "beside one that had a job";
}

TEST_F(LaneSharesTest, OneStaysFreeForAnotherClientOfTheShare) {
  const Claimant first{.share = 1, .client = 1}, second{.share = 1, .client = 2};
  shares_.Arrive(second);
  shares_.Leave(second, kStart);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Start(first)) << i;
  EXPECT_FALSE(Start(first));
  EXPECT_TRUE(Start(second));
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
