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
  void Come(const Claimant& claimant) {
    shares_.Arrive(claimant);
    shares_.BecomeReady(claimant);
  }
  void Go(const Claimant& claimant, MonotonicTime now = kStart) {
    shares_.Leave(claimant, /*was_ready=*/true, now);
  }
  // Returns whether the claimant got another lane.
  bool Start(const Claimant& claimant, MonotonicTime now = kStart) {
    Come(claimant);
    if (!shares_.MayStart(claimant, 1, now)) {
      Go(claimant, now);
      return false;
    }
    shares_.Start(claimant, 1);
    return true;
  }
  void End(const Claimant& claimant, MonotonicTime now = kStart) {
    shares_.End(claimant, 1);
    Go(claimant, now);
  }
  LaneShares shares_{{.lanes = 6, .seconds_max = 100}};
};

TEST_F(LaneSharesTest, WhoIsAloneMayHaveAllLanes) {
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(Start(kA)) << i;
}

TEST_F(LaneSharesTest, OneStaysFreeForWhoHadAJobWithinTheLastSecond) {
  Come(kB);
  Go(kB);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Start(kA, kStart + milliseconds(900))) << i;
  EXPECT_FALSE(Start(kA, kStart + milliseconds(900)));
  EXPECT_TRUE(Start(kB, kStart + milliseconds(900)));
  End(kB, kStart + milliseconds(900));
  EXPECT_FALSE(Start(kA, kStart + milliseconds(1800)));
  EXPECT_TRUE(Start(kA, kStart + milliseconds(1900)));
}

TEST_F(LaneSharesTest, OneStaysFreeForWhoseJobIsNotReady) {
  shares_.Arrive(kB);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Start(kA)) << i;
  EXPECT_FALSE(Start(kA, kStart + seconds(10))) << "however long it takes";
  shares_.Leave(kB, /*was_ready=*/false, kStart + seconds(10));
  EXPECT_TRUE(Start(kA, kStart + seconds(11)));
}

TEST_F(LaneSharesTest, NoneStaysFreeForWhoseJobIsReadyOrRuns) {
  ASSERT_TRUE(Start(kB));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Start(kA)) << i;
  End(kB);
  Come(kB);  // the queue says who gets the lane
  EXPECT_TRUE(Start(kA));
}

TEST_F(LaneSharesTest, HalfOfTheLanesAreFreeForOthersAtMost) {
  for (OwnerId share = 10; share < 30; ++share) {
    Come({.share = share});
    Go({.share = share});
  }
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Start(kA)) << i;
  EXPECT_FALSE(Start(kA));
  EXPECT_TRUE(Start(kB)) << "each share may have one";
}

TEST_F(LaneSharesTest, ClientsOfAShareLeaveOneToEachOtherAndTakeIt) {
  const Claimant first{.share = 1, .client = 1};
  for (ClientId client = 2; client < 20; ++client) {
    Come({.share = 1, .client = client});
    Go({.share = 1, .client = client});
  }
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Start(first)) << i;
  EXPECT_FALSE(Start(first));
  EXPECT_TRUE(Start({.share = 1, .client = 2}));
}

TEST(LaneSharesSecondsTest, AShareRunsOneVeryLongJobOrSeveralThatAreNotTooLong) {
  LaneShares shares({.lanes = 6, .seconds_max = 10});
  shares.Arrive(kA);
  shares.BecomeReady(kA);
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

TEST(LaneSharesSecondsTest, JobsThatCouldNotRunBesideTheOthersAreNotStaged) {
  LaneShares shares({.lanes = 6, .seconds_max = 10});
  EXPECT_TRUE(shares.MayStage(kA, 60));
  shares.Arrive(kA);
  shares.Stage(kA, 6);
  EXPECT_TRUE(shares.MayStage(kA, 4));
  EXPECT_FALSE(shares.MayStage(kA, 5));
  EXPECT_TRUE(shares.MayStage(kB, 5));
  shares.BecomeReady(kA);
  shares.EndStaging(kA, 6);
  shares.Start(kA, 6);
  EXPECT_FALSE(shares.MayStage(kA, 5));
  shares.End(kA, 6);
  EXPECT_TRUE(shares.MayStage(kA, 60));
}

}  // namespace
}  // namespace warpline
