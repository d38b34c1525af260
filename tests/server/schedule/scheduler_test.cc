#include "server/schedule/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/schedule/scheduler_fixture.h"

namespace warpline {
namespace {

INSTANTIATE_TEST_SUITE_P(Launches, SchedulerTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "AtOnce" : "OnLaneThread"; });

TEST_P(SchedulerTest, RunsJobsInOrderOfArrival) {
  Make(1, 1);
  std::vector<Submitted> jobs;
  for (int i = 1; i <= 5; ++i) jobs.push_back(Submit(i));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    backend_->AwaitLaunches(i + 1);
    backend_->FinishOne();
    EXPECT_TRUE(jobs[i].result.get().status.ok());
  }
  EXPECT_EQ(backend_->inputs(), (std::vector<int>{1, 2, 3, 4, 5}));
}

TEST_P(SchedulerTest, UsesAllLanesAndNoMore) {
  Make(1, 3);
  std::vector<Submitted> jobs;
  for (int i = 1; i <= 4; ++i) jobs.push_back(Submit(i));
  backend_->AwaitLaunches(3);
  EXPECT_EQ(metrics_.LaneBusy(0).Value(), 3);
  EXPECT_EQ(metrics_.queue_depth.Value(), 1);
  for (int i = 0; i < 4; ++i) backend_->FinishOne();
  for (Submitted& job : jobs) job.result.wait();
}

TEST_P(SchedulerTest, SpreadsJobsOverDevices) {
  Make(2, 2);
  std::vector<Submitted> jobs;
  for (int i = 1; i <= 4; ++i) {
    jobs.push_back(Submit(i));
    backend_->AwaitLaunches(static_cast<std::size_t>(i));
  }
  EXPECT_EQ(backend_->launch_devices(), (std::vector<int>{0, 1, 0, 1}));
  for (int i = 0; i < 4; ++i) backend_->FinishOne();
  for (Submitted& job : jobs) job.result.wait();
}

TEST_P(SchedulerTest, JobsForABusyDeviceDoNotHoldUpTheirClientsJobsForAnother) {
  Make(/*devices=*/2, /*lanes=*/1);
  std::vector<Submitted> jobs;
  for (const int device : {0, 0, 0, 1}) {
    jobs.push_back(Submit(static_cast<int>(jobs.size()), {.device = device}));
  }
  backend_->AwaitLaunches(2);
  // Each lane has a thread of its own, so either may be the first.
  EXPECT_THAT(backend_->launch_devices(), ::testing::UnorderedElementsAre(0, 1));
  backend_->FinishAtOnce();
  for (int i = 0; i < 2; ++i) backend_->FinishOne();
  for (Submitted& job : jobs) EXPECT_TRUE(job.result.get().status.ok());
}

TEST_P(SchedulerTest, TheWatchdogSeesAJobThatNeverEnds) {
  DeviceWatchdog::Clock::time_point now{std::chrono::hours(1)};
  int stalls = 0;
  watchdog_ = std::make_unique<DeviceWatchdog>(
      2,
      DeviceWatchdog::Options{
          .base = absl::Seconds(10), .period = absl::ZeroDuration(), .now = [&] { return now; }},
      [&](const DeviceWatchdog::Stall&) { ++stalls; });
  const auto pass = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now += std::chrono::seconds(1);
      watchdog_->Poll();
    }
  };
  Make(2, 1);
  Submitted ended = Submit(1);
  backend_->AwaitLaunches(1);
  backend_->FinishOne();
  ended.result.wait();
  pass(100);
  EXPECT_EQ(stalls, 0);
  Submitted hanging = Submit(2);
  backend_->AwaitLaunches(2);
  pass(10);
  EXPECT_EQ(stalls, 0);
  pass(1);
  EXPECT_EQ(stalls, 1);
  backend_->FinishOne();
  hanging.result.wait();
}

TEST_P(SchedulerTest, CancelEndsAWaitingJobAtOnce) {
  Make(1, 1);
  Submitted running = Submit(1);
  backend_->AwaitLaunches(1);
  Submitted waiting = Submit(2);
  scheduler_->Cancel(waiting.id, absl::CancelledError("gone"));
  EXPECT_EQ(waiting.result.get().status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(metrics_.queue_depth.Value(), 0);
  scheduler_->Cancel(running.id, absl::CancelledError("too late"));
  backend_->FinishOne();
  EXPECT_TRUE(running.result.get().status.ok());
  EXPECT_EQ(backend_->inputs(), std::vector<int>{1});
}

TEST_P(SchedulerTest, NeverStartsExpiredWork) {
  Make(1, 1);
  Submitted running = Submit(1);
  backend_->AwaitLaunches(1);
  Submitted expired = Submit(2, {.deadline = MonotonicClock::now() - std::chrono::seconds(1)});
  backend_->FinishOne();
  EXPECT_EQ(expired.result.get().status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(backend_->inputs(), std::vector<int>{1});
  running.result.wait();
}

TEST_P(SchedulerTest, NeverStartsCancelledWork) {
  Make(1, 1);
  const std::atomic<bool> cancelled = true;
  Submitted job = Submit(1, {.cancelled = &cancelled});
  EXPECT_EQ(job.result.get().status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(backend_->inputs().empty());
}

// Somebody waits for the answer; nobody waits for the next launch as urgently.
TEST_P(SchedulerTest, AFinishedJobIsAnsweredBeforeOthersAreLaunched) {
  Make(1, 1);
  std::size_t launched_before = 0;
  Submitted first = Submit(1, {.when_done = [&] { launched_before = backend_->inputs().size(); }});
  backend_->AwaitLaunches(1);
  Submitted second = Submit(2);
  backend_->FinishOne();
  first.result.wait();
  EXPECT_EQ(launched_before, 1u);
  backend_->FinishOne();
  second.result.wait();
}

TEST_P(SchedulerTest, TheBacklogOfOneOwnerDoesNotDelayAnother) {
  Make(1, 1);
  Submitted running = Submit(0);
  backend_->AwaitLaunches(1);
  std::vector<Submitted> jobs;
  for (int i = 0; i < 12; ++i) jobs.push_back(Submit(1, {.owner = 1}));
  jobs.push_back(Submit(2, {.owner = 2}));
  for (int i = 0; i < 14; ++i) backend_->FinishOne();
  running.result.wait();
  for (Submitted& job : jobs) job.result.wait();
  const std::vector<int> order = backend_->inputs();
  EXPECT_LE(std::find(order.begin(), order.end(), 2) - order.begin(), 2);
}

TEST_P(SchedulerTest, OwnersGetDeviceTimeByTheirWeights) {
  limits_of_ = [](OwnerId owner) { return OwnerLimits{.weight = owner == 1 ? 3.0 : 1.0}; };
  constexpr int kLanes = 8;
  Make(1, kLanes);
  std::vector<Submitted> jobs;
  for (int i = 0; i < kLanes; ++i) jobs.push_back(Submit(0));
  backend_->AwaitLaunches(kLanes);
  for (int i = 0; i < kLanes; ++i) {
    jobs.push_back(Submit(1, {.owner = 1, .cost = 1}));
    jobs.push_back(Submit(2, {.owner = 2, .cost = 1}));
  }
  // Jobs of the two owners start beside one another, before anybody knows what they really cost.
  for (int i = 0; i < kLanes; ++i) backend_->FinishOne();
  backend_->AwaitLaunches(2 * kLanes);
  const std::vector<int> order = backend_->inputs();
  EXPECT_EQ(std::count(order.begin(), order.begin() + 2 * kLanes, 1), 6);
  EXPECT_EQ(std::count(order.begin(), order.begin() + 2 * kLanes, 2), 2);
  for (int i = 0; i < 2 * kLanes; ++i) backend_->FinishOne();
  for (Submitted& job : jobs) job.result.wait();
}

TEST_P(SchedulerTest, AJobBesideOthersIsChargedNoMoreThanItTakesAlone) {
  owner_metrics_ = std::make_unique<OwnerMetrics>(
      10, [](OwnerId owner) { return std::to_string(owner); }, metrics_);
  Make(1, 1);
  constexpr double kEstimate = 1e-12;  // less than any clock sees
  const auto charged = [&](OwnerId owner, bool shared) {
    Submitted job = Submit(1, {.owner = owner, .cost = kEstimate});
    backend_->FinishOne(absl::OkStatus(), shared);
    job.result.wait();
    return owner_metrics_->Of(owner).device_seconds.Value();
  };
  EXPECT_EQ(charged(1, /*shared=*/true), kEstimate);
  EXPECT_GT(charged(2, /*shared=*/false), kEstimate);
}

TEST_P(SchedulerTest, OwnersWithWrongEstimatesOfLargeJobsGetEqualTime) {
  Make(1, 1);
  const auto large = [](OwnerId owner, double cost) {
    Ask ask{.input = kLarge, .output = kLarge, .owner = owner, .cost = cost};
    ask.plan = PlanOf(ask);
    return ask;
  };
  const Ask asks[] = {large(1, 1e-9), large(2, 1000)};
  std::vector<Submitted> jobs;
  for (const Ask& ask : asks) {  // after the first one of each it is known what they take
    Submitted job = Submit(0, ask);
    backend_->FinishOne();
    job.result.get();
  }
  constexpr int kEach = 8;
  for (int i = 0; i < kEach; ++i) {
    for (const Ask& ask : asks) jobs.push_back(Submit(static_cast<int>(ask.owner), ask));
  }
  for (int i = 0; i < 2 * kEach; ++i) {
    absl::SleepFor(absl::Milliseconds(2));
    backend_->FinishOne();
    AwaitOneOf(jobs)->result.get();  // its memory is for the next ones
  }
  const std::vector<int> order = backend_->inputs();
  EXPECT_GE(std::count(order.begin() + 2, order.begin() + 2 + kEach, 1), 2);
  EXPECT_GE(std::count(order.begin() + 2, order.begin() + 2 + kEach, 2), 2);
}

TEST_P(SchedulerTest, LongJobsLeaveLanesToShortOnes) {
  kept_lanes_ = 1;
  Make(1, 3);
  std::vector<Submitted> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(Submit(1, {.owner = 1, .cost = 1}));
  backend_->AwaitLaunches(2);
  jobs.push_back(Submit(2, {.owner = 2, .cost = 1e-6}));
  backend_->AwaitLaunches(3);
  EXPECT_EQ(backend_->inputs(), (std::vector<int>{1, 1, 2}));
  EXPECT_EQ(backend_->urgent(), (std::vector<bool>{false, false, true}));
  for (std::size_t i = 0; i < jobs.size(); ++i) backend_->FinishOne();
  for (Submitted& job : jobs) job.result.wait();
}

TEST_P(SchedulerTest, AShortJobIsUrgentBesideALongOne) {
  kept_lanes_ = 1;
  Make(1, 3);
  const auto run = [&](std::initializer_list<double> costs) {
    std::vector<Submitted> jobs;
    const std::size_t before = backend_->inputs().size();
    for (const double cost : costs) {
      jobs.push_back(Submit(1, {.cost = cost}));
      backend_->AwaitLaunches(before + jobs.size());
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) backend_->FinishOne();
    for (Submitted& job : jobs) job.result.wait();
  };
  run({1, 1e-6, 1e-6});
  run({1e-6, 1e-6});
  EXPECT_EQ(backend_->urgent(), (std::vector<bool>{false, true, false, false, false}));
}

TEST_P(SchedulerTest, AShortJobIsAlwaysUrgentWhereMultiprocessorsAreKept) {
  kept_lanes_ = 1;
  always_urgent_ = true;
  Make(1, 2);
  Submitted job = Submit(1, {.cost = 1e-6});
  backend_->AwaitLaunches(1);
  EXPECT_EQ(backend_->urgent(), std::vector<bool>{true});
  backend_->FinishOne();
  job.result.wait();
}

TEST_P(SchedulerTest, WhatTakesLongToTravelIsNoShortJob) {
  kept_lanes_ = 1;
  Make(1, 2, 128 * kLarge);
  constexpr std::size_t kMuch = 3 << 20;
  std::vector<Submitted> jobs;
  for (int i = 0; i < 2; ++i) jobs.push_back(Submit(1, {.input = kMuch, .cost = 1e-6}));
  backend_->AwaitLaunches(1);
  jobs.push_back(Submit(2, {.owner = 1, .cost = 1e-6}));
  backend_->AwaitLaunches(2);
  EXPECT_EQ(backend_->inputs(), (std::vector<int>{1, 2}));
  EXPECT_EQ(backend_->urgent(), (std::vector<bool>{false, true}));
  for (std::size_t i = 0; i < jobs.size(); ++i) backend_->FinishOne();
  for (Submitted& job : jobs) job.result.wait();
}

TEST_P(SchedulerTest, AsManyShortJobsGoBeforeOthersAsThereAreLanesKept) {
  kept_lanes_ = 2;
  Make(1, 8);
  std::vector<Submitted> jobs;
  jobs.push_back(Submit(1, {.cost = 1}));
  backend_->AwaitLaunches(1);
  for (std::size_t i = 0; i < 4; ++i) {
    jobs.push_back(Submit(1, {.cost = 1e-6}));
    backend_->AwaitLaunches(i + 2);
  }
  EXPECT_EQ(backend_->urgent(), (std::vector<bool>{false, true, true, false, false}));
  for (std::size_t i = 0; i < jobs.size(); ++i) backend_->FinishOne();
  for (Submitted& job : jobs) job.result.wait();
}

TEST_P(SchedulerTest, ShortJobsOfWhoHasHadMoreThanOthersGetNoLaneThatIsKept) {
  kept_lanes_ = 1;
  Make(1, 2);
  // The cost of these jobs is known from the start, and is more than what others had.
  std::vector<Submitted> jobs;
  jobs.push_back(Submit(1, {.owner = 1, .cost = 1}));
  backend_->AwaitLaunches(1);
  jobs.push_back(Submit(2, {.owner = 2, .cost = 1}));
  jobs.push_back(Submit(1, {.owner = 1, .cost = 1e-6}));
  EXPECT_EQ(backend_->inputs(), (std::vector<int>{1})) << "it would come before the one that waits longest";
  for (std::size_t i = 0; i < jobs.size(); ++i) backend_->FinishOne();
  for (Submitted& job : jobs) job.result.wait();
}

TEST_P(SchedulerTest, ManyJobsThatEndAsTheyStartNeedNoDeepStack) {
  Make(1, 1);
  Submitted running = Submit(1);
  backend_->AwaitLaunches(1);
  std::vector<Submitted> expired;
  for (int i = 0; i < 100000; ++i)
    expired.push_back(Submit(2, {.deadline = MonotonicClock::now() - std::chrono::seconds(1)}));
  backend_->FinishOne();
  for (Submitted& job : expired) {
    ASSERT_EQ(job.result.get().status.code(), absl::StatusCode::kDeadlineExceeded);
  }
  running.result.wait();
}

TEST_P(SchedulerTest, EqualDevicesTakeTurns) {
  Make(3, 1);
  for (int i = 0; i < 6; ++i) {
    Submitted job = Submit(i + 1);
    backend_->FinishOne();
    job.result.wait();
  }
  EXPECT_EQ(backend_->launch_devices(), (std::vector<int>{0, 1, 2, 0, 1, 2}));
}

TEST_P(SchedulerTest, AFailedLaunchFreesItsLane) {
  Make(1, 1);
  Submitted first = Submit(1);
  backend_->FinishOne(absl::InternalError("broken"));
  EXPECT_EQ(first.result.get().status.code(), absl::StatusCode::kInternal);
  Submitted second = Submit(2);
  backend_->FinishOne();
  EXPECT_TRUE(second.result.get().status.ok());
}

}  // namespace
}  // namespace warpline
