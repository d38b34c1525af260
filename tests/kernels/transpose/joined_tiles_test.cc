// Tiles whose sides are several axes, walked on the host as CTAs do: together they move every element, once,
// to where the problem wants it.
#include "kernels/transpose/joined_tiles.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/gather.h"
#include "tests/kernels/transpose/problem.h"

namespace warpline {
namespace {

std::optional<JoinedTiles> Join(const std::vector<std::int64_t>& dims, const std::vector<int>& perm,
                                std::int64_t row_stride = 0, std::int64_t tile = 64) {
  return JoinSides(Canonicalize(MakeTranspose(dims, perm, row_stride)), /*element_bytes=*/1, tile, tile);
}

TEST(JoinedTilesTest, MovesEveryElementOfRandomProblemsOnce) {
  std::mt19937 random(3);
  const auto draw = [&](std::int64_t least, std::int64_t greatest) {
    return std::uniform_int_distribution<std::int64_t>(least, greatest)(random);
  };
  constexpr std::int64_t kBytes = 2;
  int walked = 0;
  for (int round = 0; round < 2000; ++round) {
    const int rank = static_cast<int>(draw(2, 6));
    const std::int64_t longest = std::vector<std::int64_t>{100, 25, 12, 8, 6}[rank - 2];
    std::vector<std::int64_t> dims(rank);
    for (std::int64_t& dim : dims) dim = draw(1, longest);
    std::vector<int> perm(rank);
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random);
    const std::int64_t row_stride = draw(0, 2) == 0 ? dims.back() + draw(1, 5) : 0;
    const TransposeProblem problem = MakeTranspose(dims, perm, row_stride);
    const std::int64_t tile_x = draw(1, 40), tile_y = draw(1, 40);
    std::optional<JoinedTiles> tiles = JoinSides(Canonicalize(problem), kBytes, tile_x, tile_y);
    if (!tiles.has_value()) continue;
    ++walked;
    TileWalk& walk = tiles->walk;
    walk.CutInto(tile_x, tile_y);
    const std::vector<std::int64_t> want = Gather(problem);
    std::vector<std::int64_t> got(want.size(), -1);
    for (std::int64_t index = 0; index < walk.Tiles(); ++index) {
      const TileOrigin origin = LocateTileInBands(walk, index, tile_x, tile_y);
      for (std::int64_t x = origin.x; x < std::min(walk.nx, origin.x + tile_x); ++x) {
        for (std::int64_t y = origin.y; y < std::min(walk.ny, origin.y + tile_y); ++y) {
          const std::int64_t out =
              origin.out + y + OffsetAt(tiles->x, static_cast<std::uint32_t>(x)) / kBytes;
          ASSERT_TRUE(out >= 0 && out < static_cast<std::int64_t>(got.size())) << out;
          ASSERT_EQ(got[out], -1) << "written twice: " << out;
          got[out] = origin.in + x + OffsetAt(tiles->y, static_cast<std::uint32_t>(y)) / kBytes;
        }
      }
    }
    ASSERT_EQ(got, want) << ToString(problem.shape) << " rows " << row_stride << " round " << round;
  }
  EXPECT_GT(walked, 1000);
}

TEST(JoinedTilesTest, TakesTheAxesThatFillTiles) {
  // The output's rows are all but the last axis.
  const std::optional<JoinedTiles> reversed = Join({4, 8, 16, 640}, {3, 2, 1, 0});
  ASSERT_TRUE(reversed.has_value());
  EXPECT_EQ(reversed->walk.nx, 640);
  EXPECT_EQ(reversed->walk.ny, 4 * 8 * 16);
  EXPECT_EQ(reversed->walk.batch.rank, 0);
  // No more axes than it takes; others are a batch.
  const std::optional<JoinedTiles> batch = Join({6, 64, 3, 64}, {3, 0, 2, 1});
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->walk.nx, 64);
  EXPECT_EQ(batch->walk.ny, 64);
  EXPECT_EQ(batch->walk.batch.rank, 2);
}

TEST(JoinedTilesTest, AnAxisIsOnOneSide) {
  // The input ends with 8 x 8; the output does with the first of these.
  const std::optional<JoinedTiles> tiles = Join({64, 8, 8}, {0, 2, 1});
  ASSERT_TRUE(tiles.has_value());
  EXPECT_EQ(tiles->walk.nx, 8);
  EXPECT_EQ(tiles->walk.ny, 8);
  EXPECT_EQ(tiles->walk.batch.Count(), 64);
}

TEST(JoinedTilesTest, PaddedRowsAreSidesOfTheirOwn) {
  EXPECT_EQ(Join({9, 4, 16}, {1, 2, 0})->walk.nx, 64);
  const std::optional<JoinedTiles> padded = Join({9, 4, 16}, {1, 2, 0}, /*row_stride=*/17);
  ASSERT_TRUE(padded.has_value());
  EXPECT_EQ(padded->walk.nx, 16);
}

TEST(JoinedTilesTest, RowsThatStayRowsHaveNoSides) {
  EXPECT_FALSE(Join({8, 9, 64}, {1, 0, 2}).has_value());
  EXPECT_FALSE(Join({64}, {0}).has_value());
  EXPECT_FALSE(Join({36, 1}, {1, 0}, /*row_stride=*/4).has_value());  // nothing is contiguous
  EXPECT_FALSE(Join({36, 0}, {1, 0}).has_value());
}

TEST(JoinedTilesTest, OffsetsHave32Bits) {
  EXPECT_TRUE(Join({1 << 15, 1 << 16}, {1, 0}).has_value());
  EXPECT_TRUE(Join({(1 << 16) - 1, 1 << 16}, {1, 0}).has_value());
  EXPECT_FALSE(Join({1 << 16, 1 << 16}, {1, 0}).has_value());
  EXPECT_FALSE(Join({3, 1 << 15, 1 << 15}, {0, 2, 1}, /*row_stride=*/1 << 16).has_value());
}

}  // namespace
}  // namespace warpline
