#include "client/src/region_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace warpline::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::warpline::testing::StatusIs;

constexpr std::size_t kBytes = std::size_t{1} << 20;

TEST(RegionAllocatorTest, AlignsBlocksBySize) {
  RegionAllocator allocator(kBytes);
  EXPECT_EQ(*allocator.Allocate(1), 0u);
  EXPECT_EQ(*allocator.Allocate(300), 256u);
  EXPECT_EQ(*allocator.Allocate(4096), 4096u);
  EXPECT_EQ(*allocator.Allocate(0), 768u);  // in the gap that alignment has left
  EXPECT_EQ(allocator.free_bytes(), kBytes - 256 - 512 - 4096 - 256);
}

TEST(RegionAllocatorTest, TakesTheSmallestGapThatIsLargeEnough) {
  RegionAllocator allocator(kBytes);
  const std::size_t large = *allocator.Allocate(64 << 10), wall = *allocator.Allocate(4096);
  const std::size_t small = *allocator.Allocate(8 << 10), other_wall = *allocator.Allocate(4096);
  allocator.Free(large);
  allocator.Free(small);
  EXPECT_EQ(*allocator.Allocate(8 << 10), small);
  EXPECT_EQ(*allocator.Allocate(8 << 10), large);
  EXPECT_NE(wall, other_wall);
}

TEST(RegionAllocatorTest, MakesOneGapOfNeighbours) {
  RegionAllocator allocator(4 * 4096);
  std::vector<std::size_t> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(*allocator.Allocate(4096));
  for (int i : {1, 3, 2, 0}) allocator.Free(blocks[static_cast<std::size_t>(i)]);
  EXPECT_EQ(allocator.free_bytes(), 4 * 4096u);
  EXPECT_EQ(*allocator.Allocate(4 * 4096), 0u);
}

TEST(RegionAllocatorTest, TellsTheFiguresWhenItIsFull) {
  RegionAllocator allocator(3 * 4096);
  const std::size_t first = *allocator.Allocate(4096), second = *allocator.Allocate(4096);
  allocator.Free(first);
  EXPECT_THAT(allocator.Allocate(2 * 4096),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("8192 bytes"), HasSubstr("of its 12288 bytes, 8192 are free"),
                             HasSubstr("at most 4096"))));
  EXPECT_TRUE(allocator.Pin(second, 4096).has_value());
  allocator.Free(second);
  EXPECT_THAT(allocator.Allocate(2 * 4096),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("4096 become free when the calls")));
  // Sizes near the greatest must not wrap around.
  EXPECT_THAT(allocator.Allocate(~std::size_t{0}), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(RegionAllocatorTest, KeepsPinnedBlocks) {
  RegionAllocator allocator(4096);
  const std::size_t block = *allocator.Allocate(4096);
  EXPECT_EQ(allocator.Pin(100, 200), block);
  EXPECT_EQ(allocator.Pin(0, 4096), block);
  allocator.Free(block);
  EXPECT_EQ(allocator.busy_bytes(), 4096u);
  EXPECT_FALSE(allocator.Pin(0, 1).has_value()) << "its owner has gone";
  allocator.Unpin(block);
  EXPECT_EQ(allocator.free_bytes(), 0u);
  allocator.Unpin(block);
  EXPECT_EQ(allocator.free_bytes(), 4096u);
  EXPECT_EQ(allocator.busy_bytes(), 0u);
}

TEST(RegionAllocatorTest, PinsNothingAcrossTheEndsOfABlock) {
  RegionAllocator allocator(kBytes);
  EXPECT_FALSE(allocator.Pin(0, 1).has_value());
  const std::size_t first = *allocator.Allocate(512), second = *allocator.Allocate(512);
  EXPECT_EQ(second, first + 512);
  EXPECT_FALSE(allocator.Pin(first + 256, 512).has_value());
  EXPECT_FALSE(allocator.Pin(second + 512, 1).has_value());
  EXPECT_EQ(allocator.Pin(first + 256, 256), first);
}

TEST(RegionAllocatorTest, NeverGivesAByteToTwo) {
  RegionAllocator allocator(kBytes);
  std::mt19937 random(7);
  std::map<std::size_t, std::size_t> blocks;  // bytes, by offset
  std::size_t used = 0;
  for (int step = 0; step < 20'000; ++step) {
    const bool frees = !blocks.empty() && random() % 2 == 0;
    if (frees) {
      auto block = blocks.begin();
      std::advance(block, random() % blocks.size());
      allocator.Free(block->first);
      used -= block->second;
      blocks.erase(block);
      continue;
    }
    const std::size_t bytes = 1 + random() % (random() % 4 == 0 ? 100'000 : 2'000);
    const absl::StatusOr<std::size_t> offset = allocator.Allocate(bytes);
    if (!offset.ok()) continue;
    const std::size_t rounded = (bytes + 255) / 256 * 256;
    ASSERT_LE(*offset + rounded, kBytes);
    const auto next = blocks.lower_bound(*offset);
    if (next != blocks.end()) {
      ASSERT_LE(*offset + rounded, next->first);
    }
    if (next != blocks.begin()) {
      ASSERT_LE(std::prev(next)->first + std::prev(next)->second, *offset);
    }
    blocks[*offset] = rounded;
    used += rounded;
    ASSERT_EQ(allocator.free_bytes(), kBytes - used);
  }
  for (const auto& [offset, bytes] : blocks) allocator.Free(offset);
  EXPECT_EQ(*allocator.Allocate(kBytes), 0u);
}

}  // namespace
}  // namespace warpline::client
