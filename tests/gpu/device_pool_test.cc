// Memory for large programs, on a real device.
#include "server/device/device_pool.h"

#include <future>
#include <vector>

#include "server/device/cuda_backend.h"
#include "server/schedule/scheduler.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/lane_runs.h"

namespace warpline {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kBytes = 128 * kMiB;

class DevicePoolTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    auto pool = DevicePool::Create({.bytes = kBytes}, metrics_);
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
  }
  double Used() { return metrics_.DeviceMemoryBytes(0, "pool_used").Value(); }
  double Free() { return metrics_.DeviceMemoryBytes(0, "pool_free").Value(); }

  Metrics metrics_;
  std::unique_ptr<DevicePool> pool_;
};

TEST_F(DevicePoolTest, BlocksAreMemoryOfTheDeviceThatIsCounted) {
  auto block = pool_->Take(10 * kMiB);
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(block->place().kind, Place::Kind::kDevice);
  EXPECT_EQ(block->bytes().size(), 10 * kMiB);
  EXPECT_EQ(cudaMemset(block->bytes().data(), 1, 10 * kMiB), cudaSuccess);
  EXPECT_EQ(Used(), 10.0 * kMiB);
  EXPECT_EQ(Free(), 118.0 * kMiB);
  *block = Buffer();
  EXPECT_EQ(Used(), 0);
  EXPECT_EQ(Free(), 128.0 * kMiB);
}

TEST_F(DevicePoolTest, HasAllOfItsBytesAndNoMore) {
  auto all = pool_->Take(kBytes);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(pool_->Take(2 * kMiB).status().code(), absl::StatusCode::kResourceExhausted);
  *all = Buffer();
  EXPECT_TRUE(pool_->Take(2 * kMiB).ok());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "a refusal leaves nothing behind";
}

TEST_F(DevicePoolTest, TellsWhatItHasAtHand) {
  EXPECT_TRUE(pool_->HasAtHand(kBytes));
  {
    const auto most = pool_->Take(kBytes - 32 * kMiB);
    ASSERT_TRUE(most.ok()) << most.status();
    EXPECT_TRUE(pool_->HasAtHand(32 * kMiB));
    EXPECT_FALSE(pool_->HasAtHand(33 * kMiB));
  }
  auto growing = DevicePool::Create({.bytes = kBytes, .grown = false}, metrics_);
  ASSERT_TRUE(growing.ok()) << growing.status();
  EXPECT_FALSE((*growing)->HasAtHand(kMiB)) << "nothing was taken of the device yet";
  ASSERT_TRUE((*growing)->Take(kMiB).ok());
  EXPECT_TRUE((*growing)->HasAtHand(kMiB)) << "what has come back is kept";
}

TEST_F(DevicePoolTest, BlocksThatCameBackInAnyOrderMakeOneAgain) {
  for (int round = 0; round < 10; ++round) {
    std::vector<Buffer> blocks;
    for (const std::size_t bytes : {30, 2, 40, 16, 8, 32}) {
      auto block = pool_->Take(bytes * kMiB);
      ASSERT_TRUE(block.ok()) << block.status() << " for " << bytes << " MiB in round " << round;
      blocks.push_back(*std::move(block));
    }
    for (const std::size_t i : {1, 4, 0, 5, 2, 3}) blocks[i] = Buffer();
    EXPECT_TRUE(pool_->Take(kBytes).ok()) << "round " << round;
  }
}

TEST_F(DevicePoolTest, ABlockThatCameBackIsGivenOutAgain) {
  auto first = pool_->Take(1000);
  ASSERT_TRUE(first.ok()) << first.status();
  const std::byte* const address = first->bytes().data();
  *first = Buffer();
  const auto other = pool_->Take(2 * kMiB);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(other->bytes().data(), address);
  const auto again = pool_->Take(1024);  // as much as 1000 bytes took
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->bytes().data(), address);
}

TEST_F(DevicePoolTest, TenThousandBlocksTakeNothingMoreOfTheDevice) {
  std::size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  const double allocations = metrics_.Allocations("device").Value();
  for (std::size_t i = 0; i < 10000; ++i) {
    const auto block = pool_->Take((1 + i * 7 % 60) * 2 * kMiB);
    ASSERT_TRUE(block.ok()) << block.status();
  }
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(after, before);
  EXPECT_EQ(metrics_.Allocations("device").Value(), allocations);
}

// Each job takes most of the pool, so that one runs at a time though four lanes are free.
TEST_F(DevicePoolTest, JobsWaitForThePoolAndAllSucceed) {
  auto backend = CreateCudaBackend({.devices = {"0"},
                                    .lane_bytes = kMiB,
                                    .lanes = 4,
                                    .device_bytes = 68 * kMiB,  // a pool of 64 MiB
                                    .metrics = &metrics_});
  ASSERT_TRUE(backend.ok()) << backend.status();
  ASSERT_EQ((*backend)->devices()[0].pool_bytes, 64 * kMiB);
  const Buffer memory = *(*backend)->AllocateHost(256 * kMiB);
  StagingPool staging(memory.bytes(), kMiB, metrics_);
  WorkerPool workers(2);
  auto scheduler = *Scheduler::Create({.lanes_per_device = 4}, **backend, staging, workers, metrics_);
  constexpr std::int64_t kSide = 2048;
  Plan plan = MakePlan(TransposeProgram({DType::kF32, {kSide, kSide}, {1, 0}}));
  const CompiledProgram compiled = *(*backend)->Compile(plan.program, plan.memory);
  plan.compiled = compiled.program;
  plan.device_bytes = compiled.device_bytes;
  ASSERT_GT(plan.device_bytes, 32 * kMiB);
  const auto shared = std::make_shared<const Plan>(std::move(plan));
  std::vector<std::promise<Result>> results(32);
  for (std::size_t i = 0; i < results.size(); ++i) {
    Job job;
    job.plan = shared;
    job.bindings = MakeBindings(shared->memory);
    job.copy_in = [i](std::span<std::byte> region, int part, int) {
      if (part != 0) return;
      auto* x = reinterpret_cast<float*>(region.data());
      for (std::int64_t k = 0; k < kSide * kSide; ++k) x[k] = static_cast<float>(i * 1000 + k % 997);
    };
    job.done = [&results, i](Result result) { results[i].set_value(std::move(result)); };
    scheduler->Submit(std::move(job));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result result = results[i].get_future().get();
    ASSERT_TRUE(result.status.ok()) << result.status;
    const auto* y = reinterpret_cast<const float*>(result.output.bytes().data());
    for (std::int64_t k = 0; k < kSide * kSide; ++k) {
      const std::int64_t from = k % kSide * kSide + k / kSide;
      ASSERT_EQ(y[k], static_cast<float>(i * 1000 + from % 997)) << "job " << i << ", element " << k;
    }
  }
}

}  // namespace
}  // namespace warpline
