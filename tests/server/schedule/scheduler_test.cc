#include "server/schedule/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "server/base/mutex.h"

namespace warpline {
namespace {

// A backend whose lanes do nothing until they are told to finish: pending states become deterministic.
class FakeBackend : public Backend {
 public:
  explicit FakeBackend(int devices, bool asynchronous) : infos_(devices), asynchronous_(asynchronous) {}

  class FakeLane : public Lane {
   public:
    FakeLane(FakeBackend& backend, int device) : backend_(backend), device_(device) {}
    void Launch(const StagedProgram& staged, LaunchDone done) override {
      backend_.OnLaunch(device_, staged, std::move(done));
    }

   private:
    FakeBackend& backend_;
    int device_;
  };

  std::string_view name() const override { return "fake"; }
  std::span<const DeviceInfo> devices() const override { return infos_; }
  std::vector<VariantInfo> Variants() const override { return {}; }
  absl::Status CheckVariant(const Problem&, std::string_view) const override { return absl::OkStatus(); }
  absl::Status CheckFits(const Program&, const MemoryPlan&) const override { return absl::OkStatus(); }
  double EstimateSeconds(const Program&) const override { return 0; }
  bool launches_asynchronously() const override { return asynchronous_; }
  absl::StatusOr<std::unique_ptr<Lane>> CreateLane(int device) override {
    return std::make_unique<FakeLane>(*this, device);
  }
  absl::StatusOr<std::unique_ptr<HostMemory>> AllocateHost(std::size_t) override {
    return absl::UnimplementedError("not needed");
  }

  void OnLaunch(int device, const StagedProgram& staged, LaunchDone done) {
    MutexLock lock(&mutex_);
    inputs_.push_back(static_cast<int>(staged.input.empty() ? std::byte{0} : staged.input[0]));
    devices_.push_back(device);
    running_.push_back(std::move(done));
  }
  void AwaitLaunches(std::size_t count) {
    MutexLock lock(&mutex_);
    const auto reached = [&] { return inputs_.size() >= count; };
    mutex_.Await(reached);
  }
  // Ends the oldest running job.
  void FinishOne(absl::Status status = absl::OkStatus()) {
    LaunchDone done;
    {
      MutexLock lock(&mutex_);
      const auto some = [&] { return !running_.empty(); };
      mutex_.Await(some);
      done = std::move(running_.front());
      running_.erase(running_.begin());
    }
    done({std::move(status), {"fake"}});
  }
  std::vector<int> inputs() {
    MutexLock lock(&mutex_);
    return inputs_;
  }
  std::vector<int> launch_devices() {
    MutexLock lock(&mutex_);
    return devices_;
  }

 private:
  std::vector<DeviceInfo> infos_;
  const bool asynchronous_;
  Mutex mutex_;
  std::vector<int> inputs_;
  std::vector<int> devices_;
  std::vector<LaunchDone> running_;
};

class SchedulerTest : public ::testing::TestWithParam<bool> {
 protected:
  void Make(int devices, int lanes, std::size_t memory = 1 << 20, absl::Duration block = absl::Hours(1)) {
    backend_ = std::make_unique<FakeBackend>(devices, GetParam());
    memory_.resize(memory);
    pool_ = std::make_unique<StagingPool>(memory_, metrics_);
    scheduler_ = *Scheduler::Create(
        {.lanes_per_device = lanes, .max_passes = 3, .block = block, .watchdog = watchdog_.get()}, *backend_,
        *pool_, metrics_);
  }

  // A job that brings one byte, which FakeBackend records, and keeps its result.
  struct Submitted {
    Scheduler::JobId id = 0;
    std::future<Result> result;
    bool Ready() { return result.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  };
  Submitted Submit(int mark, std::size_t input = 1, std::size_t output = 1,
                   absl::Time deadline = absl::InfiniteFuture(),
                   const std::atomic<bool>* cancelled = nullptr) {
    Job job;
    job.plan.input_bytes = input;
    job.plan.output_bytes = output;
    job.fill_inputs = [mark](std::span<std::byte> region) { region[0] = static_cast<std::byte>(mark); };
    job.deadline = deadline;
    job.cancelled = cancelled;
    auto promise = std::make_shared<std::promise<Result>>();
    Submitted submitted;
    submitted.result = promise->get_future();
    job.done = [promise](Result result) { promise->set_value(std::move(result)); };
    submitted.id = scheduler_->Submit(std::move(job));
    return submitted;
  }

  // One lane, and a result that holds half of the memory until its reader is done.
  Result MakeWithAReader(absl::Duration block = absl::Hours(1)) {
    Make(1, 1, 32768, block);
    Submitted first = Submit(1, 1, 16384);
    backend_->FinishOne();
    return first.result.get();
  }

  Metrics metrics_;
  std::vector<std::byte> memory_;
  std::unique_ptr<FakeBackend> backend_;
  std::unique_ptr<StagingPool> pool_;
  std::unique_ptr<DeviceWatchdog> watchdog_;  // none in most tests
  std::unique_ptr<Scheduler> scheduler_;
};

INSTANTIATE_TEST_SUITE_P(Launches, SchedulerTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Asynchronous" : "OnLaneThread"; });

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
  Submitted expired = Submit(2, 1, 1, absl::Now() - absl::Seconds(1));
  backend_->FinishOne();
  EXPECT_EQ(expired.result.get().status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(backend_->inputs(), std::vector<int>{1});
  running.result.wait();
}

TEST_P(SchedulerTest, NeverStartsCancelledWork) {
  Make(1, 1);
  const std::atomic<bool> cancelled = true;
  Submitted job = Submit(1, 1, 1, absl::InfiniteFuture(), &cancelled);
  EXPECT_EQ(job.result.get().status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(backend_->inputs().empty());
}

TEST_P(SchedulerTest, AResultHoldsItsSlotButNoLane) {
  Make(1, 1, 16384);
  Submitted first = Submit(1);
  backend_->FinishOne();
  Result held = first.result.get();  // a reader that takes its time
  Submitted second = Submit(2);
  backend_->FinishOne();
  EXPECT_TRUE(second.result.get().status.ok());
  EXPECT_EQ(pool_->used_bytes(), 4096u);
}

TEST_P(SchedulerTest, JobsThatFitPassOneThatWaitsForMemory) {
  Result held = MakeWithAReader();
  Submitted large = Submit(2, 1, 16384);
  Submitted small = Submit(3);
  backend_->FinishOne();
  EXPECT_TRUE(small.result.get().status.ok());
  EXPECT_FALSE(large.Ready());
  held = {};  // the reader is done: the job that waited starts
  backend_->FinishOne();
  EXPECT_TRUE(large.result.get().status.ok());
  EXPECT_EQ(backend_->inputs(), (std::vector<int>{1, 3, 2}));
}

TEST_P(SchedulerTest, OnlySoManyJobsPassOneThatWaitsForMemory) {
  Result held = MakeWithAReader();
  Submitted large = Submit(2, 1, 16384);
  std::vector<Submitted> small;
  for (int i = 0; i < 4; ++i) small.push_back(Submit(3 + i));
  for (std::size_t i = 0; i < 3; ++i) {
    backend_->FinishOne();
    EXPECT_TRUE(small[i].result.get().status.ok());
  }
  EXPECT_EQ(metrics_.queue_depth.Value(), 2);  // the fourth waits behind the large one
  held = {};
  backend_->FinishOne();
  backend_->FinishOne();
  EXPECT_TRUE(large.result.get().status.ok());
  EXPECT_TRUE(small[3].result.get().status.ok());
  EXPECT_EQ(backend_->inputs(), (std::vector<int>{1, 3, 4, 5, 2, 6}));
}

TEST_P(SchedulerTest, ACancelledJobNoLongerBlocksThoseBehindIt) {
  Result held = MakeWithAReader();
  Submitted large = Submit(2, 1, 16384);
  std::vector<Submitted> small;
  for (int i = 0; i < 4; ++i) small.push_back(Submit(3 + i));
  for (int i = 0; i < 3; ++i) backend_->FinishOne();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(small[i].result.get().status.ok());  // gives its slot back
  scheduler_->Cancel(large.id, absl::CancelledError("gone"));
  backend_->FinishOne();
  EXPECT_TRUE(small[3].result.get().status.ok());
}

TEST_P(SchedulerTest, AReaderThatHoldsTheMemoryStopsOthersForAMomentOnly) {
  Result held = MakeWithAReader(absl::Milliseconds(1));
  Submitted large = Submit(2, 1, 16384);
  std::vector<Submitted> small;
  for (int i = 0; i < 20; ++i) small.push_back(Submit(3 + i));
  for (Submitted& job : small) {
    backend_->FinishOne();
    EXPECT_TRUE(job.result.get().status.ok());
  }
  EXPECT_FALSE(large.Ready());
  held = {};
  backend_->FinishOne();
  EXPECT_TRUE(large.result.get().status.ok());
}

TEST_P(SchedulerTest, ManyJobsThatEndAsTheyStartNeedNoDeepStack) {
  Make(1, 1);
  Submitted running = Submit(1);
  backend_->AwaitLaunches(1);
  std::vector<Submitted> expired;
  for (int i = 0; i < 100000; ++i) expired.push_back(Submit(2, 1, 1, absl::Now() - absl::Seconds(1)));
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
