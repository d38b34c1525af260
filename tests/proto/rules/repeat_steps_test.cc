// Operations that move or repeat elements: the copies that they become, and what is refused.
#include "proto/rules/repeat_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "proto/rules/views.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using testing::HasSubstr;
using testing::IsOk;

// The steps that rules add, with their results numbered from 10 on.
class RepeatStepsTest : public ::testing::Test {
 protected:
  template <typename Rules, typename Options>
  absl::StatusOr<Operand> Run(Rules rules, const Operand& x, const Options& options) {
    return rules(x, options, [this](ConvertedStep step, const std::string&, int into) {
      const int tensor = into < 0 ? 10 + static_cast<int>(steps_.size()) : into;
      steps_.push_back(std::move(step));
      return absl::StatusOr<Operand>(DenseOperand("", tensor, steps_.back().output));
    });
  }
  template <typename Rules, typename Options>
  void ExpectRefused(Rules rules, const Operand& x, const Options& options, const std::string& message) {
    const auto result = Run(rules, x, options);
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(message));
  }
  const MapProblem& MapOf(std::size_t step) const { return std::get<MapProblem>(steps_[step].step.problem); }

  std::vector<ConvertedStep> steps_;
};

Operand Matrix() { return RowsOperand("inputs[0]", 0, DType::kF32, {4, 5}, 0); }

absl::StatusOr<Operand> PadWithZeros(const Operand& x, const v1::PadStep& pad, EmitStep emit) {
  return PadSteps(x, nullptr, pad, emit);
}

TEST_F(RepeatStepsTest, ARollIsTwoCopiesIntoOneTensor) {
  v1::RollStep roll;
  roll.add_shifts(-1);
  roll.add_axes(1);
  const auto y = Run(RollSteps, Matrix(), roll);
  ASSERT_THAT(y, IsOk());
  EXPECT_EQ(y->shape, (Shape{4, 5}));
  ASSERT_EQ(steps_.size(), 2u);
  EXPECT_EQ(MapOf(0).shape, (Shape{4, 4}));
  EXPECT_EQ(MapOf(1).shape, (Shape{4, 1}));
}

TEST_F(RepeatStepsTest, ARollByWholeAxesMovesNothing) {
  v1::RollStep roll;
  roll.add_shifts(-10);
  roll.add_axes(1);
  ASSERT_THAT(Run(RollSteps, Matrix(), roll), IsOk());
  EXPECT_TRUE(steps_.empty());
}

TEST_F(RepeatStepsTest, ATileOfAnAxisIsOneCopy) {
  v1::TileStep tile;
  tile.add_counts(3);
  tile.add_counts(1);
  const auto y = Run(TileSteps, Matrix(), tile);
  ASSERT_THAT(y, IsOk());
  EXPECT_EQ(y->shape, (Shape{12, 5}));
  ASSERT_EQ(steps_.size(), 1u);
  EXPECT_EQ(MapOf(0).shape, (Shape{1, 3, 20}));
}

TEST_F(RepeatStepsTest, ARepeatWithoutAnAxisGivesOneRow) {
  v1::RepeatStep repeat;
  repeat.set_count(2);
  const auto y = Run(RepeatSteps, Matrix(), repeat);
  ASSERT_THAT(y, IsOk());
  EXPECT_EQ(y->shape, (Shape{40}));
}

TEST_F(RepeatStepsTest, APadFillsAndCopies) {
  v1::PadStep pad;
  pad.add_before(1);
  pad.add_after(2);
  pad.add_axes(-1);
  const auto y = Run(PadWithZeros, Matrix(), pad);
  ASSERT_THAT(y, IsOk());
  EXPECT_EQ(y->shape, (Shape{4, 8}));
  pad.clear_before();  // none
  EXPECT_EQ(Run(PadWithZeros, Matrix(), pad)->shape, (Shape{4, 7}));
  ASSERT_EQ(steps_.size(), 4u);
  EXPECT_TRUE(MapOf(0).inputs.empty());
  EXPECT_EQ(MapOf(1).shape, (Shape{4, 5}));
}

TEST_F(RepeatStepsTest, BadOptionsAreRefused) {
  v1::RollStep roll;
  ExpectRefused(RollSteps, Matrix(), roll, "shifts: has 0 numbers; without axes it has 1");
  roll.add_axes(0);
  ExpectRefused(RollSteps, Matrix(), roll, "shifts: has 0 numbers, but there are 1 axes");
  roll.add_shifts(1);
  roll.set_axes(0, 2);
  ExpectRefused(RollSteps, Matrix(), roll, "axes[0]: ");

  v1::TileStep tile;
  tile.add_counts(-1);
  ExpectRefused(TileSteps, Matrix(), tile, "counts[0]: -1; it must be at least 0");
  tile.set_counts(0, std::int64_t{1} << 61);
  ExpectRefused(TileSteps, Matrix(), tile, "counts[0]: ");
  for (int i = 0; i < 8; ++i) tile.add_counts(1);
  ExpectRefused(TileSteps, Matrix(), tile, "counts: has 9 numbers; the limit is 8");

  v1::RepeatStep repeat;
  repeat.set_count(std::int64_t{1} << 62);
  ExpectRefused(RepeatSteps, Matrix(), repeat, "count: ");
  repeat.set_axis(-3);
  ExpectRefused(RepeatSteps, Matrix(), repeat, "axis: ");

  v1::PadStep pad;
  pad.add_before(1);
  pad.add_after(0);
  pad.add_after(0);
  ExpectRefused(PadWithZeros, Matrix(), pad, "after: has 2 numbers, but before has 1");
  pad.clear_after();
  pad.add_after(-1);
  ExpectRefused(PadWithZeros, Matrix(), pad, "after[0]: -1; it must be in [0, 2^60]");
  pad.set_after(0, std::int64_t{1} << 60);
  ExpectRefused(PadWithZeros, Matrix(), pad, "before: ");
  pad.set_after(0, 0);
  pad.add_before(0);
  pad.add_after(0);
  pad.add_axes(1);
  pad.add_axes(-1);
  ExpectRefused(PadWithZeros, Matrix(), pad, "axes: axis 1 is named twice");
}

TEST_F(RepeatStepsTest, ValuesOfAPadAreBroadcast) {
  const Operand values = RowsOperand("inputs[1]", 1, DType::kF32, {4, 1}, 0);
  const auto with_values = [&](const Operand& given) {
    return [&](const Operand& x, const v1::PadStep& pad, EmitStep emit) {
      return PadSteps(x, &given, pad, emit);
    };
  };
  v1::PadStep pad;
  pad.add_before(1);
  pad.add_after(1);
  pad.add_axes(1);
  ASSERT_THAT(Run(with_values(values), Matrix(), pad), IsOk());
  EXPECT_EQ(MapOf(0).shape, (Shape{4, 7}));
  ExpectRefused(with_values(RowsOperand("inputs[1]", 1, DType::kF32, {3, 1}, 0)), Matrix(), pad,
                "inputs[1].shape: [3,1] cannot be broadcast to the result, [4,7]");
  ExpectRefused(with_values(RowsOperand("inputs[1]", 1, DType::kI32, {}, 0)), Matrix(), pad,
                "inputs[1].data_type: ");
}

}  // namespace
}  // namespace warpline
