// Scans, sorts and searches: what they become, and what is refused.
#include "proto/rules/order_steps.h"

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
struct OrderSteps {
  std::vector<ConvertedStep> all;

  template <typename F>
  auto Run(F rules) {
    return rules([&](ConvertedStep step, const std::string&, int) -> absl::StatusOr<Operand> {
      all.push_back(step);
      return DenseOperand("", 9 + 2 * static_cast<int>(all.size()), step.output);
    });
  }
  std::vector<Op> Ops() const {
    std::vector<Op> ops;
    for (const ConvertedStep& step : all) ops.push_back(OpOf(step.step.problem));
    return ops;
  }
};

Operand Ordered(DType dtype, const Shape& shape) { return RowsOperand("inputs[0]", 0, dtype, shape, 0); }

absl::StatusOr<Operand> ScanOf(const Operand& x, v1::ScanOp op, OrderSteps& steps,
                               v1::DataType type = v1::DATA_TYPE_UNSPECIFIED, int axis = 1) {
  v1::ScanStep scan;
  scan.set_op(op);
  scan.set_axis(axis);
  scan.set_out_data_type(type);
  return steps.Run([&](EmitStep emit) { return ScanSteps(x, scan, "", emit); });
}

TEST(OrderStepsTest, ScansCastToTheTypesTheyComputeIn) {
  struct Case {
    DType x;
    v1::ScanOp op;
    v1::DataType given;
    DType computed, result;
    std::size_t steps;
  };
  for (const Case& c : {Case{DType::kF32, v1::SCAN_OP_SUM, {}, DType::kF32, DType::kF32, 1},
                        Case{DType::kF16, v1::SCAN_OP_PROD, {}, DType::kF32, DType::kF16, 3},
                        Case{DType::kI8, v1::SCAN_OP_SUM, {}, DType::kI64, DType::kI64, 2},
                        Case{DType::kBool, v1::SCAN_OP_SUM, {}, DType::kI64, DType::kI64, 2},
                        Case{DType::kU16, v1::SCAN_OP_SUM, {}, DType::kU64, DType::kU64, 2},
                        Case{DType::kU16, v1::SCAN_OP_MAX, {}, DType::kU64, DType::kU16, 3},
                        Case{DType::kI32, v1::SCAN_OP_SUM, v1::DATA_TYPE_I32, DType::kI64, DType::kI32, 3},
                        Case{DType::kI32, v1::SCAN_OP_SUM, v1::DATA_TYPE_F64, DType::kF64, DType::kF64, 2},
                        Case{DType::kF32, v1::SCAN_OP_SUM, v1::DATA_TYPE_F16, DType::kF32, DType::kF16, 4},
                        Case{DType::kC64, v1::SCAN_OP_SUM, {}, DType::kF32, DType::kC64, 1}}) {
    OrderSteps steps;
    const auto y = ScanOf(Ordered(c.x, {2, 3, 4}), c.op, steps, c.given);
    ASSERT_THAT(y, IsOk()) << Name(c.x);
    EXPECT_EQ(y->dtype, c.result) << Name(c.x);
    EXPECT_EQ(steps.all.size(), c.steps) << Name(c.x);
    const auto scan = std::find_if(steps.all.begin(), steps.all.end(), [](const ConvertedStep& step) {
      return std::holds_alternative<ScanProblem>(step.step.problem);
    });
    ASSERT_NE(scan, steps.all.end());
    const auto& problem = std::get<ScanProblem>(scan->step.problem);
    EXPECT_EQ(problem.dtype, c.computed);
    EXPECT_EQ(problem.outer, 2);
    EXPECT_EQ(problem.count, 3);
    EXPECT_EQ(problem.inner, c.x == DType::kC64 ? 8 : 4);
  }
}

TEST(OrderStepsTest, ScansRefuseOtherTypes) {
  OrderSteps steps;
  const auto error = [&](DType x, v1::ScanOp op, v1::DataType type = v1::DATA_TYPE_UNSPECIFIED) {
    return std::string(ScanOf(Ordered(x, {2, 3}), op, steps, type).status().message());
  };
  EXPECT_THAT(error(DType::kF8E5M2, v1::SCAN_OP_SUM), HasSubstr("scan does not take f8e5m2"));
  EXPECT_THAT(error(DType::kF32, v1::SCAN_OP_UNSPECIFIED), HasSubstr("op: number 0 is none of sum (1)"));
  EXPECT_THAT(error(DType::kF32, v1::SCAN_OP_SUM, v1::DATA_TYPE_I64),
              HasSubstr("out_data_type: i64: a running sum of f32 is a floating-point number"));
  EXPECT_THAT(error(DType::kI32, v1::SCAN_OP_MIN, v1::DATA_TYPE_I64), HasSubstr("has its data type"));
  EXPECT_THAT(error(DType::kI32, v1::SCAN_OP_SUM, v1::DATA_TYPE_C64), HasSubstr("is no complex number"));
  EXPECT_THAT(error(DType::kI32, v1::SCAN_OP_SUM, v1::DATA_TYPE_BOOL),
              HasSubstr("bool: the result is a number"));
  EXPECT_THAT(error(DType::kC64, v1::SCAN_OP_MAX), HasSubstr("have no order"));
  EXPECT_EQ(ScanOf(Ordered(DType::kC64, {2, 3}), v1::SCAN_OP_PROD, steps).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(OrderStepsTest, SortsMoveTheAxisToTheEndAndBack) {
  OrderSteps steps;
  v1::SortStep sort;
  sort.set_axis(0);
  sort.set_indices("places");
  const auto results = steps.Run([&](EmitStep emit) {
    return SortSteps(Ordered(DType::kF32, {7, 3, 2}), sort, "", emit);
  });
  ASSERT_THAT(results, IsOk());
  EXPECT_THAT(steps.Ops(), testing::ElementsAre(Op::kTranspose, Op::kSort));
  const auto& problem = std::get<SortProblem>(steps.all[1].step.problem);
  EXPECT_EQ(problem.rows, 6);
  EXPECT_EQ(problem.count, 7);
  EXPECT_EQ(problem.taken, 7);
  EXPECT_EQ(results->own.shape, (Shape{7, 3, 2}));
  EXPECT_EQ(results->own.strides, (Strides{1, 14, 7}));
  ASSERT_TRUE(results->further.has_value());
  EXPECT_EQ(results->further->dtype, DType::kI64);
  EXPECT_EQ(results->further->tensor, results->own.tensor + 1);
  EXPECT_EQ(results->further->strides, results->own.strides);
}

TEST(OrderStepsTest, PlacesOfASelectionAscendAndAreThereOnce) {
  OrderSteps steps;
  v1::ArgsortStep argsort;
  for (const std::int64_t k : {4, 0, 4}) argsort.add_kth(k);
  ASSERT_THAT(
      steps.Run([&](EmitStep emit) { return ArgsortSteps(Ordered(DType::kF32, {5}), argsort, "", emit); }),
      IsOk());
  EXPECT_THAT(std::get<SortProblem>(steps.all[0].step.problem).Kth(), testing::ElementsAre(0, 4));
}

TEST(OrderStepsTest, ASelectionTakesSixteenPlacesOfTheAxis) {
  const auto error = [](std::int64_t k, int count) {
    OrderSteps steps;
    v1::SortStep sort;
    for (int i = 0; i < count; ++i) sort.add_kth(k);
    const auto results =
        steps.Run([&](EmitStep emit) { return SortSteps(Ordered(DType::kF32, {5}), sort, "", emit); });
    return std::string(results.status().message());
  };
  EXPECT_EQ(error(4, 16), "");
  EXPECT_EQ(error(4, 17), "kth: 17 places; at most 16 are selected in one step");
  EXPECT_EQ(error(5, 1), "kth[0]: 5 is outside of [0, 5), the size of the axis");
  EXPECT_EQ(error(-1, 2), "kth[0]: -1 is outside of [0, 5), the size of the axis");
}

TEST(OrderStepsTest, TheLargestHaveNaNFirst) {
  for (const bool smallest : {false, true}) {
    OrderSteps steps;
    v1::TopkStep topk;
    topk.set_k(2);
    topk.set_smallest(smallest);
    const auto results = steps.Run([&](EmitStep emit) {
      return TopkSteps(Ordered(DType::kF32, {3, 5}), topk, "", emit);
    });
    ASSERT_THAT(results, IsOk());
    EXPECT_EQ(results->own.shape, (Shape{3, 2}));
    EXPECT_FALSE(results->further.has_value());
    const auto& problem = std::get<SortProblem>(steps.all[0].step.problem);
    EXPECT_EQ(problem.taken, 2);
    EXPECT_EQ(problem.descending, !smallest);
    EXPECT_EQ(problem.nan_first, !smallest);
  }
}

TEST(OrderStepsTest, SearchesTakeAVectorAndASorterOfItsShape) {
  OrderSteps steps;
  const auto search = [&](const Operand& x1, const Operand& x2, const Operand* sorter) {
    return steps.Run([&](EmitStep emit) { return SearchsortedSteps(x1, x2, sorter, {}, "", emit); });
  };
  const Operand needles = RowsOperand("inputs[1]", 1, DType::kF32, {2, 2}, 0);
  const Operand sorter = RowsOperand("inputs[2]", 2, DType::kI32, {4}, 0);
  const auto y = search(Ordered(DType::kF32, {5}), needles, nullptr);
  ASSERT_THAT(y, IsOk());
  EXPECT_EQ(y->shape, (Shape{2, 2}));
  EXPECT_EQ(y->dtype, DType::kI64);
  EXPECT_THAT(std::string(search(Ordered(DType::kF32, {5}), needles, &sorter).status().message()),
              HasSubstr("inputs[2].shape: [4], but inputs[0] is [5]"));
  EXPECT_THAT(std::string(search(Ordered(DType::kF32, {5, 1}), needles, nullptr).status().message()),
              HasSubstr("inputs[0].shape: rank 2; a vector is needed"));
  EXPECT_THAT(std::string(search(Ordered(DType::kF64, {5}), needles, nullptr).status().message()),
              HasSubstr("inputs[1].data_type: f32, but inputs[0] has f64"));
}

}  // namespace
}  // namespace warpline
