#include "server/device/kept_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpline {
namespace {

using ::testing::ElementsAre;

class KeptBlocksTest : public ::testing::Test {
 protected:
  KeptBlocks::Block BlockOf(int number, std::size_t bytes) { return {&memory_[number], bytes}; }
  int NumberOf(const KeptBlocks::Block& block) const {
    return static_cast<int>(static_cast<const char*>(block.address) - memory_);
  }
  std::vector<int> NumbersOf(const std::vector<KeptBlocks::Block>& blocks) const {
    std::vector<int> numbers;
    for (const KeptBlocks::Block& block : blocks) numbers.push_back(NumberOf(block));
    return numbers;
  }

  char memory_[16] = {};
  KeptBlocks kept_{/*max_blocks=*/3, /*max_bytes=*/100};
};

TEST_F(KeptBlocksTest, GivesOutTheLatestOfExactlyThatSize) {
  for (int number : {0, 1}) EXPECT_THAT(kept_.Keep(BlockOf(number, 10)), ElementsAre());
  EXPECT_THAT(kept_.Keep(BlockOf(2, 20)), ElementsAre());
  EXPECT_TRUE(kept_.Has(10));
  EXPECT_FALSE(kept_.Has(11));
  EXPECT_FALSE(kept_.Take(11).has_value());
  for (int expected : {1, 0}) {
    const auto block = kept_.Take(10);
    ASSERT_TRUE(block.has_value());
    EXPECT_EQ(NumberOf(*block), expected);
  }
  EXPECT_FALSE(kept_.Take(10).has_value());
  EXPECT_TRUE(kept_.Has(20));
}

TEST_F(KeptBlocksTest, DropsTheOldestWhenThereAreTooMany) {
  for (int number : {0, 1, 2}) kept_.Keep(BlockOf(number, 10));
  EXPECT_THAT(NumbersOf(kept_.Keep(BlockOf(3, 10))), ElementsAre(0));
  EXPECT_THAT(NumbersOf(kept_.TakeAll()), ElementsAre(3, 2, 1));
}

TEST_F(KeptBlocksTest, DropsTheOldestWhenTheyTakeTooMuch) {
  kept_.Keep(BlockOf(0, 30));
  kept_.Keep(BlockOf(1, 40));
  EXPECT_THAT(NumbersOf(kept_.Keep(BlockOf(2, 100))), ElementsAre(0, 1));
  EXPECT_THAT(NumbersOf(kept_.Keep(BlockOf(3, 101))), ElementsAre(3)) << "more than all may take";
  EXPECT_TRUE(kept_.Has(100));
}

TEST_F(KeptBlocksTest, CountsWhatWasTakenOut) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(kept_.Keep(BlockOf(0, 60)), ElementsAre());
    ASSERT_TRUE(kept_.Take(60).has_value());
    EXPECT_THAT(kept_.Keep(BlockOf(0, 60)), ElementsAre());
    EXPECT_THAT(NumbersOf(kept_.TakeAll()), ElementsAre(0));
  }
}

}  // namespace
}  // namespace warpline
