#include "server/memory/staging_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

namespace warpline {
namespace {

constexpr std::size_t kUnit = StagingPool::kTinySlotBytes;

class StagingPoolTest : public ::testing::Test {
 protected:
  Metrics metrics_;
  std::vector<std::byte> memory_{12 * kUnit};
  StagingPool pool_{memory_, 4 * kUnit, metrics_};  // and 8 for large slots
};

TEST_F(StagingPoolTest, GivesSlotsOfTheSizeAskedFor) {
  auto pair = pool_.TryAcquire(5000, 1);
  ASSERT_TRUE(pair.has_value());
  EXPECT_EQ(pair->input.bytes().size(), 5000u);
  EXPECT_EQ(pair->output.bytes().size(), 1u);
  EXPECT_EQ(pool_.used_bytes(), 8192u + 4096u);
}

TEST_F(StagingPoolTest, GivesBothSlotsOrNone) {
  auto first = pool_.TryAcquire(4 * kUnit, 2 * kUnit);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(pool_.TryAcquire(2 * kUnit, 2 * kUnit).has_value());
  EXPECT_EQ(pool_.used_bytes(), 6 * kUnit);
}

TEST_F(StagingPoolTest, TinySlotsHaveMemoryOfTheirOwn) {
  auto large = pool_.TryAcquire(4 * kUnit, 4 * kUnit);
  ASSERT_TRUE(large.has_value());
  EXPECT_FALSE(pool_.TryAcquire(kUnit + 1, 0).has_value());
  std::vector<StagingPool::Pair> tiny;
  while (auto pair = pool_.TryAcquire(kUnit, kUnit)) tiny.push_back(std::move(*pair));
  EXPECT_EQ(tiny.size(), 2u);
}

TEST_F(StagingPoolTest, TinySlotsOverflowIntoTheRest) {
  std::vector<StagingPool::Pair> tiny;
  while (auto pair = pool_.TryAcquire(kUnit, 0)) tiny.push_back(std::move(*pair));
  EXPECT_EQ(tiny.size(), 12u);
}

TEST_F(StagingPoolTest, MergesWhatComesBack) {
  std::vector<StagingPool::Pair> pairs;
  while (auto pair = pool_.TryAcquire(4096, 4096)) pairs.push_back(std::move(*pair));
  EXPECT_GT(pairs.size(), 64u);
  pairs.clear();
  EXPECT_EQ(pool_.used_bytes(), 0u);
  EXPECT_TRUE(pool_.TryAcquire(8 * kUnit, 4096).has_value());
}

TEST_F(StagingPoolTest, EmptySlotsTakeNothing) {
  auto pair = pool_.TryAcquire(0, 0);
  ASSERT_TRUE(pair.has_value());
  EXPECT_EQ(pool_.used_bytes(), 0u);
}

TEST_F(StagingPoolTest, TellsTheListenerOfEveryReleaseOfALargeSlot) {
  int releases = 0;
  pool_.SetReleaseListener([&] { ++releases; });
  auto pair = pool_.TryAcquire(2 * kUnit, 2 * kUnit);
  const std::uint64_t before = pool_.returns();
  pair->input.Release();
  EXPECT_EQ(releases, 1);
  pair->output.Release();
  EXPECT_EQ(releases, 2);
  EXPECT_EQ(pool_.returns(), before + 2);
}

TEST_F(StagingPoolTest, TellsTheListenerOfATinySlotOnlyIfOneWasRefused) {
  int releases = 0;
  pool_.SetReleaseListener([&] { ++releases; });
  const auto large = pool_.TryAcquire(4 * kUnit, 4 * kUnit);
  std::vector<StagingPool::Pair> tiny;
  for (int i = 0; i < 4; ++i) tiny.push_back(*pool_.TryAcquire(kUnit, 0));
  tiny.pop_back();
  EXPECT_FALSE(pool_.TryAcquire(2 * kUnit, 0).has_value()) << "a tiny slot would not help";
  tiny.pop_back();
  EXPECT_EQ(releases, 0);
  for (int i = 0; i < 2; ++i) tiny.push_back(*pool_.TryAcquire(kUnit, 0));
  EXPECT_FALSE(pool_.TryAcquire(kUnit, 0).has_value());
  const std::uint64_t before = pool_.returns();
  tiny.pop_back();
  EXPECT_EQ(releases, 1);
  EXPECT_EQ(pool_.returns(), before + 1);
  tiny.pop_back();
  EXPECT_EQ(releases, 1) << "nobody has asked since";
}

TEST_F(StagingPoolTest, KnowsWhatCanNeverFit) {
  EXPECT_TRUE(pool_.CanEverHold(4 * kUnit, 4 * kUnit));
  EXPECT_FALSE(pool_.CanEverHold(4 * kUnit + 1, 2 * kUnit));
  EXPECT_TRUE(pool_.CanEverHold(8 * kUnit, 1));  // the second one from the slab
}

TEST_F(StagingPoolTest, AClaimKeepsWhatComesBackFromOthers) {
  auto first = pool_.TryAcquire(4 * kUnit, 0);
  auto second = pool_.TryAcquire(4 * kUnit, 0);
  StagingPool::Claim claim(pool_, 8 * kUnit, 0);
  EXPECT_FALSE(claim.TryTake().has_value());
  first.reset();
  EXPECT_FALSE(pool_.TryAcquire(2 * kUnit, 0).has_value());
  EXPECT_FALSE(claim.TryTake().has_value());
  second.reset();
  const auto taken = claim.TryTake();
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->input.bytes().size(), 8 * kUnit);
}

TEST_F(StagingPoolTest, AClaimDoesNotWaitForAReaderWhereOthersWouldWaitToo) {
  auto first = pool_.TryAcquire(4 * kUnit, 0);
  auto second = pool_.TryAcquire(4 * kUnit, 0);
  first->input.MarkHeld();
  StagingPool::Claim claim(pool_, 8 * kUnit, 0);
  EXPECT_FALSE(claim.TryTake().has_value());
  second.reset();
  EXPECT_TRUE(pool_.TryAcquire(4 * kUnit, 0).has_value());
  first.reset();
  EXPECT_TRUE(claim.TryTake().has_value());
}

TEST_F(StagingPoolTest, AClaimOfTwoSlotsDoesNotWaitForItself) {
  auto held = pool_.TryAcquire(2 * kUnit, 0);
  held->input.MarkHeld();
  StagingPool::Claim claim(pool_, 4 * kUnit, 4 * kUnit);
  EXPECT_FALSE(claim.TryTake().has_value());
  EXPECT_EQ(pool_.used_bytes(), 2 * kUnit);  // the one slot that there is for it is left to others
  held.reset();
  EXPECT_TRUE(claim.TryTake().has_value());
}

TEST_F(StagingPoolTest, AClaimThatIsGivenUpLeavesNothingBehind) {
  auto first = pool_.TryAcquire(4 * kUnit, 4 * kUnit);
  {
    StagingPool::Claim claim(pool_, 4 * kUnit, 4 * kUnit);
    EXPECT_FALSE(claim.TryTake().has_value());
    first->input.Release();
    EXPECT_FALSE(claim.TryTake().has_value());
  }
  EXPECT_TRUE(pool_.TryAcquire(4 * kUnit, 0).has_value());
  first.reset();
  EXPECT_EQ(pool_.used_bytes(), 0u);
  EXPECT_TRUE(pool_.TryAcquire(8 * kUnit, 0).has_value());
}

TEST(StagingPoolOddSizeTest, UsesAllOfARegionThatIsNoPowerOfTwo) {
  Metrics metrics;
  std::vector<std::byte> memory(7 * kUnit + 100);
  StagingPool pool(memory, 0, metrics);
  EXPECT_EQ(pool.total_bytes(), 7 * kUnit);
  std::vector<StagingPool::Pair> pairs;
  while (auto pair = pool.TryAcquire(4096, 0)) pairs.push_back(std::move(*pair));
  EXPECT_EQ(pairs.size(), 7u);
}

TEST_F(StagingPoolTest, SlotsNeverOverlapUnderRandomUse) {
  std::mt19937 random(1);
  struct Held {
    StagingSlot slot;
    std::byte mark;
  };
  std::vector<Held> held;
  std::unique_ptr<StagingPool::Claim> claim;
  int claimed = 0;
  const auto keep = [&](StagingPool::Pair pair, int i) {
    for (StagingSlot* slot : {&pair.input, &pair.output}) {
      if (slot->bytes().empty()) continue;
      const auto mark = static_cast<std::byte>(i);
      std::memset(slot->bytes().data(), static_cast<int>(mark), slot->bytes().size());
      if (random() % 4 == 0) slot->MarkHeld();
      held.push_back({std::move(*slot), mark});
    }
  };
  for (int i = 0; i < 20000; ++i) {
    switch (random() % 8) {
      case 0:
        if (claim == nullptr) {
          claim = std::make_unique<StagingPool::Claim>(pool_, random() % (4 * kUnit), random() % (4 * kUnit));
        } else if (auto pair = claim->TryTake(); pair.has_value()) {
          keep(std::move(*pair), i);
          claim.reset();
          ++claimed;
        } else if (random() % 16 == 0) {
          claim.reset();
        }
        break;
      case 1:
      case 2:
      case 3:
        if (auto pair = pool_.TryAcquire(1 + random() % (2 * kUnit), random() % 9000); pair.has_value()) {
          keep(std::move(*pair), i);
        }
        break;
      default:
        if (held.empty()) break;
        const std::size_t victim = random() % held.size();
        // Each byte is that before it: with a sanitizer, a loop over them takes half a minute.
        const std::span<const std::byte> bytes = held[victim].slot.bytes();
        ASSERT_EQ(bytes.front(), held[victim].mark);
        ASSERT_EQ(std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1), 0);
        std::swap(held[victim], held.back());
        held.pop_back();
    }
  }
  EXPECT_GT(claimed, 100);
  claim.reset();
  held.clear();
  EXPECT_EQ(pool_.used_bytes(), 0u);
  EXPECT_TRUE(pool_.TryAcquire(8 * kUnit, kUnit).has_value());
}

}  // namespace
}  // namespace warpline
