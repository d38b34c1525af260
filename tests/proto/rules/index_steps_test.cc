// Operations that read places from an operand: what they become, and what is refused.
#include "proto/rules/index_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/rules/views.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using testing::HasSubstr;
using testing::IsOk;

// The steps that rules add, with their results numbered from 10 on.
struct IndexSteps {
  std::vector<ConvertedStep> all;

  absl::StatusOr<Operand> Add(ConvertedStep step, int into) {
    const int tensor = into < 0 ? 10 + static_cast<int>(all.size()) : into;
    all.push_back(step);
    return DenseOperand("", tensor, step.output);
  }
  template <typename F>
  absl::StatusOr<Operand> Run(F rules) {
    return rules(
        [&](ConvertedStep step, const std::string&, int into) { return Add(std::move(step), into); });
  }
};

Operand Indexed(const Shape& shape) { return RowsOperand("inputs[0]", 0, DType::kF32, shape, 0); }
Operand Places(const Shape& shape, DType dtype = DType::kI64) {
  return RowsOperand("inputs[1]", 1, dtype, shape, 0);
}
Operand Written(const Shape& shape) { return RowsOperand("inputs[2]", 2, DType::kF32, shape, 0); }

absl::StatusOr<Operand> TakeOf(const Operand& x, const Operand& indices, int axis, IndexSteps& steps) {
  return steps.Run([&](EmitStep emit) { return TakeSteps(x, indices, axis, "", emit); });
}

TEST(IndexStepsTest, TakePutsTheAxesOfTheIndicesInPlaceOfOne) {
  IndexSteps steps;
  const auto y = TakeOf(Indexed({4, 5, 6}), Places({2, 3}), 1, steps);
  ASSERT_THAT(y, IsOk());
  EXPECT_EQ(y->shape, (Shape{4, 2, 3, 6}));
  ASSERT_EQ(steps.all.size(), 1u);
  const auto& take = std::get<TakeProblem>(steps.all[0].step.problem);
  EXPECT_EQ(take.x_strides, (Strides{30, 0, 0, 1}));
  EXPECT_EQ(take.index_strides, (Strides{0, 3, 1, 0}));
  EXPECT_EQ(take.axis_size, 5);
  EXPECT_EQ(take.axis_stride, 6);
}

TEST(IndexStepsTest, TakeReadsViewsOfXAndCopiesThoseOfIndices) {
  IndexSteps steps;
  Operand reversed = Indexed({4, 5});
  reversed.strides = {-5, 1};
  reversed.offset = 15;
  Operand every_other = Places({3});
  every_other.strides = {2};
  ASSERT_THAT(TakeOf(reversed, every_other, 0, steps), IsOk());
  ASSERT_EQ(steps.all.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<MapProblem>(steps.all[0].step.problem));
  const auto& take = std::get<TakeProblem>(steps.all[1].step.problem);
  EXPECT_EQ(take.axis_stride, -5);
  EXPECT_EQ(take.index_strides[0], 1);
  EXPECT_EQ(steps.all[1].step.input_offsets, (std::vector<std::size_t>{60, 0}));
}

TEST(IndexStepsTest, TakeRefusesWhatItCannotIndex) {
  IndexSteps steps;
  const auto error = [&](const Operand& x, const Operand& indices, int axis) {
    return std::string(TakeOf(x, indices, axis, steps).status().message());
  };
  EXPECT_THAT(error(Indexed({4}), Places({2}, DType::kU8), 0),
              HasSubstr("inputs[1].data_type: an index does not take u8; supported: i32, i64"));
  EXPECT_THAT(error(Indexed({4}), Places({2}), 1), HasSubstr("axis: 1 is outside of [-1, 1)"));
  EXPECT_THAT(error(Indexed({3, 0}), Places({2}), 1), HasSubstr("no elements that an index could name"));
  EXPECT_THAT(error(Indexed({1, 1, 1, 1, 1}), Places({1, 1, 1, 1, 1}), 0), HasSubstr("has more than 8"));
  EXPECT_THAT(TakeOf(Indexed({3, 0}), Places({0}), 1, steps), IsOk());
}

TEST(IndexStepsTest, AlongAnAxisTheOthersAreBroadcast) {
  IndexSteps steps;
  const auto take = [&](const Operand& x, const Operand& indices, int axis) {
    return steps.Run([&](EmitStep emit) { return TakeAlongAxisSteps(x, indices, axis, "", emit); });
  };
  const auto y = take(Indexed({4, 1, 6}), Places({1, 7, 2}), 2);
  ASSERT_THAT(y, IsOk());
  EXPECT_EQ(y->shape, (Shape{4, 7, 2}));
  const auto& problem = std::get<TakeProblem>(steps.all[0].step.problem);
  EXPECT_EQ(problem.x_strides, (Strides{6, 0, 0}));
  EXPECT_EQ(problem.index_strides, (Strides{0, 2, 1}));
  EXPECT_THAT(std::string(take(Indexed({4, 5}), Places({3, 2}), 1).status().message()),
              HasSubstr("inputs[1].shape: the axis 0 has size 3, which cannot be broadcast with 4"));
  EXPECT_THAT(std::string(take(Indexed({4, 5}), Places({3}), 1).status().message()),
              HasSubstr("inputs[1].shape: rank 1, but inputs[0] has rank 2"));
}

TEST(IndexStepsTest, PutsBroadcastValuesToTheIndices) {
  IndexSteps steps;
  const auto put = [&](const Operand& x, const Operand& indices, const Operand& values) {
    return steps.Run([&](EmitStep emit) { return PutAlongAxisSteps(x, indices, values, 0, "", emit); });
  };
  const auto y = put(Indexed({4, 5}), Places({2, 1}), Written({5}));
  ASSERT_THAT(y, IsOk());
  EXPECT_EQ(y->shape, (Shape{4, 5}));
  const auto& problem = std::get<PutProblem>(steps.all[0].step.problem);
  EXPECT_EQ(problem.index_shape, (Shape{2, 5}));
  EXPECT_EQ(problem.index_strides, (Strides{1, 0}));
  EXPECT_EQ(problem.value_strides, (Strides{0, 1}));
  EXPECT_THAT(std::string(put(Indexed({4, 5}), Places({2, 3}), Written({5})).status().message()),
              HasSubstr("inputs[1].shape: axis 1 has size 3, but that of inputs[0] is 5"));
  EXPECT_THAT(std::string(put(Indexed({4, 5}), Places({2, 5}), Written({3, 5})).status().message()),
              HasSubstr("inputs[2].shape: [3,5] cannot be broadcast to the indices, [2,5]"));
}

TEST(IndexStepsTest, MasksTakeTheFirstAxesAndLeaveASizeOpen) {
  IndexSteps steps;
  const auto compress = [&](const Operand& mask) {
    return steps.Run([&](EmitStep emit) { return CompressSteps(Indexed({4, 5, 6}), mask, "", emit); });
  };
  const auto y = compress(Places({4, 5}, DType::kBool));
  ASSERT_THAT(y, IsOk());
  EXPECT_EQ(y->shape, (Shape{20, 6}));
  EXPECT_EQ(y->count_tensor, y->tensor + 1);
  const auto& problem = std::get<CompressProblem>(steps.all[0].step.problem);
  EXPECT_EQ(problem.rows, 20);
  EXPECT_EQ(problem.width, 6);
  EXPECT_THAT(std::string(compress(Places({5}, DType::kBool)).status().message()),
              HasSubstr("inputs[1].shape: [5]; it must have the first axes of inputs[0], [4,5,6]"));
  EXPECT_THAT(std::string(compress(Places({4}, DType::kU8)).status().message()),
              HasSubstr("inputs[1].data_type: u8, but a mask has bool"));
}

TEST(IndexStepsTest, ASliceIsWrittenIntoACopy) {
  IndexSteps steps;
  v1::SetSliceStep set;
  set.add_starts(-1);
  set.add_ends(-5);
  set.add_steps(-2);
  const auto y = steps.Run([&](EmitStep emit) {
    return SetSliceSteps(Indexed({4, 5}), Written({5}), set, emit);
  });
  ASSERT_THAT(y, IsOk());
  ASSERT_EQ(steps.all.size(), 2u);
  EXPECT_EQ(y->tensor, 10);
  const auto& part = std::get<MapProblem>(steps.all[1].step.problem);
  EXPECT_EQ(part.shape, (Shape{2, 5}));
  EXPECT_EQ(part.OutStrides(), (Strides{-10, 1}));
  EXPECT_EQ(steps.all[1].step.output_offset, 15u * 4);
  const auto refused = steps.Run([&](EmitStep emit) {
    return SetSliceSteps(Indexed({4, 5}), Written({3, 5}), set, emit);
  });
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("[3,5] cannot be broadcast to [2,5]"));
}

}  // namespace
}  // namespace warpline
