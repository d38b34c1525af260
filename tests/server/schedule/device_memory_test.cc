// Jobs that need memory of a device's pool: they wait for it, and for nothing else.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/base/mutex.h"
#include "server/schedule/scheduler.h"
#include "tests/server/schedule/stub_backend.h"
#include "tests/testing/patience.h"

namespace warpline {
namespace {

// Devices whose programs run until they are told to end. A program is named by the first byte of its input.
class HeldDevices : public StubBackend {
 public:
  explicit HeldDevices(const std::vector<std::size_t>& pool_bytes) : StubBackend(Infos(pool_bytes)) {}

  class HeldLane : public Lane {
   public:
    HeldLane(HeldDevices& devices, int device) : devices_(devices), device_(device) {}
    void Launch(const StagedProgram& staged, LaunchDone done) override {
      MutexLock lock(&devices_.mutex_);
      const int name = static_cast<int>(staged.input[0]);
      devices_.ever_.push_back({name, device_});
      devices_.running_[name] = std::move(done);
    }
    bool LaunchesAtOnce(const Program&, const MemoryPlan&, const DeviceProgram*) const override {
      return true;
    }

   private:
    HeldDevices& devices_;
    int device_;
  };

  absl::StatusOr<std::unique_ptr<Lane>> CreateLane(int device) override {
    return std::make_unique<HeldLane>(*this, device);
  }

  void End(int name, absl::Status status = absl::OkStatus()) {
    LaunchDone done;
    {
      MutexLock lock(&mutex_);
      const auto runs = [&] { return running_.contains(name); };
      if (!mutex_.AwaitUntil(runs, MonotonicClock::now() + kPatience)) NeverCame("a job that runs");
      done = std::move(running_[name]);
      running_.erase(name);
    }
    done({std::move(status), {"held"}});
  }
  // It cannot run: the pool is in pieces.
  void FindPieces(int name) {
    LaunchDone done;
    {
      MutexLock lock(&mutex_);
      done = std::move(running_.at(name));
      running_.erase(name);
    }
    done({.status = absl::ResourceExhaustedError("in pieces"), .variants = {}, .pool_in_pieces = true});
  }
  // Names of programs, in the order in which they were started.
  std::vector<int> Started() {
    MutexLock lock(&mutex_);
    std::vector<int> names;
    for (const auto& [name, device] : ever_) names.push_back(name);
    return names;
  }
  std::optional<int> DeviceOf(int name) {
    MutexLock lock(&mutex_);
    for (const auto& [started, device] : ever_) {
      if (started == name) return device;
    }
    return std::nullopt;
  }

 private:
  static std::vector<DeviceInfo> Infos(const std::vector<std::size_t>& pool_bytes) {
    std::vector<DeviceInfo> infos(pool_bytes.size());
    for (std::size_t i = 0; i < infos.size(); ++i) infos[i].pool_bytes = pool_bytes[i];
    return infos;
  }

  Mutex mutex_;
  absl::flat_hash_map<int, LaunchDone> running_;
  std::vector<std::pair<int, int>> ever_;  // name and device
};

class DeviceMemoryTest : public ::testing::Test {
 protected:
  void Make(const std::vector<std::size_t>& pool_bytes, int lanes = 4) {
    backend_ = std::make_unique<HeldDevices>(pool_bytes);
    memory_.resize(16 << 20);
    pool_ = std::make_unique<StagingPool>(memory_, memory_.size() / 2, metrics_);
    scheduler_ = *Scheduler::Create({.lanes_per_device = lanes}, *backend_, *pool_, workers_, metrics_);
  }

  struct Submitted {
    Scheduler::JobId id = 0;
    std::future<Result> result;
  };
  static constexpr std::size_t kLarge = StagingPool::kTinySlotBytes + 1;

  // If the job is small, this thread has started it, or found that it has to wait, when Submit returns.
  Submitted Submit(int name, std::size_t device_bytes, OwnerId owner = 0, std::size_t payload_bytes = 1,
                   std::optional<int> device = std::nullopt, std::size_t peer_bytes = 0) {
    Plan plan;
    plan.memory.input_bytes = plan.memory.output_bytes = payload_bytes;
    plan.device_bytes = device_bytes;
    Job job;
    job.plan = std::make_shared<const Plan>(std::move(plan));
    job.crowded = payload_bytes == kLarge;  // copied by the worker, then, and launched by the lane's thread
    job.copy_in = [this, name, payload_bytes](std::span<std::byte> region, int, int) {
      region[0] = static_cast<std::byte>(name);
      MutexLock lock(&copies_mutex_);
      if (payload_bytes == kLarge) ++copies_;
    };
    job.caller = CallerWith(owner);
    job.device = device;
    job.block_bytes = peer_bytes;
    auto promise = std::make_shared<std::promise<Result>>();
    Submitted submitted{.result = promise->get_future()};
    job.done = [promise](Result result) { promise->set_value(std::move(result)); };
    submitted.id = scheduler_->Submit(std::move(job));
    return submitted;
  }
  void AwaitCopies(int count) {
    MutexLock lock(&copies_mutex_);
    const auto reached = [&] { return copies_ >= count; };
    if (!copies_mutex_.AwaitUntil(reached, MonotonicClock::now() + kPatience)) NeverCame("copies");
  }
  // Returns when the job has ended and everything that can start in its place has been started.
  void End(int name, Submitted& job, const absl::Status& status = absl::OkStatus()) {
    backend_->End(name, status);
    EXPECT_EQ(job.result.get().status, status);
  }
  std::vector<int> Started() { return backend_->Started(); }

  Metrics metrics_;
  Mutex copies_mutex_;
  int copies_ ABSL_GUARDED_BY(copies_mutex_) = 0;
  std::vector<std::byte> memory_;
  WorkerPool workers_{1};
  std::unique_ptr<HeldDevices> backend_;
  std::unique_ptr<StagingPool> pool_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(DeviceMemoryTest, JobsRunTogetherWhileThePoolHasEnough) {
  Make({100});
  auto a = Submit(1, 50), b = Submit(2, 50);
  EXPECT_EQ(Started(), (std::vector<int>{1, 2}));
  End(1, a);
  End(2, b);
}

TEST_F(DeviceMemoryTest, AJobWaitsForWhatARunningOneHolds) {
  Make({100});
  auto a = Submit(1, 60), b = Submit(2, 60);
  EXPECT_EQ(Started(), std::vector<int>{1}) << "though a lane is free";
  End(1, a);
  EXPECT_EQ(Started(), (std::vector<int>{1, 2}));
  End(2, b);
}

TEST_F(DeviceMemoryTest, CopiesOfOperandsFromOtherDevicesTakeThePoolToo) {
  Make({100, 100});
  auto a = Submit(1, 40, 0, 1, 0, /*peer_bytes=*/30), b = Submit(2, 0, 0, 1, 0, /*peer_bytes=*/40);
  EXPECT_EQ(Started(), std::vector<int>{1}) << "70 of 100 bytes are taken";
  End(1, a);
  EXPECT_EQ(Started(), (std::vector<int>{1, 2}));
  End(2, b);
  auto c = Submit(3, 40, 0, 1, 1, /*peer_bytes=*/61);
  const absl::Status status = c.result.get().status;
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("101 bytes of scratch memory on device 1"), std::string::npos) << status;
  EXPECT_NE(status.message().find("61 of them for operands that lie on other devices"), std::string::npos)
      << status;
}

TEST_F(DeviceMemoryTest, MemoryOfAFailedJobComesBack) {
  Make({100});
  auto a = Submit(1, 100), b = Submit(2, 100);
  End(1, a, absl::ResourceExhaustedError("the pool is in pieces"));
  EXPECT_EQ(Started(), (std::vector<int>{1, 2}));
  End(2, b);
}

TEST_F(DeviceMemoryTest, AJobThatMeetsAPoolInPiecesWaitsAtItsPlaceUntilThePoolIsWhole) {
  Make({100});
  auto a = Submit(1, 30), b = Submit(2, 30), torn = Submit(3, 40), later = Submit(4, 30);
  EXPECT_EQ(Started(), (std::vector<int>{1, 2, 3}));
  backend_->FindPieces(3);
  End(1, a);
  EXPECT_EQ(Started(), (std::vector<int>{1, 2, 3})) << "neither it nor one behind it";
  End(2, b);
  EXPECT_EQ(Started(), (std::vector<int>{1, 2, 3, 3, 4}));
  End(3, torn);
  End(4, later);
}

TEST_F(DeviceMemoryTest, AJobThatMeetsPiecesTwiceFails) {
  Make({100});
  auto torn = Submit(1, 40);
  backend_->FindPieces(1);
  backend_->FindPieces(1);
  EXPECT_TRUE(absl::IsResourceExhausted(torn.result.get().status));
  auto next = Submit(2, 100);
  End(2, next);
}

TEST_F(DeviceMemoryTest, AJobThatWaitsForAWholePoolMayBeCancelled) {
  Make({100});
  auto a = Submit(1, 30), torn = Submit(2, 40);
  backend_->FindPieces(2);
  scheduler_->Cancel(torn.id, absl::CancelledError());
  EXPECT_TRUE(absl::IsCancelled(torn.result.get().status));
  auto next = Submit(3, 70);
  EXPECT_EQ(Started(), (std::vector<int>{1, 2, 3}));
  End(1, a);
  End(3, next);
}

TEST_F(DeviceMemoryTest, AJobThatNoDeviceOfItsOperandsCanServeIsRefused) {
  Make({400, 100});
  auto never = Submit(1, 200, /*owner=*/0, /*payload_bytes=*/1, /*device=*/1);
  const absl::Status status = never.result.get().status;
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(),
            "the request needs 200 bytes of scratch memory on device 1, where its resident tensors lie; "
            "limit 100 (the server's --device-bytes)");
  auto there = Submit(2, 200, /*owner=*/0, /*payload_bytes=*/1, /*device=*/0);
  EXPECT_EQ(backend_->DeviceOf(2), 0);
  End(2, there);
}

TEST_F(DeviceMemoryTest, JobsThatNeedNonePassTheOneThatWaits) {
  Make({100});
  auto a = Submit(1, 60), waits = Submit(2, 60);
  auto same_owner = Submit(3, 0), other_owner = Submit(4, 0, /*owner=*/1);
  EXPECT_EQ(Started(), (std::vector<int>{1, 3, 4}));
  End(1, a);
  EXPECT_EQ(Started(), (std::vector<int>{1, 3, 4, 2}));
  for (auto [name, job] : {std::pair(2, &waits), {3, &same_owner}, {4, &other_owner}}) End(name, *job);
}

TEST_F(DeviceMemoryTest, SmallerJobsThatWouldFitDoNotPassTheOneThatWaits) {
  Make({100});
  auto a = Submit(1, 60), b = Submit(2, 30);
  auto large = Submit(3, 80);
  auto same_owner = Submit(4, 10), other_owner = Submit(5, 10, /*owner=*/1);
  EXPECT_EQ(Started(), (std::vector<int>{1, 2}));
  End(2, b);
  EXPECT_EQ(Started(), (std::vector<int>{1, 2})) << "30 more are free, kept for the large one";
  End(1, a);
  EXPECT_EQ(Started().size(), 5u);
  EXPECT_EQ(Started()[2], 3);
  for (auto [name, job] : {std::pair(3, &large), {4, &same_owner}, {5, &other_owner}}) End(name, *job);
}

TEST_F(DeviceMemoryTest, AJobThatIsCancelledWhileItWaitsKeepsNothing) {
  Make({100});
  auto a = Submit(1, 60), waits = Submit(2, 60), fits = Submit(3, 40);
  EXPECT_EQ(Started(), std::vector<int>{1});
  scheduler_->Cancel(waits.id, absl::CancelledError("enough"));
  EXPECT_EQ(waits.result.get().status, absl::CancelledError("enough"));
  EXPECT_EQ(Started(), (std::vector<int>{1, 3}));
  End(1, a);
  End(3, fits);
}

TEST_F(DeviceMemoryTest, AJobThatWaitsKeepsOnlyPoolsThatCouldServeIt) {
  Make({100, 20});
  auto a = Submit(1, 60), waits = Submit(2, 80);
  auto on_other = Submit(3, 20, /*owner=*/1), as_well = Submit(4, 10, /*owner=*/1);
  EXPECT_EQ(Started(), (std::vector<int>{1, 3})) << "40 are left of the first pool, and none of the second";
  EXPECT_EQ(backend_->DeviceOf(3), 1);
  End(3, on_other);
  EXPECT_EQ(backend_->DeviceOf(4), 1);
  End(1, a);
  End(2, waits);
  End(4, as_well);
}

TEST_F(DeviceMemoryTest, AJobRunsOnTheDeviceWhosePoolHasEnough) {
  Make({10, 100});
  auto a = Submit(1, 60), b = Submit(2, 10);
  EXPECT_EQ(backend_->DeviceOf(1), 1);
  EXPECT_EQ(backend_->DeviceOf(2), 0);
  End(1, a);
  End(2, b);
}

// A large one holds staging memory while it waits, and goes through the same door.
TEST_F(DeviceMemoryTest, AJobWithALargePayloadWaitsToo) {
  Make({100});
  auto a = Submit(1, 100), large = Submit(2, 1, /*owner=*/0, kLarge);
  AwaitCopies(1);
  EXPECT_EQ(Started(), std::vector<int>{1});
  End(1, a);
  End(2, large);
}

TEST_F(DeviceMemoryTest, LargePayloadsThatWaitForThePoolDoNotKeepOthersFromBeingCopied) {
  Make({100}, /*lanes=*/2);
  auto a = Submit(1, 100);
  // Submits as many payloads as may be copied ahead of the lanes, and one more.
  auto b = Submit(2, 1, 0, kLarge), c = Submit(3, 1, 0, kLarge), d = Submit(4, 1, 0, kLarge);
  AwaitCopies(2);
  auto same_owner = Submit(5, 0, 0, kLarge);
  End(5, same_owner);
  auto other_owner = Submit(6, 0, 1, kLarge);
  End(6, other_owner);
  EXPECT_EQ(Started(), (std::vector<int>{1, 5, 6}));
  End(1, a);
  for (auto [name, job] : {std::pair(2, &b), {3, &c}, {4, &d}}) End(name, *job);
}

}  // namespace
}  // namespace warpline
