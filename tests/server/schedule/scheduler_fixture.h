// The shared parts of the scheduler's tests: a backend whose jobs end when a test says so, and a scheduler
// over it.
#ifndef WARPLINE_TESTS_SERVER_SCHEDULE_SCHEDULER_FIXTURE_H_
#define WARPLINE_TESTS_SERVER_SCHEDULE_SCHEDULER_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "server/base/mutex.h"
#include "server/base/worker_pool.h"
#include "server/device/watchdog.h"
#include "server/memory/staging_pool.h"
#include "server/observe/metrics.h"
#include "server/schedule/scheduler.h"
#include "tests/server/schedule/stub_backend.h"
#include "tests/testing/patience.h"

namespace warpline {

// A backend whose lanes do nothing until they are told to finish: pending states become deterministic.
class FakeBackend : public StubBackend {
 public:
  explicit FakeBackend(int devices, bool at_once)
      : StubBackend(std::vector<DeviceInfo>(static_cast<std::size_t>(devices))), at_once_(at_once) {}

  class FakeLane : public Lane {
   public:
    FakeLane(FakeBackend& backend, int device) : backend_(backend), device_(device) {}
    void Launch(const StagedProgram& staged, LaunchDone done) override {
      backend_.OnLaunch(device_, staged, std::move(done));
    }
    bool LaunchesAtOnce(const Program&, const MemoryPlan&, const DeviceProgram*) const override {
      return backend_.at_once_;
    }

   private:
    FakeBackend& backend_;
    int device_;
  };

  absl::StatusOr<std::unique_ptr<Lane>> CreateLane(int device) override {
    return std::make_unique<FakeLane>(*this, device);
  }

  // From now on jobs end as soon as they are launched.
  void FinishAtOnce() { finish_at_once_ = true; }

  void OnLaunch(int device, const StagedProgram& staged, LaunchDone done) {
    if (finish_at_once_) return done({absl::OkStatus(), {"fake"}, false});
    MutexLock lock(&mutex_);
    inputs_.push_back(static_cast<int>(staged.input.empty() ? std::byte{0} : staged.input[0]));
    devices_.push_back(device);
    urgent_.push_back(staged.urgent);
    parts_.push_back({staged.part, staged.parts});
    running_.push_back(std::move(done));
  }
  void AwaitLaunches(std::size_t count) {
    MutexLock lock(&mutex_);
    const auto reached = [&] { return inputs_.size() >= count; };
    if (!mutex_.AwaitUntil(reached, MonotonicClock::now() + kPatience)) {
      NeverCame("launches");
    }
  }
  // Ends the oldest running job, which was `shared` (LaunchReport) or not.
  void FinishOne(absl::Status status = absl::OkStatus(), bool shared = false) {
    LaunchDone done;
    {
      MutexLock lock(&mutex_);
      const auto some = [&] { return !running_.empty(); };
      if (!mutex_.AwaitUntil(some, MonotonicClock::now() + kPatience)) NeverCame("a launch");
      done = std::move(running_.front());
      running_.erase(running_.begin());
    }
    done({std::move(status), {"fake"}, shared});
  }
  std::vector<int> inputs() {
    MutexLock lock(&mutex_);
    return inputs_;
  }
  std::vector<int> launch_devices() {
    MutexLock lock(&mutex_);
    return devices_;
  }
  // For each launch: which part of the program, and of how many.
  std::vector<std::pair<int, int>> parts() {
    MutexLock lock(&mutex_);
    return parts_;
  }
  std::vector<bool> urgent() {
    MutexLock lock(&mutex_);
    return urgent_;
  }

 private:
  const bool at_once_;
  std::atomic<bool> finish_at_once_ = false;
  Mutex mutex_;
  std::vector<int> inputs_;
  std::vector<int> devices_;
  std::vector<bool> urgent_;
  std::vector<std::pair<int, int>> parts_;
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
    scheduler_ = *Scheduler::Create({.lanes_per_device = lanes,
                                     .lanes_kept = kept_lanes_,
                                     .always_urgent = always_urgent_,
                                     .limits_of = limits_of_,
                                     .owner_metrics = owner_metrics_.get(),
                                     .watchdog = watchdog_.get()},
                                    *backend_, *pool_, *workers_, metrics_);
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
    std::optional<int> device;  // not set: any
    std::function<void()> while_copying = nullptr;
    std::function<void()> when_done = nullptr;
    std::shared_ptr<const Plan> plan = nullptr;  // null: one with the values above
  };
  static std::shared_ptr<const Plan> PlanOf(const Ask& ask) {
    auto plan = std::make_shared<Plan>();
    plan->memory.input_bytes = ask.input;
    plan->memory.output_bytes = ask.output;
    plan->device_seconds = ask.cost;
    return plan;
  }
  Submitted Submit(int mark, const Ask& ask) {
    Job job;
    job.plan = ask.plan != nullptr ? ask.plan : PlanOf(ask);
    job.copy_in = [mark, hook = ask.while_copying](std::span<std::byte> region, int part, int) {
      if (part != 0) return;
      if (hook) hook();
      region[0] = static_cast<std::byte>(mark);
    };
    job.caller = CallerWith(ask.owner);
    job.device = ask.device;
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
    Submitted* ended = nullptr;
    AwaitThat(
        "the end of a job",
        [&] {
          for (Submitted& job : jobs) {
            if (job.result.valid() && job.Ready()) ended = &job;
            if (ended != nullptr) break;
          }
          return ended != nullptr;
        },
        std::chrono::microseconds(0));
    return ended;
  }
  Submitted SubmitLarge(int mark) { return Submit(mark, {.input = kLarge, .output = kLarge}); }

  Metrics metrics_;
  std::vector<std::byte> memory_;
  std::unique_ptr<FakeBackend> backend_;
  std::unique_ptr<StagingPool> pool_;
  std::unique_ptr<WorkerPool> workers_;
  int kept_lanes_ = 0;
  bool always_urgent_ = false;
  LimitsOf limits_of_;
  std::unique_ptr<OwnerMetrics> owner_metrics_;  // none in most tests
  std::unique_ptr<DeviceWatchdog> watchdog_;     // none in most tests
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace warpline

#endif  // WARPLINE_TESTS_SERVER_SCHEDULE_SCHEDULER_FIXTURE_H_
