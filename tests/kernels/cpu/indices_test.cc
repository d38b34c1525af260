// Indices in memory that changes while they are read, as a client that shares it may let them. Here the
// result itself is written over them.
#include "kernels/cpu/indices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/cpu/launchers.h"

namespace warpline::cpu {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 16;

TEST(IndicesTest, ATakeReadsNothingByAnIndexThatHasChangedSinceTheCheck) {
  const std::vector<std::int64_t> x = {kFar, -kFar, kFar};
  std::vector<std::int64_t> memory = {0, 1, 2, 0};
  TakeProblem problem{
      .dtype = DType::kI64, .index_dtype = DType::kI64, .shape = {3}, .axis_size = 3, .axis_stride = 1};
  problem.index_strides[0] = 1;
  Operands operands;
  operands.in[0] = x.data();
  operands.in[1] = memory.data();
  operands.out = memory.data() + 1;
  Take(problem, operands);
  EXPECT_THAT(memory, ElementsAre(0, kFar, 0, kFar));
}

TEST(IndicesTest, ATakeOfRunsReadsNothingByAnIndexThatHasChangedSinceTheCheck) {
  const std::vector<std::int64_t> x(6, kFar);
  std::vector<std::int64_t> memory = {0, 1, 2, 0, 0, 0, 0};
  TakeProblem problem{
      .dtype = DType::kI64, .index_dtype = DType::kI64, .shape = {3, 2}, .axis_size = 3, .axis_stride = 2};
  problem.index_strides[0] = 1;
  problem.x_strides[1] = 1;
  Operands operands;
  operands.in[0] = x.data();
  operands.in[1] = memory.data();
  operands.out = memory.data() + 1;
  Take(problem, operands);
  EXPECT_THAT(memory, ElementsAre(0, kFar, kFar, 0, 0, 0, 0));
}

TEST(IndicesTest, APutWritesNothingByAnIndexThatHasChangedSinceTheCheck) {
  const std::vector<std::int64_t> x(4, kFar), values(4, 7);
  std::vector<std::int64_t> memory = {0, 1, 2, 3};
  PutProblem problem{
      .dtype = DType::kI64, .index_dtype = DType::kI64, .shape = {4}, .axis = 0, .index_shape = {4}};
  problem.index_strides[0] = problem.value_strides[0] = 1;
  Operands operands;
  operands.in[0] = x.data();
  operands.in[1] = memory.data();
  operands.in[2] = values.data();
  operands.out = memory.data();  // the copy of x comes first
  Put(problem, operands);
  EXPECT_THAT(memory, Each(kFar));
}

TEST(IndicesTest, ASearchReadsNothingByAPlaceThatHasChangedSinceTheCheck) {
  const std::vector<std::int64_t> x = {3, 5, 9}, needles = {4, 6, 9};
  std::vector<std::int64_t> memory = {0, 1, 2};
  const SearchProblem problem{
      .dtype = DType::kI64, .count = 3, .needles = 3, .has_sorter = true, .sorter_dtype = DType::kI64};
  Operands operands;
  operands.in[0] = x.data();
  operands.in[1] = needles.data();
  operands.in[2] = memory.data();
  operands.out = memory.data();
  Search(problem, operands);
  for (const std::int64_t place : memory) {
    EXPECT_GE(place, 0);
    EXPECT_LE(place, 3);
  }
}

TEST(IndicesTest, PlacesOfIndicesOutOfRangeAreNone) {
  for (const std::int64_t index :
       {std::int64_t{3}, std::int64_t{-4}, kFar, -kFar, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(PlaceOf(index, 3), -1) << index;
  }
  EXPECT_EQ(PlaceOf(-3, 3), 0);
  EXPECT_EQ(PlaceOf(2, 3), 2);
}

}  // namespace
}  // namespace warpline::cpu
