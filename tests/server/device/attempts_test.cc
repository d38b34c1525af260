#include "server/device/attempts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace warpline {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kAttempted[] = "gemm f32 64x64x64";

class AttemptsTest : public testing::Test {
 protected:
  AttemptsTest() {
    for (int device : {0, 1}) {
      attempts_.SetCondemn(device, [this, device](const std::string& problem, const std::string& variant) {
        events_.push_back(std::to_string(device) + ": " + problem + ": " + variant);
      });
    }
  }

  Attempts attempts_;
  std::vector<std::string> events_;
};

TEST_F(AttemptsTest, WhoeverFailsWithADeviceIsCondemnedOnce) {
  const Attempts::Attempt attempt(attempts_, 1, kAttempted, "cublas:2");
  attempts_.Blame(1, "context lost");
  attempts_.Blame(1, "context lost");
  EXPECT_THAT(events_, ElementsAre("1: gemm f32 64x64x64: cublas:2"));
}

TEST_F(AttemptsTest, WhatHasEndedIsNotToBlame) {
  attempts_.Blame(0, "context lost");
  { const Attempts::Attempt attempt(attempts_, 0, kAttempted, "cublas"); }
  attempts_.Blame(0, "context lost");
  EXPECT_THAT(events_, IsEmpty());
}

TEST_F(AttemptsTest, OneDeviceSaysNothingOfAnother) {
  const Attempts::Attempt attempt(attempts_, 0, kAttempted, "cublas");
  attempts_.Blame(1, "context lost");
  EXPECT_THAT(events_, IsEmpty());
}

TEST_F(AttemptsTest, AnAttemptThatIsNotBlamedLeavesNoTrace) {
  for (const char* variant : {"cublas", "cublas:2", "cublas:3"}) {
    const Attempts::Attempt attempt(attempts_, 0, kAttempted, variant);
  }
  const Attempts::Attempt attempt(attempts_, 0, "sum f32 4096 all", "cub");
  attempts_.Blame(0, "context lost");
  EXPECT_THAT(events_, ElementsAre("0: sum f32 4096 all: cub"));
}

// Uses a clock that only moves when it is told to.
TEST_F(AttemptsTest, OneThatNeverEndsIsAStallAndIsCondemnedBeforeTheProcessEnds) {
  DeviceWatchdog::Clock::time_point now{std::chrono::hours(1)};
  DeviceWatchdog watchdog(
      2, {.base = absl::Seconds(10), .period = absl::ZeroDuration(), .now = [&] { return now; }},
      [&](const DeviceWatchdog::Stall& stall) {
        attempts_.Blame(stall.device, ToString(stall));
        events_.push_back("exit");
      });
  const auto pass = [&](int time) {
    for (int i = 0; i < time; ++i) {
      now += seconds(1);
      watchdog.Poll();
    }
  };
  attempts_.Watch(watchdog);
  { const Attempts::Attempt attempt(attempts_, 0, kAttempted, "cublas"); }
  pass(100);
  EXPECT_THAT(events_, IsEmpty());
  const Attempts::Attempt attempt(attempts_, 0, kAttempted, "cublas:2");
  pass(10);
  EXPECT_THAT(events_, IsEmpty());
  pass(2);
  EXPECT_THAT(events_, ElementsAre("0: gemm f32 64x64x64: cublas:2", "exit"));
}

}  // namespace
}  // namespace warpline
