#include "server/rpc/codec/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/rules/tensor_rules.h"
#include "tests/server/rpc/codec/scanned_requests.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::ElementsAre;
using ::warpline::testing::IsOk;

TEST(ConvertTest, TransposeSwapsTheLastTwoAxesByDefault) {
  Transpose transpose;
  transpose.request.set_variant("naive_read");
  const auto conversion = Convert(transpose);
  ASSERT_THAT(conversion, IsOk());
  const Program& program = conversion->program;
  EXPECT_EQ(program.num_inputs, 1);
  ASSERT_EQ(program.tensors.size(), 2u);
  EXPECT_EQ(program.tensors[0].shape, (Shape{2, 3}));
  EXPECT_EQ(program.tensors[0].bytes, 24u);
  EXPECT_EQ(OutputOf(*conversion).shape, (Shape{3, 2}));
  ASSERT_EQ(program.steps.size(), 1u);
  EXPECT_THAT(program.steps[0].inputs, ElementsAre(0));
  EXPECT_EQ(program.steps[0].output, 1);
  EXPECT_EQ(program.steps[0].variant, "naive_read");
  EXPECT_THAT(program.outputs, ElementsAre(1));
  EXPECT_THAT(PayloadsOf(*conversion), ElementsAre(0));
}

TEST(ConvertTest, PermutationIsTakenOver) {
  Transpose transpose;
  transpose.request.clear_x();
  transpose.payloads.clear();
  transpose.Fill(transpose.request.mutable_x(), v1::DATA_TYPE_F32, {2, 3, 4}, 96);
  for (int axis : {2, 0, 1}) transpose.request.add_perm(axis);
  const auto conversion = Convert(transpose);
  ASSERT_THAT(conversion, IsOk());
  const TransposeProblem& problem = ProblemOf<TransposeProblem>(*conversion);
  EXPECT_EQ(problem.perm[0], 2);
  EXPECT_EQ(problem.perm[1], 0);
  EXPECT_EQ(problem.perm[2], 1);
  EXPECT_EQ(OutputOf(*conversion).shape, (Shape{4, 2, 3}));
}

TEST(ConvertTest, ScalarAndVectorTransposeToThemselves) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {6}}) {
    Transpose transpose;
    transpose.request.clear_x();
    transpose.payloads.clear();
    transpose.Fill(transpose.request.mutable_x(), v1::DATA_TYPE_I64, shape, shape.empty() ? 8 : 48);
    const auto conversion = Convert(transpose);
    ASSERT_THAT(conversion, IsOk());
    EXPECT_EQ(OutputOf(*conversion).shape, conversion->program.tensors[0].shape);
    EXPECT_EQ(OutputOf(*conversion).bytes, conversion->program.tensors[0].bytes);
  }
}

TEST(ConvertTest, EmptyArrayNeedsNoSource) {
  Transpose transpose;
  transpose.request.clear_x();
  transpose.Fill(transpose.request.mutable_x(), v1::DATA_TYPE_F64, {3, 0}, -1);
  const auto conversion = Convert(transpose);
  ASSERT_THAT(conversion, IsOk());
  ASSERT_EQ(conversion->sources.size(), 1u);
  EXPECT_FALSE(conversion->sources[0].payload.has_value());
  EXPECT_EQ(OutputOf(*conversion).shape, (Shape{0, 3}));
}

TEST(ConvertTest, StrideOfTheLastAxisIsDense) {
  Transpose transpose;
  transpose.request.mutable_x()->set_row_stride(3);
  EXPECT_THAT(Convert(transpose), IsOk());
}

TEST(ConvertTest, AutoIsTheServersChoice) {
  Transpose transpose;
  transpose.request.set_variant("auto");
  EXPECT_EQ(Convert(transpose)->program.steps[0].variant, "");
  transpose.request.set_variant(std::string(64, 'v'));
  EXPECT_EQ(Convert(transpose)->program.steps[0].variant.size(), 64u);
}

TEST(ConvertTest, RowStridesAreTakenOverEverywhere) {
  Transpose transpose;
  transpose.request.mutable_x()->set_row_stride(5);
  transpose.SetPayloadBytes(0, 40);
  EXPECT_EQ(ProblemOf<TransposeProblem>(*Convert(transpose)).row_stride, 5);
  Reduce reduce(v1::DATA_TYPE_F32, {2, 3}, 40);
  reduce.request.mutable_x()->set_row_stride(5);
  EXPECT_EQ(ProblemOf<ReduceProblem>(*Convert(reduce)).row_stride, 5);
}

TEST(ConvertTest, ThePaddingOfTheLastRowMayBeLeftOut) {
  // 2 rows of 3 f32, 5 apart.
  for (const std::int64_t bytes : {32, 40}) {
    Reduce reduce(v1::DATA_TYPE_F32, {2, 3}, bytes);
    reduce.request.mutable_x()->set_row_stride(5);
    const auto conversion = Convert(reduce);
    ASSERT_THAT(conversion, IsOk()) << bytes;
    EXPECT_EQ(conversion->program.tensors[0].bytes, 32u) << bytes;
    EXPECT_EQ(conversion->sources[0].payload, 0u) << bytes;
  }
}

TEST(ConvertTest, RowsWithoutElementsMayBringTheirPadding) {
  for (const std::size_t bytes : {0, 40}) {
    Transpose transpose;
    transpose.request.mutable_x()->set_shape(1, 0);
    transpose.request.mutable_x()->set_row_stride(5);
    transpose.SetPayloadBytes(0, bytes);
    const auto conversion = Convert(transpose);
    ASSERT_THAT(conversion, IsOk()) << bytes;
    EXPECT_FALSE(conversion->sources[0].payload.has_value()) << bytes;
  }
}

TEST(ConvertTest, ResultTypeAndDdofOfAReduction) {
  Reduce reduce;
  reduce.request.set_op(v1::REDUCE_OP_VAR);
  reduce.request.set_ddof(2);
  reduce.request.set_out_data_type(v1::DATA_TYPE_F64);
  const auto conversion = Convert(reduce);
  ASSERT_THAT(conversion, IsOk());
  EXPECT_EQ(ProblemOf<ReduceProblem>(*conversion).ddof, 2);
  EXPECT_EQ(OutputOf(*conversion).dtype, DType::kF64);
}

TEST(ConvertTest, ReductionGoesOverAllAxesByDefault) {
  const auto conversion = Convert(Reduce(v1::DATA_TYPE_I32));
  ASSERT_THAT(conversion, IsOk());
  EXPECT_EQ(ProblemOf<ReduceProblem>(*conversion).axes_mask, 3u);
  EXPECT_EQ(OutputOf(*conversion).shape, Shape{});
  EXPECT_EQ(OutputOf(*conversion).dtype, DType::kI64);
  EXPECT_EQ(OutputOf(*conversion).bytes, 8u);
}

TEST(ConvertTest, AxesCountFromTheEndToo) {
  Reduce reduce;
  reduce.request.add_axes(-2);
  const auto conversion = Convert(reduce);
  ASSERT_THAT(conversion, IsOk());
  EXPECT_EQ(ProblemOf<ReduceProblem>(*conversion).axes_mask, 1u);
  EXPECT_EQ(OutputOf(*conversion).shape, Shape{3});
}

TEST(ConvertTest, KeepdimsKeepsReducedAxesWithSizeOne) {
  Reduce reduce;
  reduce.request.add_axes(1);
  reduce.request.set_keepdims(true);
  EXPECT_EQ(OutputOf(*Convert(reduce)).shape, (Shape{2, 1}));
}

TEST(ConvertTest, ArgmaxGoesOverOneAxisOrAll) {
  Reduce reduce;
  reduce.request.set_op(v1::REDUCE_OP_ARGMAX);
  EXPECT_EQ(OutputOf(*Convert(reduce)).dtype, DType::kI64);
  reduce.request.add_axes(0);
  EXPECT_EQ(OutputOf(*Convert(reduce)).shape, Shape{3});
}

TEST(ConvertTest, ScalarsAreReducedToThemselves) {
  for (v1::ReduceOp op : {v1::REDUCE_OP_SUM, v1::REDUCE_OP_MAX, v1::REDUCE_OP_ARGMAX}) {
    Reduce reduce(v1::DATA_TYPE_F32, {}, 4);
    reduce.request.set_op(op);
    const auto conversion = Convert(reduce);
    ASSERT_THAT(conversion, IsOk());
    EXPECT_EQ(OutputOf(*conversion).shape, Shape{});
  }
}

TEST(ConvertTest, EveryReduceOpIsKnown) {
  for (ReduceOp op : kAllReduceOps) {
    Reduce reduce;
    v1::ReduceOp number = v1::REDUCE_OP_UNSPECIFIED;
    std::string name(Name(op));
    for (char& c : name) c = static_cast<char>(std::toupper(c));
    ASSERT_TRUE(v1::ReduceOp_Parse("REDUCE_OP_" + name, &number)) << name;
    reduce.request.set_op(number);
    EXPECT_EQ(ProblemOf<ReduceProblem>(*Convert(reduce)).op, op);
  }
}

TEST(ConvertTest, SumAndMeanOfNothingAreDefined) {
  for (v1::ReduceOp op : {v1::REDUCE_OP_SUM, v1::REDUCE_OP_MEAN}) {
    Reduce reduce(v1::DATA_TYPE_F32, {2, 0}, 0);
    reduce.request.set_op(op);
    EXPECT_THAT(Convert(reduce), IsOk());
  }
}

TEST(ConvertTest, MaxWithoutResultsNeedsNoElements) {
  Reduce reduce(v1::DATA_TYPE_F32, {0, 3}, 0);
  reduce.request.set_op(v1::REDUCE_OP_MAX);
  reduce.request.add_axes(1);
  EXPECT_THAT(Convert(reduce), IsOk());
}

TEST(ConvertTest, EveryDataTypeTransposes) {
  for (DType dtype : kAllDTypes) {
    Transpose transpose;
    transpose.request.mutable_x()->set_data_type(ToProto(dtype));
    transpose.SetPayloadBytes(0, 6 * SizeOf(dtype));
    const auto conversion = Convert(transpose);
    ASSERT_THAT(conversion, IsOk());
    EXPECT_EQ(OutputOf(*conversion).dtype, dtype);
  }
}

}  // namespace
}  // namespace warpline
