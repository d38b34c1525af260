// Jobs of which several devices run a part each, and the load of devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "tests/server/schedule/scheduler_fixture.h"

namespace warpline {
namespace {

using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

class SharedJobsTest : public SchedulerTest {
 protected:
  static constexpr int kDevices = 8, kLanes = 2;

  Submitted SubmitCut(int mark, int max_parts, double cost = 0) {
    auto plan = std::make_shared<Plan>();
    plan->memory.input_bytes = plan->memory.output_bytes = kLarge;
    plan->max_parts = max_parts;
    plan->device_seconds = cost;
    return Submit(mark, {.plan = plan});
  }
  std::vector<int> LaunchDevices(std::size_t count) {
    backend_->AwaitLaunches(count);
    return backend_->launch_devices();
  }
};

INSTANTIATE_TEST_SUITE_P(Launches, SharedJobsTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "AtOnce" : "OnLaneThread"; });

TEST_P(SharedJobsTest, EveryIdleDeviceRunsAPart) {
  Make(kDevices, kLanes);
  Submitted job = SubmitCut(1, kDevices);
  EXPECT_THAT(LaunchDevices(kDevices), UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  std::vector<std::pair<int, int>> all;
  for (int part = 0; part < kDevices; ++part) all.emplace_back(part, kDevices);
  EXPECT_THAT(backend_->parts(), UnorderedElementsAreArray(all));
  for (int i = 0; i + 1 < kDevices; ++i) backend_->FinishOne();
  EXPECT_FALSE(job.Ready());
  backend_->FinishOne();
  EXPECT_TRUE(job.result.get().status.ok());
  for (int i = 0; i < kDevices; ++i) EXPECT_EQ(metrics_.LaneBusy(i).Value(), 0);
}

TEST_P(SharedJobsTest, NoMoreDevicesThanThereAreParts) {
  Make(kDevices, kLanes);
  Submitted job = SubmitCut(1, 3);
  backend_->AwaitLaunches(3);
  for (int i = 0; i < 3; ++i) backend_->FinishOne();
  EXPECT_TRUE(job.result.get().status.ok());
  EXPECT_EQ(backend_->inputs().size(), 3u);
}

TEST_P(SharedJobsTest, BusyDevicesAreLeftAlone) {
  Make(3, kLanes);
  Submitted first = SubmitCut(1, 1);
  const int busy = LaunchDevices(1)[0];
  Submitted second = SubmitCut(2, 3);
  std::vector<int> devices = LaunchDevices(3);
  EXPECT_EQ(backend_->parts()[1].second, 2);
  EXPECT_NE(devices[1], busy);
  EXPECT_NE(devices[2], busy);
  Submitted third = SubmitCut(3, 3);
  backend_->AwaitLaunches(4);
  EXPECT_EQ(backend_->parts()[3].second, 1) << "none is idle";
  for (int i = 0; i < 4; ++i) backend_->FinishOne();
  for (Submitted* job : {&first, &second, &third}) EXPECT_TRUE(job->result.get().status.ok());
}

TEST_P(SharedJobsTest, AnErrorOfOnePartIsTheJobs) {
  Make(2, kLanes);
  Submitted job = SubmitCut(1, 2);
  backend_->AwaitLaunches(2);
  backend_->FinishOne(absl::InternalError("broken"));
  backend_->FinishOne();
  EXPECT_EQ(job.result.get().status.message(), "broken");
  Submitted next = SubmitCut(2, 2);
  backend_->AwaitLaunches(4);
  for (int i = 0; i < 2; ++i) backend_->FinishOne();
  EXPECT_TRUE(next.result.get().status.ok());
}

TEST_P(SharedJobsTest, ADeviceWithOneLaneIsNotTakenWhole) {
  Make(2, 1);
  Submitted job = SubmitCut(1, 2);
  backend_->AwaitLaunches(1);
  EXPECT_EQ(backend_->parts()[0].second, 1);
  backend_->FinishOne();
  job.result.wait();
}

TEST_P(SharedJobsTest, ASharedJobIsChargedTheTimeOfAllItsDevices) {
  owner_metrics_ = std::make_unique<OwnerMetrics>(
      10, [](OwnerId owner) { return std::to_string(owner); }, metrics_);
  Make(2, kLanes);
  Submitted job = SubmitCut(1, 2, /*cost=*/1e-6);
  backend_->AwaitLaunches(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (int i = 0; i < 2; ++i) backend_->FinishOne();
  const Result result = job.result.get();
  EXPECT_DOUBLE_EQ(owner_metrics_->Of(0).device_seconds.Value(), 2 * result.seconds.device);
}

TEST_P(SharedJobsTest, TheLoadOfEachDeviceCountsUntilTheJobEnds) {
  Make(3, kLanes);
  Submitted job = SubmitCut(1, 2, /*cost=*/0.5);
  double seconds = 0;
  for (const int device : LaunchDevices(2)) seconds += scheduler_->load().Seconds(device);
  EXPECT_DOUBLE_EQ(seconds, 0.5) << "half of it on each";
  for (int i = 0; i < 2; ++i) backend_->FinishOne();
  job.result.wait();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(scheduler_->load().Seconds(i), 0);
}

TEST_P(SharedJobsTest, AWaitingJobIsALoadOnlyOfItsOwnDevice) {
  Make(2, 1);
  Job bound;
  bound.plan = PlanOf({.cost = 0.25});
  bound.device = 1;
  bound.copy_in = [](std::span<std::byte>, int, int) {};
  bound.done = [](const Result&) {};
  std::vector<Submitted> running;
  for (int i = 0; i < 2; ++i) running.push_back(Submit(i, {.cost = 2}));
  backend_->AwaitLaunches(2);
  scheduler_->Submit(std::move(bound));
  Submitted free = Submit(3, {.cost = 1});
  EXPECT_DOUBLE_EQ(scheduler_->load().Seconds(0), 2);
  EXPECT_DOUBLE_EQ(scheduler_->load().Seconds(1), 2.25) << "the other one may run anywhere";
  for (int i = 0; i < 4; ++i) backend_->FinishOne();
  for (Submitted& job : running) job.result.wait();
  free.result.wait();
}

}  // namespace
}  // namespace warpline
