#include "server/memory/staging_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace warpline {
namespace {

class StagingPoolTest : public ::testing::Test {
 protected:
  Metrics metrics_;
  std::vector<std::byte> memory_{std::size_t{1} << 20};
  StagingPool pool_{memory_, metrics_};
};

TEST_F(StagingPoolTest, GivesSlotsOfTheSizeAskedFor) {
  auto pair = pool_.TryAcquire(5000, 1);
  ASSERT_TRUE(pair.has_value());
  EXPECT_EQ(pair->input.bytes().size(), 5000u);
  EXPECT_EQ(pair->output.bytes().size(), 1u);
  EXPECT_EQ(pool_.used_bytes(), 8192u + 4096u);
}

TEST_F(StagingPoolTest, GivesBothSlotsOrNone) {
  auto first = pool_.TryAcquire(512 << 10, 256 << 10);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(pool_.TryAcquire(256 << 10, 256 << 10).has_value());
  EXPECT_EQ(pool_.used_bytes(), std::size_t{768} << 10);
}

TEST_F(StagingPoolTest, MergesWhatComesBack) {
  std::vector<StagingPool::Pair> pairs;
  while (auto pair = pool_.TryAcquire(4096, 4096)) pairs.push_back(std::move(*pair));
  EXPECT_EQ(pairs.size(), 128u);
  pairs.clear();
  EXPECT_EQ(pool_.used_bytes(), 0u);
  EXPECT_TRUE(pool_.TryAcquire(1 << 20, 0).has_value());
}

TEST_F(StagingPoolTest, EmptySlotsTakeNothing) {
  auto pair = pool_.TryAcquire(0, 0);
  ASSERT_TRUE(pair.has_value());
  EXPECT_EQ(pool_.used_bytes(), 0u);
}

TEST_F(StagingPoolTest, TellsTheListenerOfEveryRelease) {
  int releases = 0;
  pool_.SetReleaseListener([&] { ++releases; });
  pool_.TryAcquire(1, 1).reset();
  EXPECT_EQ(releases, 2);
}

TEST_F(StagingPoolTest, KnowsWhatCanNeverFit) {
  EXPECT_TRUE(pool_.CanEverHold(512 << 10, 512 << 10));
  EXPECT_FALSE(pool_.CanEverHold((512 << 10) + 1, 1));
}

TEST(StagingPoolOddSizeTest, UsesAllPagesOfARegionThatIsNoPowerOfTwo) {
  Metrics metrics;
  std::vector<std::byte> memory(7 * 4096 + 100);
  StagingPool pool(memory, metrics);
  EXPECT_EQ(pool.total_bytes(), 7u * 4096);
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
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 == 0 || held.empty()) {
      auto pair = pool_.TryAcquire(1 + random() % 60000, 0);
      if (!pair.has_value()) continue;
      const auto mark = static_cast<std::byte>(i);
      std::memset(pair->input.bytes().data(), static_cast<int>(mark), pair->input.bytes().size());
      held.push_back({std::move(pair->input), mark});
    } else {
      const std::size_t victim = random() % held.size();
      const auto bytes = held[victim].slot.bytes();
      ASSERT_EQ(bytes.front(), held[victim].mark);
      ASSERT_EQ(bytes.back(), held[victim].mark);
      std::swap(held[victim], held.back());
      held.pop_back();
    }
  }
  held.clear();
  EXPECT_EQ(pool_.used_bytes(), 0u);
}

}  // namespace
}  // namespace warpline
