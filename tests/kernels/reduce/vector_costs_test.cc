#include "kernels/reduce/vector_costs.h"

#include "gtest/gtest.h"

namespace warpline {
namespace {

TEST(VectorCostsTest, WholeWavesCostWhatTheirWorkDoes) {
  EXPECT_EQ(WaveCost(0, 528), 1);
  for (const std::int64_t waves : {1, 2, 9}) EXPECT_DOUBLE_EQ(WaveCost(528 * waves, 528), 1);
}

TEST(VectorCostsTest, ALittleMoreThanAWaveCostsMoreThanHalfOfOne) {
  EXPECT_GT(WaveCost(540, 528), 1.2);
  EXPECT_LT(WaveCost(300, 528), WaveCost(540, 528));
  EXPECT_GT(WaveCost(300, 528), 1);
  EXPECT_GT(WaveCost(1, 528), 50);  // one CTA has little of the memory's rate
}

TEST(VectorCostsTest, TheLastWaveCountsLessTheMoreThereAre) {
  for (std::int64_t waves = 1; waves < 20; ++waves) {
    EXPECT_GT(WaveCost(528 * waves + 1, 528), WaveCost(528 * (waves + 1) + 1, 528)) << waves;
    EXPECT_GT(WaveCost(528 * waves + 1, 528), WaveCost(528 * waves + 500, 528)) << waves;
  }
}

TEST(VectorCostsTest, ThreadsThatHaveFewLoadsCostMore) {
  EXPECT_GT(FillCost(4, 8), FillCost(4, 16));
  EXPECT_GT(FillCost(16, 16), FillCost(4, 16));
  EXPECT_LT(FillCost(4, 1000), 1.01);
  EXPECT_EQ(FillCost(4, 0), FillCost(4, 1));
}

TEST(VectorCostsTest, TilesAreSharedWhereThatGainsMoreThanALaunch) {
  const auto split_of = [](std::int64_t tiles, std::int64_t bytes) {
    VectorPlan plan;
    plan.tiles = tiles;
    plan.steps = 1 << 20;
    SplitTiles(bytes, 4, 132, &plan);
    EXPECT_GE(plan.chunk * plan.split, plan.steps);
    EXPECT_LE(plan.split == 1 ? 1 : plan.tiles * plan.split, 528);
    return plan.split;
  };
  EXPECT_EQ(split_of(1, 1 << 20), 16);  // 64 KiB each
  EXPECT_EQ(split_of(1, 1 << 30), 528);
  EXPECT_EQ(split_of(64, 4 << 20), 8);
  EXPECT_EQ(split_of(128, 128 << 10), 1);  // 16 MiB: two microseconds are half of that
  EXPECT_EQ(split_of(528, 4 << 20), 1);
  EXPECT_EQ(split_of(0, 0), 1);
}

}  // namespace
}  // namespace warpline
