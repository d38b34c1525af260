#include "server/plan/alone_time.h"

#include <gtest/gtest.h>

namespace warpline {
namespace {

TEST(AloneTimeTest, FollowsTheMeanOfTheLastRuns) {
  const AloneTime time;
  EXPECT_EQ(time.seconds(), 0);
  const AloneTime copy = time;
  for (int i = 0; i < 100; ++i) time.Measured(i % 2 == 0 ? 2 : 4);
  EXPECT_NEAR(time.seconds(), 3, 0.25);
  EXPECT_EQ(copy.seconds(), time.seconds());
  for (int i = 0; i < 100; ++i) time.Measured(6);
  EXPECT_NEAR(time.seconds(), 6, 0.01);
}

TEST(AloneTimeTest, AFirstRunThatWaitedForSomethingElseIsForgotten) {
  const AloneTime time;
  time.Measured(1000);
  time.Measured(3);
  EXPECT_EQ(time.seconds(), 3);
}

TEST(AloneTimeTest, ARunThatHadTheDeviceToItselfIsChargedWhole) {
  const AloneTime time;
  time.Measured(1);
  EXPECT_EQ(ChargedSeconds(3, /*shared=*/false, time, 0.5), 3);
}

TEST(AloneTimeTest, ARunBesideOthersIsChargedWhatItTakesAlone) {
  const AloneTime unknown;
  EXPECT_EQ(ChargedSeconds(3, /*shared=*/true, unknown, 0.5), 0.5);
  const AloneTime known;
  known.Measured(1);
  EXPECT_EQ(ChargedSeconds(3, /*shared=*/true, known, 0.5), 1);
  // Nobody pays for more than there was.
  EXPECT_EQ(ChargedSeconds(0.25, /*shared=*/true, known, 0.5), 0.25);
}

}  // namespace
}  // namespace warpline
