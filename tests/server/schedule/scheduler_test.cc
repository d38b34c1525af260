#include "server/schedule/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <latch>
#include <thread>
#include <vector>

#include "server/base/mutex.h"

namespace warpline {
namespace {

// A backend whose lanes do nothing until they are told to finish: pending states become deterministic.
class FakeBackend : public Backend {
 public:
  explicit FakeBackend(int devices, bool at_once) : infos_(devices), at_once_(at_once) {}

  class FakeLane : public Lane {
   public:
    FakeLane(FakeBackend& backend, int device) : backend_(backend), device_(device) {}
    void Launch(const StagedProgram& staged, LaunchDone done) override {
      backend_.OnLaunch(device_, staged, std::move(done));
    }
    bool LaunchesAtOnce(const Program&, const MemoryPlan&, std::string_view) const override {
      return backend_.at_once_;
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
  bool launches_asynchronously() const override { return true; }
  bool RunsWithoutState(const Program&, const MemoryPlan&) const override { return false; }
  absl::StatusOr<std::unique_ptr<Lane>> CreateLane(int device) override {
    return std::make_unique<FakeLane>(*this, device);
  }
  absl::StatusOr<Buffer> AllocateHost(std::size_t) override { return absl::UnimplementedError("not needed"); }

  // From now on jobs end as soon as they are launched.
  void FinishAtOnce() { finish_at_once_ = true; }

  void OnLaunch(int device, const StagedProgram& staged, LaunchDone done) {
    if (finish_at_once_) return done({absl::OkStatus(), {"fake"}});
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
  const bool at_once_;
  std::atomic<bool> finish_at_once_ = false;
  Mutex mutex_;
  std::vector<int> inputs_;
  std::vector<int> devices_;
  std::vector<LaunchDone> running_;
};

class SchedulerTest : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr std::size_t kSlab = 1 << 20;
  static constexpr std::size_t kLarge = 256 << 10;  // a slot of a large job

  void Make(int devices, int lanes, std::size_t large_memory = 8 * kLarge, std::size_t slab = kSlab) {
    backend_ = std::make_unique<FakeBackend>(devices, GetParam());
    memory_.resize(slab + large_memory);
    pool_ = std::make_unique<StagingPool>(memory_, slab, metrics_);
    workers_ = std::make_unique<WorkerPool>(2);
    scheduler_ = *Scheduler::Create({.lanes_per_device = lanes, .watchdog = watchdog_.get()}, *backend_,
                                    *pool_, *workers_, metrics_);
  }

  // A job that brings one byte, which FakeBackend records, and keeps its result.
  struct Submitted {
    Scheduler::JobId id = 0;
    std::future<Result> result;
    bool Ready() { return result.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  };
  struct Ask {
    std::size_t input = 1, output = 1;
    MonotonicTime deadline = kNever;
    const std::atomic<bool>* cancelled = nullptr;
    OwnerId owner = 0;
    double cost = 0;
    std::function<void()> while_copying = nullptr;
    std::function<void()> when_done = nullptr;
  };
  Submitted Submit(int mark, const Ask& ask) {
    Plan plan;
    plan.memory.input_bytes = ask.input;
    plan.memory.output_bytes = ask.output;
    plan.device_seconds = ask.cost;
    Job job;
    job.plan = std::make_shared<const Plan>(std::move(plan));
    job.copy_in = [mark, hook = ask.while_copying](std::span<std::byte> region, int part, int) {
      if (part != 0) return;
      if (hook) hook();
      region[0] = static_cast<std::byte>(mark);
    };
    job.owner = ask.owner;
    job.deadline = ask.deadline;
    job.cancelled = ask.cancelled;
    auto promise = std::make_shared<std::promise<Result>>();
    Submitted submitted;
    submitted.result = promise->get_future();
    job.done = [promise, hook = ask.when_done](Result result) {
      if (hook) hook();
      promise->set_value(std::move(result));
    };
    submitted.id = scheduler_->Submit(std::move(job));
    return submitted;
  }
  Submitted Submit(int mark) { return Submit(mark, Ask{}); }
  // Jobs on several lanes end in any order. One that has ended, and whose result nobody has taken.
  static Submitted* AwaitOneOf(std::vector<Submitted>& jobs) {
    for (;; std::this_thread::yield()) {
      for (Submitted& job : jobs) {
        if (job.result.valid() && job.Ready()) return &job;
      }
    }
  }
  Submitted SubmitLarge(int mark) { return Submit(mark, {.input = kLarge, .output = kLarge}); }

  Metrics metrics_;
  std::vector<std::byte> memory_;
  std::unique_ptr<FakeBackend> backend_;
  std::unique_ptr<StagingPool> pool_;
  std::unique_ptr<WorkerPool> workers_;
  std::unique_ptr<DeviceWatchdog> watchdog_;  // none in most tests
  std::unique_ptr<Scheduler> scheduler_;
};

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

TEST_P(SchedulerTest, AResultHoldsItsSlotButNoLane) {
  Make(1, 1);
  Submitted first = Submit(1);
  backend_->FinishOne();
  Result held = first.result.get();  // a reader that takes its time
  Submitted second = Submit(2);
  backend_->FinishOne();
  EXPECT_TRUE(second.result.get().status.ok());
  EXPECT_EQ(pool_->used_bytes(), 4096u);
}

// One result that nobody reads, and a large job that waits for its memory: the others must not notice. With
// the lane that FinishAtOnce gives, a job that starts at once has ended when Submit returns, so that a wait
// of any length would show.
TEST_P(SchedulerTest, AnUnreadResultAndAWaitingGiantHoldNobodyUp) {
  for (const std::size_t bytes : {std::size_t{1}, kLarge}) {
    scheduler_.reset();
    Make(1, 1, 8 * kLarge);
    backend_->FinishAtOnce();
    Result unread = Submit(1, {.input = 1, .output = kLarge}).result.get();
    Submitted giant = Submit(2, {.input = 4 * kLarge, .output = 4 * kLarge});
    for (int i = 0; i < 5000; ++i) {
      Submitted job = Submit(3, {.input = bytes, .output = bytes});
      ASSERT_TRUE(job.result.get().status.ok());
    }
    EXPECT_FALSE(giant.Ready());
    unread = {};
    EXPECT_TRUE(giant.result.get().status.ok());
  }
}

TEST_P(SchedulerTest, SmallJobsStartAtOnceWhateverWaitsForMemory) {
  Make(1, 2, 2 * kLarge);
  backend_->FinishAtOnce();
  Result unread = Submit(1, {.input = 1, .output = 2 * kLarge}).result.get();
  Submitted giant = SubmitLarge(2);
  for (int i = 0; i < 5000; ++i) {
    Submitted small = Submit(3);
    ASSERT_EQ(metrics_.queue_depth.Value(), 1) << i;  // the giant waits, and nobody else
    small.result.wait();
  }
  EXPECT_FALSE(giant.Ready());
  unread = {};
  giant.result.wait();
}

TEST_P(SchedulerTest, ALargeJobGetsTheMemoryOfRunningOnesAlthoughOthersCome) {
  Make(1, 4, 4 * kLarge);
  // Two of two slots each: all memory runs.
  std::vector<Submitted> running = {};
  for (int i = 0; i < 2; ++i) running.push_back(SubmitLarge(i));
  backend_->AwaitLaunches(2);
  Submitted giant = Submit(7, {.input = 2 * kLarge, .output = 2 * kLarge});
  std::vector<Submitted> others;
  for (int i = 0; i < 8; ++i) others.push_back(SubmitLarge(8));
  for (int i = 0; i < 2; ++i) backend_->FinishOne();
  // One after the other the results are read, and their slots come back.
  for (Submitted& job : running) EXPECT_TRUE(job.result.get().status.ok());
  backend_->AwaitLaunches(3);
  EXPECT_EQ(backend_->inputs()[2], 7);  // what came back was kept for it
  backend_->FinishOne();
  EXPECT_TRUE(giant.result.get().status.ok());
  for (std::size_t i = 0; i < others.size(); ++i) {
    backend_->FinishOne();
    Submitted* const ended = AwaitOneOf(others);
    EXPECT_TRUE(ended->result.get().status.ok());
  }
}

TEST_P(SchedulerTest, ACancelledGiantGivesUpWhatWasKeptForIt) {
  Make(1, 4, 4 * kLarge);
  std::vector<Submitted> running;
  for (int i = 0; i < 2; ++i) running.push_back(SubmitLarge(1));
  backend_->AwaitLaunches(2);
  Submitted giant = Submit(7, {.input = 2 * kLarge, .output = 2 * kLarge});
  backend_->FinishOne();
  EXPECT_TRUE(AwaitOneOf(running)->result.get().status.ok());
  Submitted other = SubmitLarge(8);
  EXPECT_EQ(metrics_.queue_depth.Value(), 2);
  scheduler_->Cancel(giant.id, absl::CancelledError("gone"));
  EXPECT_EQ(giant.result.get().status.code(), absl::StatusCode::kCancelled);
  backend_->AwaitLaunches(3);
  EXPECT_EQ(backend_->inputs()[2], 8);
  for (int i = 0; i < 2; ++i) backend_->FinishOne();
  EXPECT_TRUE(other.result.get().status.ok());
  EXPECT_TRUE(AwaitOneOf(running)->result.get().status.ok());
}

// Eight uploads that take as long as they please to be copied leave lanes for a small job.
TEST_P(SchedulerTest, PayloadsBeingCopiedHoldNoLane) {
  Make(1, 2, 32 * kLarge);
  std::latch release(1);
  std::vector<Submitted> uploads;
  for (int i = 0; i < 8; ++i) {
    uploads.push_back(
        Submit(1, {.input = 2 * kLarge, .output = kLarge, .while_copying = [&] { release.wait(); }}));
  }
  Submitted small = Submit(2);
  backend_->FinishOne();
  EXPECT_TRUE(small.result.get().status.ok());
  EXPECT_EQ(backend_->inputs(), std::vector<int>{2});
  EXPECT_EQ(metrics_.LaneBusy(0).Value(), 0);
  release.count_down();
  for (std::size_t i = 0; i < uploads.size(); ++i) backend_->FinishOne();
  for (Submitted& job : uploads) EXPECT_TRUE(job.result.get().status.ok());
}

TEST_P(SchedulerTest, AJobCancelledWhileItIsCopiedGivesEverythingBack) {
  Make(1, 1);
  std::atomic<bool> cancelled = false;
  Submitted job =
      Submit(1, {.input = kLarge, .output = kLarge, .cancelled = &cancelled, .while_copying = [&] {
                   cancelled = true;
                 }});
  EXPECT_EQ(job.result.get().status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(pool_->used_bytes(), 0u);
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
