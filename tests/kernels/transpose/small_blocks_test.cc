#include "kernels/transpose/small_blocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/kernels/transpose/problem.h"

namespace warpline {
namespace {

std::optional<SmallBlocks> Plan(const std::vector<std::int64_t>& dims, const std::vector<int>& perm,
                                std::size_t element_bytes = 1, std::int64_t row_stride = 0,
                                std::uintptr_t in = 256, std::uintptr_t out = 512) {
  DeviceTraits traits;
  traits.multiprocessors = 1;  // so that small problems suit
  return PlanSmallBlocks(Canonicalize(MakeTranspose(dims, perm, row_stride)), element_bytes, traits,
                         reinterpret_cast<const void*>(in), reinterpret_cast<const void*>(out));
}

// Returns where the element of the output at `index` comes from, by the definition.
std::int64_t SourceOf(const std::vector<std::int64_t>& dims, const std::vector<int>& perm,
                      std::int64_t index) {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  std::int64_t source = 0;
  for (std::size_t i = dims.size(); i-- > 0;) {
    source += index % dims[perm[i]] * strides[perm[i]];
    index /= dims[perm[i]];
  }
  return source;
}

// Moves the boxes as the kernel does: `tile` has what is at each place.
void ExpectMoves(const std::vector<std::int64_t>& dims, const std::vector<int>& perm, int element_bytes = 1) {
  SCOPED_TRACE(testing::PrintToString(dims) + " " + testing::PrintToString(perm));
  const auto blocks = Plan(dims, perm, element_bytes);
  ASSERT_TRUE(blocks.has_value());
  std::int64_t count = 1;
  for (std::int64_t dim : dims) count *= dim;
  std::vector<int> written(count, 0);
  for (std::int64_t box = 0; box < blocks->boxes; ++box) {
    const BlocksAt at = LocateBlocks(*blocks, box);
    ASSERT_EQ(at.in % kBlockWord, 0);
    ASSERT_EQ(at.out % kBlockWord, 0);
    std::vector<std::int64_t> tile(blocks->tile_bytes, -1);
    for (std::uint32_t byte = 0; byte < at.bytes; ++byte) tile.at(blocks->PlaceOf(byte)) = at.in + byte;
    ASSERT_EQ(at.bytes % element_bytes, 0u);
    for (std::uint32_t i = 0; i < at.bytes / element_bytes; ++i) {
      const std::int64_t index = at.out / element_bytes + i;
      ASSERT_EQ(tile.at(blocks->PlaceOfElement(i, element_bytes)),
                SourceOf(dims, perm, index) * element_bytes);
      ++written.at(index);
    }
  }
  EXPECT_EQ(written, std::vector<int>(count, 1)) << "how often elements are written";
}

TEST(SmallBlocksTest, MoveEachElementOnce) {
  ExpectMoves({102, 65, 65}, {0, 2, 1});  // boxes of four, so that they begin with words
  ExpectMoves({201, 50, 52}, {0, 2, 1});  // rows that are padded, and a shorter box at the end
  ExpectMoves({4001, 13, 7}, {0, 2, 1});
  ExpectMoves({6, 5, 100, 44}, {1, 0, 3, 2});  // blocks that change places
  ExpectMoves({301, 4, 13, 30}, {0, 3, 1, 2});
  ExpectMoves({401, 5, 3, 7, 11}, {0, 4, 2, 3, 1});
  ExpectMoves({301, 33, 35}, {0, 2, 1}, 2);
  ExpectMoves({6, 5, 100, 44}, {1, 0, 3, 2}, 2);
  ExpectMoves({401, 17, 16}, {0, 2, 1}, 4);
}

TEST(SmallBlocksTest, BoxesBeginWithSectorsWhereThatLeavesThemLarge) {
  EXPECT_EQ(Plan({20000, 13, 7}, {0, 2, 1})->box_bytes % 32, 0u);
  EXPECT_EQ(Plan({3000, 65, 65}, {0, 2, 1})->box_bytes, 4 * 65 * 65u);
}

TEST(SmallBlocksTest, BoxesFit) {
  int plans = 0;
  for (std::int64_t x = 2; x < 140; x += 3) {
    for (std::int64_t y = 2; y < 140; y += 5) {
      for (std::size_t element_bytes : {1, 2, 4}) {
        const auto blocks = Plan({100000, y, x}, {0, 2, 1}, element_bytes);
        if (!blocks.has_value()) continue;
        ++plans;
        EXPECT_LE(blocks->box_bytes, kWordsOfBox * kBlockThreads * kBlockWord);
        EXPECT_LE(2 * blocks->tile_bytes + kBoxesInTurn * sizeof(BlocksAt), 48u << 10);
        EXPECT_GE(blocks->tile_bytes, blocks->box_bytes);
      }
    }
  }
  EXPECT_GT(plans, 1000);
}

TEST(SmallBlocksTest, OthersAreNotPlanned) {
  EXPECT_TRUE(Plan({3000, 65, 64}, {0, 2, 1}).has_value());
  EXPECT_FALSE(Plan({3000, 65, 64}, {0, 2, 1}, 1, /*row_stride=*/68).has_value());
  EXPECT_FALSE(Plan({3000, 650, 64}, {0, 2, 1}).has_value());       // too large
  EXPECT_FALSE(Plan({3000, 65, 64}, {2, 1, 0}).has_value());        // no blocks
  EXPECT_FALSE(Plan({50, 65, 64}, {0, 2, 1}).has_value());          // too few
  EXPECT_FALSE(Plan({30, 20, 101, 43}, {1, 0, 3, 2}).has_value());  // unaligned
  EXPECT_FALSE(Plan({3000, 65, 64}, {0, 2, 1}, 8).has_value());
  EXPECT_FALSE(Plan({3000, 65, 64}, {0, 2, 1}, 1, 0, /*in=*/257).has_value());
  EXPECT_FALSE(Plan({3000, 65, 64}, {0, 2, 1}, 2, 0, 256, /*out=*/514).has_value());
  EXPECT_FALSE(Plan({3000, 20, 13, 7}, {1, 0, 3, 2}, 4).has_value());  // boxes of 364 bytes
}

}  // namespace
}  // namespace warpline
