#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "server/rpc/codec/convert.h"
#include "tests/server/rpc/codec/scanned_requests.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::ElementsAre;
using ::warpline::testing::IsOk;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

TEST(ConvertGemmTest, SizesStridesAndScalarsAreTakenOver) {
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

TEST(ConvertGemmTest, TransposedBatches) {
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

TEST(ConvertGemmTest, BatchesAreBroadcastAsNumPyDoes) {
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

TEST(ConvertGemmTest, MatricesThatShareABAreOne) {
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

TEST(ConvertGemmTest, WhatIsLeftOfAFoldedBatchCountsLargerMatrices) {
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

TEST(ConvertGemmTest, CIsBroadcastAlongBatchAxes) {
  Gemm gemm;
  gemm.Reshape(gemm.request.mutable_a(), 0, {5, 2, 3});
  gemm.Reshape(gemm.request.mutable_b(), 1, {5, 3, 4});
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  GemmBatch batch;
  batch.Append(5, 1, 1, 0);
  EXPECT_EQ(ProblemOf<GemmProblem>(*conversion).batch, batch);
}

TEST(ConvertGemmTest, EpilogueAndResultTypeAreTakenOver) {
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

TEST(ConvertGemmTest, IntegerProductHasIntegerScalars) {
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

TEST(ConvertGemmTest, AbsentScalarsAreOneAndZero) {
  Gemm gemm;
  gemm.request.clear_beta();
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  EXPECT_EQ(ScalarsOf(*conversion, gemm).at(0).alpha_f64, 1.0);
  EXPECT_EQ(ScalarsOf(*conversion, gemm).at(0).beta_f64, 0.0);
}

TEST(ConvertGemmTest, CIsDroppedWhereBetaIsZero) {
  for (double beta : {0.0, -0.0, 1e-300}) {  // the last one is 0 in f32
    Gemm gemm;
    gemm.request.set_beta(beta);
    const auto conversion = Convert(gemm);
    ASSERT_THAT(conversion, IsOk());
    EXPECT_FALSE(ProblemOf<GemmProblem>(*conversion).has_c);
    EXPECT_EQ(ProblemOf<GemmProblem>(*conversion).ldc, 0);
    EXPECT_THAT(PayloadsOf(*conversion), ElementsAre(0, 1, -1)) << "nothing of it is copied";
    EXPECT_EQ(conversion->program.tensors[2].bytes, 0u);
  }
}

TEST(ConvertGemmTest, ScalarTooLargeForF32IsInfinite) {
  Gemm gemm;
  gemm.request.set_alpha(1e300);
  gemm.request.set_beta(-kUnbounded);
  const auto conversion = Convert(gemm);
  ASSERT_THAT(conversion, IsOk());
  EXPECT_EQ(ScalarsOf(*conversion, gemm).at(0).alpha_f32, std::numeric_limits<float>::infinity());
  EXPECT_EQ(ScalarsOf(*conversion, gemm).at(0).alpha_f64, 1e300);
  EXPECT_EQ(ScalarsOf(*conversion, gemm).at(0).beta_f32, -std::numeric_limits<float>::infinity());
}

TEST(ConvertGemmTest, PrecisionIsOfF32Only) {
  Gemm gemm;
  gemm.request.set_precision(v1::PRECISION_TF32);
  EXPECT_EQ(ProblemOf<GemmProblem>(*Convert(gemm)).precision, Precision::kTf32);
  for (v1::Tensor* tensor : {gemm.request.mutable_a(), gemm.request.mutable_b(), gemm.request.mutable_c()}) {
    tensor->set_data_type(v1::DATA_TYPE_BF16);
  }
  for (PayloadRange& payload : gemm.payloads) payload.length /= 2;
  EXPECT_EQ(ProblemOf<GemmProblem>(*Convert(gemm)).precision, Precision::kIeee);
}

}  // namespace
}  // namespace warpline
