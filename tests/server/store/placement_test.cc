#include "server/store/placement.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/server/store/eight_devices.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::warpline::testing::IsOk;

// Tensors on eight devices. A job has one binding for each operand.
class PlacementTest : public ::testing::Test {
 protected:
  Buffer Tensor(int device, std::size_t bytes) {
    auto memory = store_.Allocate(Somebody(), device, bytes);
    EXPECT_THAT(memory, IsOk());
    return *std::move(memory);
  }
  static Caller Somebody() { return CallerWith(1); }
  static Job JobOn(const std::vector<Buffer>& operands) {
    Job job;
    for (const Buffer& operand : operands) {
      job.bindings.push_back({.tensor = static_cast<int>(job.bindings.size()),
                              .staged = {.area = Area::kResident},
                              .memory = operand});
    }
    return job;
  }
  Plan PlanOf(const Job& job) {
    Plan plan;
    plan.program.num_inputs = static_cast<int>(job.bindings.size());
    plan.device_bytes = scratch_bytes_;
    return plan;
  }
  Job Placed(Job job) {
    const Plan plan = PlanOf(job);
    JobPlacement(parts_, Somebody(), job, plan).Apply(job, plan.program.num_inputs);
    return job;
  }
  Job Placed(const std::vector<Buffer>& operands) { return Placed(JobOn(operands)); }

  std::size_t scratch_bytes_ = 0;  // that the plan needs
  Metrics metrics_;
  EightDevices devices_;
  Replicas replicas_{
      std::vector<std::size_t>(EightDevices::kDevices, EightDevices::kReplicaBytes),
      [this](int device, std::size_t bytes) { return devices_.AllocateResident(device, bytes); }, metrics_};
  TensorStore store_{{.device_bytes = std::vector<std::size_t>(EightDevices::kDevices, 3000)},
                     [this](int device, std::size_t bytes) { return replicas_.Allocate(device, bytes); },
                     metrics_};
  DeviceLoad load_{EightDevices::kDevices};
  const JobPlacement::Parts parts_{devices_, store_, replicas_, load_};
};

TEST_F(PlacementTest, AJobWithoutTensorsMayRunAnywhere) {
  EXPECT_EQ(Placed(std::vector<Buffer>()).device, std::nullopt);
}

TEST_F(PlacementTest, AJobRunsWhereMostBytesOfItsOperandsLie) {
  const Job job = Placed({Tensor(2, 256), Tensor(6, 1024), Tensor(2, 512)});
  EXPECT_EQ(job.device, 6);
  EXPECT_EQ(job.peer_bytes, 768u);
  EXPECT_DOUBLE_EQ(job.peer_seconds, 768 / EightDevices::kBytesPerSecond);
}

TEST_F(PlacementTest, OperandsOfOtherDevicesBecomeReplicas) {
  const std::vector<Buffer> operands = {Tensor(0, 512), Tensor(1, 256)};
  Job first = Placed(operands);
  EXPECT_EQ(first.device, 0);
  EXPECT_EQ(first.bindings[1].copy.bytes().size(), 256u);
  EXPECT_EQ(first.bindings[1].copy.place().device, 0);
  EXPECT_EQ(first.block_bytes, 0u) << "the replica has its own memory";
  first.copied();
  first = Job();
  const Job second = Placed(operands);
  EXPECT_EQ(second.device, 0);
  EXPECT_EQ(second.bindings[1].memory.place().device, 0);
  EXPECT_TRUE(second.bindings[1].copy.bytes().empty());
  EXPECT_EQ(second.peer_bytes, 0u);
}

TEST_F(PlacementTest, AJobThatFailsLeavesNoReplica) {
  const std::vector<Buffer> operands = {Tensor(0, 512), Tensor(1, 256)};
  Placed(operands);
  EXPECT_EQ(Placed(operands).peer_bytes, 256u);
}

TEST_F(PlacementTest, AnOperandThatIsBoundTwiceGetsOneReplica) {
  const Buffer twice = Tensor(1, 256);
  const Job job = Placed({Tensor(0, 2048), twice, twice});
  EXPECT_EQ(job.peer_bytes, 256u);
  EXPECT_EQ(devices_.used(0), 2048u + 256u);
}

TEST_F(PlacementTest, WithoutRoomForAReplicaTheCopyIsForOneJob) {
  const Job job = Placed({Tensor(0, 2048), Tensor(1, 1024)});
  EXPECT_EQ(job.device, 0);
  EXPECT_TRUE(job.bindings[1].copy.bytes().empty());
  EXPECT_EQ(job.block_bytes, 1024u);
  EXPECT_EQ(job.peer_bytes, 1024u);
  EXPECT_EQ(job.copied, nullptr);
}

TEST_F(PlacementTest, AReplicaServesAsWellAsTheHome) {
  const Buffer hot = Tensor(3, 512);
  Job maker = Placed({hot, Tensor(4, 768)});
  ASSERT_EQ(maker.device, 4);
  maker.copied();
  maker = Job();
  const DeviceLoad::Part work = load_.Add(3, 1e-9);
  EXPECT_EQ(Placed({hot}).device, 4);
  const DeviceLoad::Part more = load_.Add(4, 2e-9);
  EXPECT_EQ(Placed({hot}).device, 3);
}

TEST_F(PlacementTest, AJobLeavesABusyHomeIfTheWaitIsLongerThanTheCopy) {
  const Buffer hot = Tensor(3, 512);
  const double copy = 512 / EightDevices::kBytesPerSecond;
  std::vector<DeviceLoad::Part> work;
  for (int i = 0; i < EightDevices::kDevices; ++i)
    work.push_back(load_.Add(i, i == 3 ? copy * 2 : copy * 1.5));
  EXPECT_EQ(Placed({hot}).device, 3) << "waiting elsewhere and copying takes longer";
  work[6].End();
  EXPECT_EQ(Placed({hot}).device, 3) << "it may be over soon";
  Job job = Placed({hot});
  EXPECT_EQ(job.device, 6);
  EXPECT_EQ(job.peer_bytes, 512u);
  job.copied();
  job = Job();
  work[3].End();
  EXPECT_EQ(Placed({hot}).device, 3) << "both are idle";
  EXPECT_EQ(replicas_.DevicesOf(hot), Replicas::Devices({6}));
}

TEST_F(PlacementTest, AJobStaysAtABusyHomeWithoutRoomForAReplica) {
  const Buffer hot = Tensor(3, 1024);
  const DeviceLoad::Part work = load_.Add(3, 10);
  for (int i = 0; i < 3; ++i) {
    const Job job = Placed({hot});
    EXPECT_EQ(job.device, 3);
    EXPECT_EQ(job.peer_bytes, 0u);
  }
}

TEST_F(PlacementTest, ADeviceWithoutTheMemoryForTheProgramIsLeftOut) {
  const Buffer hot = Tensor(3, 512);
  scratch_bytes_ = EightDevices::kPoolBytes + 1;
  const DeviceLoad::Part work = load_.Add(EightDevices::kLargerPool, 10);
  const Job job = Placed({hot});
  EXPECT_EQ(job.device, EightDevices::kLargerPool) << "though it is busy, and the operand lies elsewhere";
  EXPECT_EQ(job.peer_bytes, 512u);
}

TEST_F(PlacementTest, ResultsThatStayLieWithTheClientsTensors) {
  const Buffer own = Tensor(5, 256);
  Job job;
  job.sink_bytes = 256;
  const Job placed = Placed(std::move(job));
  EXPECT_EQ(placed.device, 5);
  Job busy = JobOn({own});
  busy.sink_bytes = 256;
  const DeviceLoad::Part work = load_.Add(5, 10);
  EXPECT_EQ(Placed(std::move(busy)).device, 5) << "though others are idle";
}

TEST_F(PlacementTest, MemoryThatIsNotAtHandIsTakenByAnotherThread) {
  const std::vector<Buffer> operands = {Tensor(0, 512), Tensor(1, 256)};
  const Job job = JobOn(operands);
  const auto at_once = [&] {
    return JobPlacement(parts_, Somebody(), job, PlanOf(job)).AppliesAtOnce(job, 2);
  };
  EXPECT_TRUE(at_once());
  devices_.at_hand = false;
  EXPECT_FALSE(at_once());
  Job maker = Placed(operands);
  maker.copied();
  EXPECT_TRUE(at_once()) << "the replica is there";
  const Job too_large = JobOn({Tensor(2, 2048), Tensor(1, EightDevices::kReplicaBytes + 1)});
  EXPECT_TRUE(JobPlacement(parts_, Somebody(), too_large, PlanOf(too_large)).AppliesAtOnce(too_large, 2))
      << "no replica will be tried";
}

}  // namespace
}  // namespace warpline
