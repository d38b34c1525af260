// Tiles of a transposition, walked on the host as CTAs do: together they move every element, once, to where
// the problem wants it.
#include "kernels/transpose/tile_walk.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/gather.h"
#include "tests/kernels/transpose/problem.h"

namespace warpline {
namespace {

void ExpectMovesAll(const TransposeProblem& problem, std::int64_t tile_x, std::int64_t tile_y) {
  std::string what = ToString(problem.shape) + " perm";
  for (int i = 0; i < problem.shape.rank; ++i) what += " " + std::to_string(problem.perm[i]);
  what += " rows " + std::to_string(problem.row_stride) + " tile " + std::to_string(tile_x) + " x " +
          std::to_string(tile_y);
  TileWalk walk = MakeTileWalk(Canonicalize(problem));
  walk.CutInto(tile_x, tile_y);
  const std::vector<std::int64_t> want = Gather(problem);
  for (const auto locate : {LocateTile, LocateTileInBands}) {
    std::vector<std::int64_t> got(want.size(), -1);
    for (std::int64_t index = 0; index < walk.Tiles(); ++index) {
      const TileOrigin origin = locate(walk, index, tile_x, tile_y);
      for (std::int64_t x = origin.x; x < std::min(walk.nx, origin.x + tile_x); ++x) {
        for (std::int64_t y = origin.y; y < std::min(walk.ny, origin.y + tile_y); ++y) {
          const std::int64_t out = origin.out + x * walk.out_stride_x + y * walk.out_stride_y;
          ASSERT_TRUE(out >= 0 && out < static_cast<std::int64_t>(got.size())) << what << ": " << out;
          ASSERT_EQ(got[out], -1) << what << ": written twice: " << out;
          got[out] = origin.in + x * walk.in_stride_x + y * walk.in_stride_y;
        }
      }
    }
    EXPECT_EQ(got, want) << what;
  }
}

TEST(TileWalkTest, TakesRemaindersOfShortAndOfLongNumbers) {
  constexpr std::int64_t k32 = std::int64_t{1} << 32, k62 = std::int64_t{1} << 62;
  for (const std::int64_t index : {std::int64_t{0}, k32 - 1, k32, k32 + 1, k62 + 12345}) {
    for (const std::int64_t divisor : {std::int64_t{1}, std::int64_t{7}, k32 - 1, k32, k32 + 3}) {
      std::int64_t quotient = index;
      EXPECT_EQ(TakeRemainder(quotient, divisor), index % divisor) << index << " by " << divisor;
      EXPECT_EQ(quotient, index / divisor) << index << " by " << divisor;
    }
  }
}

TEST(TileWalkTest, MovesEveryElementOfRandomProblemsOnce) {
  std::mt19937 random(1);
  const auto draw = [&](std::int64_t least, std::int64_t greatest) {
    return std::uniform_int_distribution<std::int64_t>(least, greatest)(random);
  };
  for (int round = 0; round < 3000; ++round) {
    const int rank = static_cast<int>(draw(1, 5));
    // Up to a few thousand elements; now and then an axis of one or none.
    const std::int64_t longest = std::vector<std::int64_t>{3000, 60, 16, 8, 5}[rank - 1];
    std::vector<std::int64_t> dims(rank);
    for (std::int64_t& dim : dims) dim = draw(0, 9) == 0 ? draw(0, 1) : draw(1, longest);
    std::vector<int> perm(rank);
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random);
    const std::int64_t row_stride = draw(0, 2) == 0 ? dims.back() + draw(1, 5) : 0;
    ExpectMovesAll(MakeTranspose(dims, perm, row_stride), draw(1, 40), draw(1, 40));
    if (HasFailure()) return;
  }
}

TEST(TileWalkTest, MovesEveryElementOfWideMatricesOnce) {
  for (const std::int64_t width : {257, 1023, 1024, 1025}) {
    for (const std::int64_t height : {1, 3, 4, 37}) {
      for (const std::int64_t tile : {1, 2, 3}) {
        ExpectMovesAll(MakeTranspose({height, width}, {1, 0}), tile, 4);
        ExpectMovesAll(MakeTranspose({3, height, width}, {0, 2, 1}), tile, 4);
        ExpectMovesAll(MakeTranspose({2, height, 3, width}, {2, 3, 0, 1}, width + 1), tile, 4);
      }
    }
  }
}

TEST(TileWalkTest, TilesOfAVeryWideMatrixGoDownBands) {
  const auto next = [](const std::vector<std::int64_t>& dims, std::int64_t index) {
    TileWalk walk = MakeTileWalk(Canonicalize(MakeTranspose(dims, {1, 0})));
    walk.CutInto(32, 32);
    return LocateTileInBands(walk, index, 32, 32);
  };
  // After 32 tiles comes the next row of them, after all rows the next band.
  EXPECT_EQ(next({100, 100000}, 32).x, 0);
  EXPECT_EQ(next({100, 100000}, 32).y, 32);
  EXPECT_EQ(next({100, 100000}, 4 * 32).x, 32 * 32);
  EXPECT_EQ(next({100, 100000}, 4 * 32).y, 0);
  // A matrix of 128 tiles across, row by row.
  EXPECT_EQ(next({100, 4096}, 32).x, 32 * 32);
}

TEST(TileWalkTest, TheEmptyProblemHasNoTiles) {
  for (const TransposeProblem& problem :
       {MakeTranspose({0}, {0}), MakeTranspose({0, 5}, {1, 0}), MakeTranspose({5, 0}, {1, 0}, 3),
        MakeTranspose({3, 0, 5}, {2, 0, 1})}) {
    TileWalk walk = MakeTileWalk(Canonicalize(problem));
    walk.CutInto(32, 32);
    EXPECT_EQ(walk.Tiles(), 0) << ToString(problem.shape);
  }
}

TEST(TileWalkTest, TheScalarIsOneTile) { ExpectMovesAll(MakeTranspose({}, {}), 32, 32); }

TEST(TileWalkTest, RunsAlongTheRowsOfInputAndOutput) {
  const TileWalk walk = MakeTileWalk(Canonicalize(MakeTranspose({2, 30, 5, 70}, {2, 0, 3, 1})));
  EXPECT_EQ(walk.nx, 70);
  EXPECT_EQ(walk.in_stride_x, 1);
  EXPECT_EQ(walk.ny, 30);
  EXPECT_EQ(walk.out_stride_y, 1);
  EXPECT_EQ(walk.batch.rank, 2);
}

TEST(TileWalkTest, TakesVectorsOnlyIfEveryRowIsAligned) {
  const auto takes = [](const TransposeProblem& problem, std::int64_t elements) {
    return MakeTileWalk(Canonicalize(problem)).TakesVectors(elements);
  };
  EXPECT_TRUE(takes(MakeTranspose({36, 20}, {1, 0}), 4));
  EXPECT_FALSE(takes(MakeTranspose({36, 22}, {1, 0}), 4));
  EXPECT_TRUE(takes(MakeTranspose({36, 22}, {1, 0}), 2));
  EXPECT_FALSE(takes(MakeTranspose({34, 20}, {1, 0}), 4));
  EXPECT_TRUE(takes(MakeTranspose({36, 20}, {1, 0}, 24), 4));
  EXPECT_FALSE(takes(MakeTranspose({36, 20}, {1, 0}, 23), 4));
  EXPECT_TRUE(takes(MakeTranspose({3, 36, 20}, {0, 2, 1}), 4));  // a batch of any size
  // The rows of the tile are 2 * 22 elements apart, but those of the second matrix begin at an odd one.
  EXPECT_FALSE(takes(MakeTranspose({36, 2, 20}, {1, 2, 0}, 22), 4));
  EXPECT_FALSE(takes(MakeTranspose({3, 36, 20}, {1, 0, 2}), 4));  // rows stay rows
  EXPECT_FALSE(takes(MakeTranspose({400}, {0}), 4));
  EXPECT_FALSE(takes(MakeTranspose({36, 1}, {1, 0}, 4), 4));  // nothing is contiguous
}

}  // namespace
}  // namespace warpline
