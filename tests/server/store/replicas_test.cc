#include "server/store/replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/store/eight_devices.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

class ReplicasTest : public ::testing::Test {
 protected:
  Buffer Home(int device, std::size_t bytes) {
    auto memory = replicas_.Allocate(device, bytes);
    EXPECT_THAT(memory, IsOk());
    return *std::move(memory);
  }
  // Returns whether a replica was made.
  bool Copy(const Buffer& home, int device) {
    std::optional<Replicas::Making> making = replicas_.Make(home, device);
    if (making.has_value()) making->Complete();
    return making.has_value();
  }
  double Shown(int device, const std::string& state) {
    return metrics_.DeviceMemoryBytes(device, state).Value();
  }

  Metrics metrics_;
  EightDevices devices_;
  Replicas replicas_{
      std::vector<std::size_t>(EightDevices::kDevices, EightDevices::kReplicaBytes),
      [this](int device, std::size_t bytes) { return devices_.AllocateResident(device, bytes); }, metrics_};
};

TEST_F(ReplicasTest, AReplicaIsFoundOnceItIsComplete) {
  const Buffer home = Home(0, 100);
  EXPECT_TRUE(replicas_.Find(home, 5).bytes().empty());
  {
    std::optional<Replicas::Making> making = replicas_.Make(home, 5);
    ASSERT_TRUE(making.has_value());
    EXPECT_EQ(making->memory().place().device, 5);
    EXPECT_EQ(making->memory().bytes().size(), 100u);
    EXPECT_TRUE(replicas_.Find(home, 5).bytes().empty());
    EXPECT_THAT(replicas_.DevicesOf(home), IsEmpty());
    EXPECT_FALSE(replicas_.Make(home, 5).has_value()) << "it is being made";
    making->Complete();
  }
  const Buffer found = replicas_.Find(home, 5);
  EXPECT_EQ(found.bytes().size(), 100u);
  EXPECT_EQ(found.place().device, 5);
  EXPECT_EQ(found.place().kind, Place::Kind::kDevice);
  EXPECT_FALSE(replicas_.Make(home, 5).has_value()) << "it is there";
  EXPECT_TRUE(Copy(home, 7));
  EXPECT_THAT(replicas_.DevicesOf(home), UnorderedElementsAre(5, 7));
}

TEST_F(ReplicasTest, AReplicaThatIsNotCompletedIsGone) {
  const Buffer home = Home(0, 100);
  EXPECT_TRUE(replicas_.Make(home, 1).has_value());
  EXPECT_THAT(replicas_.DevicesOf(home), IsEmpty());
  EXPECT_EQ(devices_.used(1), 0u);
  EXPECT_TRUE(Copy(home, 1)) << "another job may make it";
}

TEST_F(ReplicasTest, ReplicasEndWithTheLastUserOfTheirTensor) {
  std::optional<Buffer> home = Home(0, 100);
  Copy(*home, 1);
  Copy(*home, 2);
  Buffer reader = replicas_.Find(*home, 1);
  home.reset();
  EXPECT_EQ(devices_.used(0), 100u) << "a reader of a replica keeps the home";
  reader = Buffer();
  for (int device = 0; device < EightDevices::kDevices; ++device) EXPECT_EQ(devices_.used(device), 0u);
}

TEST_F(ReplicasTest, ANewTensorAtTheSameAddressHasNoReplicas) {
  const std::byte* address = nullptr;
  // The allocator of this test gives freed memory out again soon.
  for (int i = 0; i < 100; ++i) {
    const Buffer home = Home(0, 100);
    if (home.bytes().data() == address) {
      EXPECT_THAT(replicas_.DevicesOf(home), IsEmpty());
      return;
    }
    Copy(home, 1);
    address = home.bytes().data();
  }
  GTEST_SKIP() << "no address came twice";
}

TEST_F(ReplicasTest, ATensorTakesTheMemoryOfReplicasThatNobodyUses) {
  const Buffer first = Home(0, 400), second = Home(0, 400);
  Copy(first, 1);
  Copy(second, 1);
  const Buffer in_use = replicas_.Find(second, 1);
  const Buffer filling = Home(1, EightDevices::kBytes - 800);
  EXPECT_THAT(replicas_.Allocate(1, 500), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(replicas_.DevicesOf(first), IsEmpty()) << "it was given up";
  EXPECT_THAT(replicas_.DevicesOf(second), ElementsAre(1)) << "a job uses it";
  EXPECT_THAT(replicas_.Allocate(1, 400), IsOk());
}

TEST_F(ReplicasTest, TheOneThatWasUsedLeastRecentlyMakesRoomForANewOne) {
  const Buffer a = Home(0, 400), b = Home(0, 400), c = Home(0, 400);
  Copy(a, 1);
  Copy(b, 1);
  replicas_.Find(a, 1);
  EXPECT_TRUE(Copy(c, 1));
  EXPECT_THAT(replicas_.DevicesOf(a), ElementsAre(1));
  EXPECT_THAT(replicas_.DevicesOf(b), IsEmpty());
  EXPECT_THAT(replicas_.DevicesOf(c), ElementsAre(1));
}

TEST_F(ReplicasTest, AllReplicasOfADeviceStayWithinTheirLimit) {
  const Buffer large = Home(0, EightDevices::kReplicaBytes + 1), half = Home(0, 600), other = Home(0, 600);
  EXPECT_FALSE(Copy(large, 1));
  ASSERT_TRUE(Copy(half, 1));
  const Buffer in_use = replicas_.Find(half, 1);
  EXPECT_FALSE(Copy(other, 1));
  EXPECT_TRUE(Copy(other, 2)) << "each device has its own";
  EXPECT_EQ(devices_.used(1), 600u);
}

TEST_F(ReplicasTest, NothingIsGivenUpForAReplicaThatHasNoRoomAllTheSame) {
  const Buffer idle = Home(0, 300), used = Home(0, 600), large = Home(0, 500);
  Copy(idle, 1);
  Copy(used, 1);
  const Buffer in_use = replicas_.Find(used, 1);
  EXPECT_FALSE(Copy(large, 1));
  EXPECT_THAT(replicas_.DevicesOf(idle), ElementsAre(1));
}

TEST_F(ReplicasTest, ManyThreadsMakeFindAndEndThem) {
  const Buffer hot = Home(0, 200);
  std::atomic<int> found = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 500; ++k) {
        const int device = 1 + (i + k) % 3;
        const auto own = replicas_.Allocate(i, 150);
        for (const Buffer& home : {hot, own.value_or(Buffer())}) {
          if (home.bytes().empty()) continue;
          if (auto making = replicas_.Make(home, device); making.has_value() && k % 4 != 0)
            making->Complete();
          const Buffer replica = replicas_.Find(home, device);
          found += replica.bytes().size() == home.bytes().size();
        }
        static_cast<void>(replicas_.Allocate(device, EightDevices::kBytes - 900));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(found, 0);
  for (const int device : replicas_.DevicesOf(hot)) EXPECT_EQ(devices_.used(device), 200u);
  EXPECT_EQ(devices_.used(5), 0u);
}

TEST_F(ReplicasTest, MetricsShowThemApartFromTensors) {
  std::optional<Buffer> home = Home(0, 400);
  Copy(*home, 3);
  EXPECT_EQ(Shown(3, "replicas"), 400);
  EXPECT_EQ(Shown(3, "resident_used"), -400) << "the backend, which this test has none of, adds them there";
  home.reset();
  EXPECT_EQ(Shown(3, "replicas"), 0);
  EXPECT_EQ(Shown(3, "resident_used"), 0);
}

TEST_F(ReplicasTest, AJobLeavesTheHomeTheSecondTimeInARow) {
  const Buffer home = Home(0, 100);
  EXPECT_FALSE(replicas_.ShouldLeave(home, true));
  EXPECT_FALSE(replicas_.ShouldLeave(home, false));
  EXPECT_FALSE(replicas_.ShouldLeave(home, true));
  EXPECT_TRUE(replicas_.ShouldLeave(home, true));
  EXPECT_TRUE(replicas_.ShouldLeave(home, true));
  EXPECT_FALSE(replicas_.ShouldLeave(home, false));
}

}  // namespace
}  // namespace warpline
