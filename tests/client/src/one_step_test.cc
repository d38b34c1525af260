#include "client/src/one_step.h"

#include <gtest/gtest.h>

#include "client/src/grpc_error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "kernels/field_error.h"
#include "warpline/error.h"

namespace warpline::client {
namespace {

Operand Of(DType dtype, const Shape& shape) { return {.dtype = dtype, .shape = shape}; }

TEST(OneStepTest, AProductHasItsEpilogue) {
  GemmArgs args{.a = Of(DType::kF16, {1, 2}), .b = Of(DType::kF16, {2, 3})};
  RunArgs run = OneStep(args);
  EXPECT_FALSE(run.program.steps(0).gemm().has_bias());
  EXPECT_EQ(run.inputs.size(), 2u);
  args.bias = Of(DType::kF32, {3});
  args.activation = v1::ACTIVATION_GELU;
  args.out_data_type = DType::kF32;
  args.reproducible = true;
  run = OneStep(args);
  const v1::GemmStep& gemm = run.program.steps(0).gemm();
  EXPECT_TRUE(gemm.has_bias());
  EXPECT_EQ(run.inputs.back().first, "bias");
  EXPECT_EQ(run.inputs.back().second.shape, Shape{3});
  EXPECT_EQ(gemm.activation(), v1::ACTIVATION_GELU);
  EXPECT_EQ(gemm.out_data_type(), v1::DATA_TYPE_F32);
  EXPECT_TRUE(run.reproducible);
}

TEST(OneStepTest, AReductionHasItsTypeAndDegreesOfFreedom) {
  const ReduceArgs args{
      .x = Of(DType::kF64, {}), .op = v1::REDUCE_OP_STD, .out_data_type = DType::kF32, .ddof = -1};
  const v1::ReduceStep reduce = OneStep(args).program.steps(0).reduce();
  EXPECT_EQ(reduce.op(), v1::REDUCE_OP_STD);
  EXPECT_EQ(reduce.out_data_type(), v1::DATA_TYPE_F32);
  EXPECT_EQ(reduce.ddof(), -1);
}

// Makes an error as a server sends it.
absl::Status Refused(const std::string& field, const std::string& text) {
  google::rpc::BadRequest bad;
  bad.add_field_violations()->set_field(field);
  bad.mutable_field_violations(0)->set_description(field + ": " + text);
  google::rpc::Status status;
  static_cast<void>(status.add_details()->PackFrom(bad));
  return ToAbslStatus({grpc::StatusCode::INVALID_ARGUMENT, field + ": " + text, status.SerializeAsString()},
                      "7");
}

TEST(OneStepTest, TheServersErrorsNameTheInputs) {
  const RunArgs args = OneStep(TransposeArgs{.x = Of(DType::kF32, {2})});
  const absl::Status status =
      InOneStep(args, Refused("program.steps[0].inputs[0].shape", "step \"result\": too large"));
  EXPECT_EQ(status.message(), "x.shape: too large");
  const ErrorDetails details = DetailsOf(status);
  ASSERT_EQ(details.violations.size(), 1u);
  EXPECT_EQ(details.violations[0].field, "x.shape");
  EXPECT_EQ(details.violations[0].description, "x.shape: too large");
  EXPECT_EQ(details.request_id, "7");
}

TEST(OneStepTest, ErrorsOfOtherProgramsStayAsTheyAre) {
  const absl::Status status = Refused("program.steps[0].perm", "axis 7");
  RunArgs args = OneStep(TransposeArgs{.x = Of(DType::kF32, {2})});
  args.one_step = false;
  EXPECT_EQ(InOneStep(args, status), status);
  args.one_step = true;
  EXPECT_NE(InOneStep(args, status), status);
  args.inputs.front().first = "another";  // which the step does not read
  EXPECT_EQ(InOneStep(args, status), status);
}

}  // namespace
}  // namespace warpline::client
