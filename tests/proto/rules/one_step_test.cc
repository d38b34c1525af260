#include "proto/rules/one_step.h"

#include <gtest/gtest.h>

#include <optional>

#include "kernels/field_error.h"

namespace warpline {
namespace {

v1::Step Product() {
  v1::Step step;
  step.set_name("p");
  for (const char* input : {"a", "b", "bias"}) step.add_inputs(input);
  return step;
}

TEST(OneStepTest, ARequestOfAnOperationIsOneOfRun) {
  v1::GemmRequest request;
  request.mutable_a()->set_data_type(v1::DATA_TYPE_F32);
  request.mutable_bias()->mutable_resident()->set_id("t");
  request.set_beta(0);
  request.set_variant("mma");
  request.mutable_options()->add_free_after("t");
  request.mutable_options()->add_sinks()->mutable_resident();
  const v1::RunRequest run = AsRun(request);
  ASSERT_EQ(run.inputs_size(), 3);
  EXPECT_EQ(run.inputs(0).name(), "a");
  EXPECT_EQ(run.inputs(0).tensor().data_type(), v1::DATA_TYPE_F32);
  EXPECT_EQ(run.inputs(1).name(), "b");
  EXPECT_FALSE(run.inputs(1).has_tensor()) << "whose absence is an error like any other";
  EXPECT_EQ(run.inputs(2).tensor().resident().id(), "t");
  const v1::Step& step = run.program().steps(0);
  EXPECT_EQ(step.variant(), "mma");
  EXPECT_TRUE(step.gemm().has_bias());
  EXPECT_TRUE(step.gemm().has_beta());
  EXPECT_FALSE(step.gemm().has_alpha());
  EXPECT_EQ(run.options().free_after(0), "t");
  EXPECT_EQ(run.options().sinks(0).output(), run.program().outputs(0));
}

TEST(OneStepTest, AnotherNameOfASinkStaysWrong) {
  v1::TransposeRequest request;
  request.mutable_options()->add_sinks()->set_output("y");
  EXPECT_EQ(AsRun(request).options().sinks(0).output(), "y");
}

TEST(OneStepTest, ErrorsNameTheFieldsOfTheOperation) {
  const auto field = [](std::string_view run) {
    return *FieldOf(InOperation(FieldError(run, "2 is too many"), Product()));
  };
  EXPECT_EQ(field("inputs[0].tensor.shape"), "a.shape");
  EXPECT_EQ(field("program.steps[0].inputs[2].data_type"), "bias.data_type");
  EXPECT_EQ(field("program.steps[0].alpha"), "alpha");
  EXPECT_EQ(field("program.outputs[0]"), "a.shape");
  EXPECT_EQ(field("program"), "a");
  EXPECT_EQ(field("options.sinks[0].output"), "options.sinks[0].output");
  const absl::Status status = InOperation(
      FieldError("program.steps[0].inputs[1].data_type", "step \"p\": f16, but inputs[0] is f32"), Product());
  EXPECT_EQ(status.message(), "b.data_type: f16, but a is f32");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
}

TEST(OneStepTest, OtherErrorsStayAsTheyAre) {
  EXPECT_TRUE(InOperation(absl::OkStatus(), Product()).ok());
  const absl::Status status = absl::UnavailableError("the server is draining");
  EXPECT_EQ(InOperation(status, Product()), status);
}

}  // namespace
}  // namespace warpline
