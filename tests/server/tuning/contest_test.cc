#include "server/tuning/contest.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <map>

namespace warpline {
namespace {

// Plays it to its end; how often each was timed. `time` may be negative: the candidate fails.
std::map<std::size_t, int> Play(Contest& contest, const std::function<double(std::size_t, int)>& time) {
  std::map<std::size_t, int> played;
  for (int turn = 0; !contest.settled(); ++turn) {
    if (turn > 10000) ADD_FAILURE() << "the contest does not end";
    const std::size_t candidate = contest.next();
    ++played[candidate];
    const double seconds = time(candidate, turn);
    seconds < 0 ? contest.Failed() : contest.Took(seconds);
  }
  return played;
}

TEST(ContestTest, TheFastestWins) {
  Contest contest(5);
  Play(contest, [](std::size_t candidate, int) { return candidate == 3 ? 0.9 : 1.0; });
  EXPECT_EQ(contest.winner(), 3u);
  EXPECT_DOUBLE_EQ(contest.Seconds(3), 0.9);
  EXPECT_DOUBLE_EQ(contest.Seconds(0), 1.0);
}

TEST(ContestTest, WhatRunsWithoutTuningStaysUnlessItIsBeatenByMoreThanTheMargin) {
  Contest close(3);
  Play(close, [](std::size_t candidate, int) { return candidate == 1 ? 0.985 : 1.0; });
  EXPECT_EQ(close.winner(), 0u);
  Contest clear(3);
  Play(clear, [](std::size_t candidate, int) { return candidate == 1 ? 0.975 : 1.0; });
  EXPECT_EQ(clear.winner(), 1u);
}

TEST(ContestTest, WhoIsFarBehindIsTimedOnceAndWhoIsBehindThrice) {
  Contest contest(4);
  auto played = Play(contest, [](std::size_t candidate, int) {
    constexpr double kSeconds[] = {1, 0.5, 1.6, 0.6};
    return kSeconds[candidate];
  });
  EXPECT_EQ(contest.winner(), 1u);
  EXPECT_EQ(played[2], 1);
  EXPECT_EQ(played[3], 3);
  EXPECT_EQ(played[0], 7 + 9);
  EXPECT_EQ(played[1], 7 + 9);
}

TEST(ContestTest, OneSlowTimeOfAFastCandidateDoesNotDecide) {
  Contest contest(2);
  int times = 0;
  Play(contest, [&](std::size_t candidate, int) {
    if (candidate == 0) return 1.0;
    return ++times % 4 == 0 ? 5.0 : 0.8;
  });
  EXPECT_EQ(contest.winner(), 1u);
}

TEST(ContestTest, ALuckyFirstPartDoesNotDecide) {
  Contest contest(2);
  int times = 0;
  Play(contest, [&](std::size_t candidate, int) {
    if (candidate == 0) return 1.0;
    return ++times <= 7 ? 0.8 : 1.0;
  });
  EXPECT_EQ(contest.winner(), 0u);
}

TEST(ContestTest, WhoFailsIsOut) {
  Contest contest(3);
  auto played = Play(contest, [](std::size_t candidate, int) {
    return candidate == 1 ? -1.0 : candidate == 2 ? 0.7 : 1.0;
  });
  EXPECT_EQ(contest.winner(), 2u);
  EXPECT_EQ(played[1], 1);
}

TEST(ContestTest, WithoutTheChoiceThatRunsUntunedThereIsNoContest) {
  Contest contest(3);
  Play(contest, [](std::size_t candidate, int) { return candidate == 0 ? -1.0 : 0.5; });
  EXPECT_EQ(contest.winner(), 0u);
}

TEST(ContestTest, IfAllOthersFailTheFirstStays) {
  Contest contest(3);
  Play(contest, [](std::size_t candidate, int) { return candidate == 0 ? 1.0 : -1.0; });
  EXPECT_EQ(contest.winner(), 0u);
}

TEST(ContestTest, OneCandidateNeedsNoTimes) {
  const Contest contest(1);
  EXPECT_TRUE(contest.settled());
  EXPECT_EQ(contest.winner(), 0u);
}

}  // namespace
}  // namespace warpline
