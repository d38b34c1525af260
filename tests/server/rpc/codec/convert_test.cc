#include "server/rpc/codec/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/server/rpc/codec/scanned_requests.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::ElementsAre;
using ::warpline::testing::IsOk;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const TensorSpec& OutputOf(const Conversion& conversion) {
  return conversion.program.tensors.at(conversion.program.outputs.at(0));
}

template <typename ProblemT>
const ProblemT& ProblemOf(const Conversion& conversion) {
  return std::get<ProblemT>(conversion.program.steps.at(0).problem);
}

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
  transpose.request.mutable_x()->add_shape(1);
  for (int axis : {2, 0, 1}) transpose.request.add_perm(axis);
  const auto conversion = Convert(transpose);
  ASSERT_THAT(conversion, IsOk());
  EXPECT_THAT(ProblemOf<TransposeProblem>(*conversion).perm, ElementsAre(2, 0, 1, 0, 0, 0, 0, 0));
  EXPECT_EQ(OutputOf(*conversion).shape, (Shape{1, 2, 3}));
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

TEST(ConvertTest, GemmTakesSizesStridesAndScalarsOver) {
  Gemm gemm;
  gemm.request.mutable_a()->set_row_stride(5);
  gemm.SetPayloadBytes(0, 2 * 5 * 4);
  gemm.request.set_alpha(0.1);
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  const auto& problem = ProblemOf<GemmProblem>(*conversion);
  EXPECT_EQ(problem.m, 2);
  EXPECT_EQ(problem.n, 4);
  EXPECT_EQ(problem.k, 3);
  EXPECT_EQ(problem.batch.Count(), 1);
  EXPECT_EQ(problem.lda, 5);
  EXPECT_EQ(problem.ldb, 4);
  EXPECT_EQ(problem.ldc, 4);
  EXPECT_TRUE(problem.has_c);
  EXPECT_EQ(conversion->program.tensors[0].bytes, 32u);
  EXPECT_EQ(OutputOf(*conversion).shape, (Shape{2, 4}));
  EXPECT_THAT(conversion->program.steps[0].inputs, ElementsAre(0, 1, 2));
  EXPECT_THAT(PayloadsOf(*conversion), ElementsAre(0, 1, 2));
  const StepScalars scalars = ScalarsOf(*conversion, gemm).at(0);
  EXPECT_EQ(scalars.alpha_f32, 0.1f);
  EXPECT_EQ(scalars.alpha_f64, 0.1);
  EXPECT_EQ(scalars.beta_f32, 2.0f);
  EXPECT_EQ(scalars.beta_f64, 2.0);
}

TEST(ConvertTest, GemmOfTransposedBatches) {
  Gemm gemm;
  gemm.request.set_trans_a(true), gemm.request.set_trans_b(true), gemm.request.set_beta(0);
  gemm.request.clear_c();
  gemm.Reshape(gemm.request.mutable_a(), 0, {5, 6, 3, 2});
  gemm.Reshape(gemm.request.mutable_b(), 1, {5, 6, 4, 3});
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  const auto& problem = ProblemOf<GemmProblem>(*conversion);
  EXPECT_EQ(problem.m, 2);
  EXPECT_EQ(problem.n, 4);
  EXPECT_EQ(problem.k, 3);
  EXPECT_EQ(problem.batch, GemmBatch::Dense(30));
  EXPECT_EQ(problem.lda, 2);
  EXPECT_EQ(problem.ldb, 3);
  EXPECT_EQ(OutputOf(*conversion).shape, (Shape{5, 6, 2, 4}));
}

TEST(ConvertTest, GemmBroadcastsBatchesAsNumPyDoes) {
  Gemm gemm;
  gemm.request.set_beta(0);
  gemm.request.clear_c();
  gemm.request.set_trans_a(true);
  gemm.Reshape(gemm.request.mutable_a(), 0, {5, 1, 3, 2});
  gemm.Reshape(gemm.request.mutable_b(), 1, {6, 3, 4});
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  GemmBatch batch;
  batch.Append(5, 1, 0, 6), batch.Append(6, 0, 1, 1);
  EXPECT_EQ(ProblemOf<GemmProblem>(*conversion).batch, batch);
  EXPECT_EQ(OutputOf(*conversion).shape, (Shape{5, 6, 2, 4}));
}

TEST(ConvertTest, MatricesThatShareABAreOne) {
  Gemm gemm;
  gemm.request.set_beta(0);
  gemm.request.clear_c();
  gemm.Reshape(gemm.request.mutable_a(), 0, {5, 2, 3});
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  EXPECT_EQ(ProblemOf<GemmProblem>(*conversion).m, 10);
  EXPECT_EQ(ProblemOf<GemmProblem>(*conversion).batch.rank, 0);
  EXPECT_EQ(OutputOf(*conversion).shape, (Shape{5, 2, 4}));
  gemm.request.set_trans_a(true);  // then they are not
  gemm.Reshape(gemm.request.mutable_a(), 0, {5, 3, 2});
  EXPECT_EQ(ProblemOf<GemmProblem>(*Convert(gemm)).batch.rank, 1);
}

TEST(ConvertTest, WhatIsLeftOfAFoldedBatchCountsLargerMatrices) {
  Gemm gemm;
  gemm.request.set_beta(0);
  gemm.request.clear_c();
  gemm.Reshape(gemm.request.mutable_a(), 0, {2, 1, 3, 2, 3});
  gemm.Reshape(gemm.request.mutable_b(), 1, {4, 1, 3, 4});
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  GemmBatch batch;  // 2 matrices of A of 3 * 2 rows, each with 4 of B
  batch.Append(2, 1, 0, 4), batch.Append(4, 0, 1, 1);
  const auto& problem = ProblemOf<GemmProblem>(*conversion);
  EXPECT_EQ(problem.m, 6);
  EXPECT_EQ(problem.batch.dims[0], batch.dims[0]);
  EXPECT_EQ(problem.batch.a[0], 1);
  EXPECT_EQ(problem.batch.b[0], 0);
  EXPECT_EQ(problem.batch.a[1], 0);
  EXPECT_EQ(problem.batch.b[1], 1);
  EXPECT_EQ(OutputOf(*conversion).shape, (Shape{2, 4, 3, 2, 4}));
}

TEST(ConvertTest, CIsBroadcastAlongBatchAxes) {
  Gemm gemm;
  gemm.Reshape(gemm.request.mutable_a(), 0, {5, 2, 3});
  gemm.Reshape(gemm.request.mutable_b(), 1, {5, 3, 4});
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  GemmBatch batch;
  batch.Append(5, 1, 1, 0);
  EXPECT_EQ(ProblemOf<GemmProblem>(*conversion).batch, batch);
}

TEST(ConvertTest, EpilogueAndResultTypeAreTakenOver) {
  Gemm gemm;
  for (v1::Tensor* tensor : {gemm.request.mutable_a(), gemm.request.mutable_b()}) {
    tensor->set_data_type(v1::DATA_TYPE_BF16);
  }
  gemm.SetPayloadBytes(0, 12), gemm.SetPayloadBytes(1, 24);
  gemm.request.set_out_data_type(v1::DATA_TYPE_F32);  // that of c and of the bias
  gemm.request.set_activation(v1::ACTIVATION_GELU);
  gemm.Fill(gemm.request.mutable_bias(), v1::DATA_TYPE_F32, {4}, 16);
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  const auto& problem = ProblemOf<GemmProblem>(*conversion);
  EXPECT_EQ(problem.OutDType(), DType::kF32);
  EXPECT_EQ(problem.activation, Activation::kGelu);
  EXPECT_TRUE(problem.has_bias);
  EXPECT_THAT(conversion->program.steps[0].inputs, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(problem.BiasIndex(), 3);
  EXPECT_EQ(OutputOf(*conversion).dtype, DType::kF32);
}

TEST(ConvertTest, IntegerProductHasIntegerScalars) {
  Gemm gemm;
  for (v1::Tensor* tensor : {gemm.request.mutable_a(), gemm.request.mutable_b()}) {
    tensor->set_data_type(v1::DATA_TYPE_I8);
  }
  gemm.SetPayloadBytes(0, 6), gemm.SetPayloadBytes(1, 12);
  gemm.request.mutable_c()->set_data_type(v1::DATA_TYPE_I32);
  gemm.request.set_alpha(-7);
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  EXPECT_EQ(ScalarsOf(*conversion, gemm).at(0).alpha_i64, -7);
  EXPECT_EQ(ScalarsOf(*conversion, gemm).at(0).beta_i64, 2);
  EXPECT_EQ(OutputOf(*conversion).dtype, DType::kI32);
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

TEST(ConvertTest, AbsentScalarsAreOneAndZero) {
  Gemm gemm;
  gemm.request.clear_beta();
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  EXPECT_EQ(ScalarsOf(*conversion, gemm).at(0).alpha_f64, 1.0);
  EXPECT_EQ(ScalarsOf(*conversion, gemm).at(0).beta_f64, 0.0);
}

TEST(ConvertTest, CIsDroppedWhereBetaIsZero) {
  for (double beta : {0.0, -0.0, 1e-300}) {  // the last one is 0 in f32
    Gemm gemm;
    gemm.request.set_beta(beta);
    const auto conversion = Convert(gemm);
    ASSERT_THAT(conversion, IsOk());
    EXPECT_FALSE(ProblemOf<GemmProblem>(*conversion).has_c);
    EXPECT_EQ(ProblemOf<GemmProblem>(*conversion).ldc, 0);
    EXPECT_EQ(conversion->program.num_inputs, 2);
    EXPECT_THAT(PayloadsOf(*conversion), ElementsAre(0, 1));
  }
}

TEST(ConvertTest, ScalarTooLargeForF32IsInfinite) {
  Gemm gemm;
  gemm.request.set_alpha(1e300);
  gemm.request.set_beta(-kInfinity);
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  EXPECT_EQ(ScalarsOf(*conversion, gemm).at(0).alpha_f32, std::numeric_limits<float>::infinity());
  EXPECT_EQ(ScalarsOf(*conversion, gemm).at(0).alpha_f64, 1e300);
  EXPECT_EQ(ScalarsOf(*conversion, gemm).at(0).beta_f32, -std::numeric_limits<float>::infinity());
}

TEST(ConvertTest, PrecisionIsOfF32Only) {
  Gemm gemm;
  gemm.request.set_precision(v1::PRECISION_TF32);
  EXPECT_EQ(ProblemOf<GemmProblem>(*Convert(gemm)).precision, Precision::kTf32);
  for (v1::Tensor* tensor : {gemm.request.mutable_a(), gemm.request.mutable_b(), gemm.request.mutable_c()}) {
    tensor->set_data_type(v1::DATA_TYPE_BF16);
  }
  for (PayloadRange& payload : gemm.payloads) payload.length /= 2;
  EXPECT_EQ(ProblemOf<GemmProblem>(*Convert(gemm)).precision, Precision::kIeee);
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
