// Stalls of devices, by a clock that only moves when it is told to.
#include "server/device/watchdog.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

namespace warpline {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

class DeviceWatchdogTest : public ::testing::Test {
 protected:
  DeviceWatchdog::Options Options(absl::Duration base = absl::Seconds(10)) {
    return {.base = base, .period = absl::ZeroDuration(), .now = [this] { return now_; }};
  }
  std::function<void(const DeviceWatchdog::Stall&)> Record() {
    return [this](const DeviceWatchdog::Stall& stall) { stalls_.push_back(stall); };
  }
  // Looks every second while the time passes.
  void Pass(seconds time) {
    for (seconds passed{0}; passed < time; passed += seconds(1)) {
      now_ += seconds(1);
      watchdog_.Poll();
    }
  }

  DeviceWatchdog::Clock::time_point now_{hours(1)};
  std::vector<DeviceWatchdog::Stall> stalls_;
  DeviceWatchdog watchdog_{2, Options(), Record()};
};

TEST_F(DeviceWatchdogTest, AnIdleDeviceNeverStalls) {
  Pass(seconds(1000));
  watchdog_.Ended(watchdog_.Started(0, 1));
  Pass(seconds(1000));
  EXPECT_TRUE(stalls_.empty());
}

TEST_F(DeviceWatchdogTest, AJobMayTakeTheBaseAndTenTimesItsEstimate) {
  watchdog_.Started(1, 2);
  Pass(seconds(30));
  EXPECT_TRUE(stalls_.empty());
  Pass(seconds(1));
  ASSERT_EQ(stalls_.size(), 1u);
  EXPECT_EQ(stalls_[0].device, 1);
  EXPECT_EQ(stalls_[0].jobs, 1);
  EXPECT_EQ(stalls_[0].limit, absl::Seconds(30));
  EXPECT_EQ(ToString(stalls_[0]), "a job has run on device 1 for 31s, alone; its limit is 30s");
}

TEST_F(DeviceWatchdogTest, TellsOnlyOnce) {
  watchdog_.Started(0, 0);
  watchdog_.Started(1, 0);
  Pass(seconds(1000));
  EXPECT_EQ(stalls_.size(), 1u);
}

TEST_F(DeviceWatchdogTest, AJobThatHangsIsFoundAlthoughOthersEndBesideIt) {
  watchdog_.Started(0, 0.1);
  for (int i = 0; i < 13; ++i) {
    ASSERT_TRUE(stalls_.empty()) << i;
    const DeviceWatchdog::Token other = watchdog_.Started(0, 0.1);
    Pass(seconds(1));
    watchdog_.Ended(other);
  }
  ASSERT_EQ(stalls_.size(), 1u);
  EXPECT_EQ(stalls_[0].jobs, 2);
  EXPECT_EQ(stalls_[0].limit, absl::Seconds(12)) << "its own estimate and that of the one that runs";
  EXPECT_EQ(ToString(stalls_[0]), "a job has run on device 0 for 13s, beside 1 other; its limit is 12s");
}

TEST_F(DeviceWatchdogTest, AJobMayWaitForThoseThatRanBeforeIt) {
  const DeviceWatchdog::Token longest = watchdog_.Started(0, 5);
  watchdog_.Started(0, 0);
  Pass(seconds(50));
  watchdog_.Ended(longest);
  Pass(seconds(10));
  EXPECT_TRUE(stalls_.empty());
  Pass(seconds(1));
  EXPECT_EQ(stalls_.size(), 1u);
}

TEST_F(DeviceWatchdogTest, AJobMayTakeLongBesideALongOneThatStartedLater) {
  watchdog_.Started(0, 0);
  watchdog_.Started(0, 5);
  Pass(seconds(60));
  EXPECT_TRUE(stalls_.empty());
}

TEST_F(DeviceWatchdogTest, OneDeviceSaysNothingOfAnother) {
  watchdog_.Started(0, 0);
  for (int i = 0; i < 11; ++i) {
    watchdog_.Ended(watchdog_.Started(1, 0));
    Pass(seconds(1));
  }
  ASSERT_EQ(stalls_.size(), 1u);
  EXPECT_EQ(stalls_[0].device, 0);
}

TEST_F(DeviceWatchdogTest, TimeInWhichTheProcessStoodStillDoesNotCount) {
  watchdog_.Started(0, 0);
  Pass(seconds(5));
  now_ += hours(1);
  watchdog_.Poll();
  Pass(seconds(4));
  EXPECT_TRUE(stalls_.empty());
  Pass(seconds(2));
  EXPECT_EQ(stalls_.size(), 1u);
}

TEST_F(DeviceWatchdogTest, SlotsAreUsedAgain) {
  for (int i = 0; i < 1000; ++i) {
    const DeviceWatchdog::Token a = watchdog_.Started(0, 1), b = watchdog_.Started(0, 1);
    EXPECT_LT(a.slot, 2);
    EXPECT_LT(b.slot, 2);
    watchdog_.Ended(a);
    watchdog_.Ended(b);
  }
}

TEST_F(DeviceWatchdogTest, ABaseOfZeroDisablesIt) {
  DeviceWatchdog disabled(1, Options(absl::ZeroDuration()), Record());
  disabled.Ended(disabled.Started(0, 1));
  disabled.Started(0, 0);
  for (int i = 0; i < 100; ++i) {
    now_ += seconds(1);
    disabled.Poll();
  }
  EXPECT_TRUE(stalls_.empty());
}

TEST(DeviceWatchdogThreadTest, LooksByItselfWhileJobsComeAndGo) {
  std::atomic<int> stalls = 0;
  {
    DeviceWatchdog watchdog(1, {.base = absl::Hours(1), .period = absl::Milliseconds(1)},
                            [&](const DeviceWatchdog::Stall&) { ++stalls; });
    std::vector<std::thread> lanes;
    for (int i = 0; i < 4; ++i) {
      lanes.emplace_back([&] {
        for (int j = 0; j < 1000; ++j) watchdog.Ended(watchdog.Started(0, 1));
      });
    }
    for (std::thread& lane : lanes) lane.join();
  }
  EXPECT_EQ(stalls, 0);
  // And tells without being asked.
  std::promise<void> told;
  DeviceWatchdog watchdog(1, {.base = absl::Nanoseconds(1), .period = absl::Milliseconds(1)},
                          [&](const DeviceWatchdog::Stall&) { told.set_value(); });
  watchdog.Started(0, 0);
  told.get_future().wait();
}

}  // namespace
}  // namespace warpline
