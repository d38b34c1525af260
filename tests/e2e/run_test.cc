// Programs through a real daemon: several steps, several outputs, and what is refused.
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"

namespace warpline {
namespace {

v1::NamedTensor Floats(const std::string& name, const std::vector<std::int64_t>& shape,
                       const std::vector<float>& values) {
  v1::NamedTensor tensor;
  tensor.set_name(name);
  tensor.mutable_tensor()->set_data_type(v1::DATA_TYPE_F32);
  for (std::int64_t size : shape) tensor.mutable_tensor()->add_shape(size);
  tensor.mutable_tensor()->set_inline_(
      std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
  return tensor;
}

std::vector<float> FloatsOf(const v1::Tensor& tensor) {
  std::vector<float> values(tensor.inline_().size() / sizeof(float));
  std::memcpy(values.data(), tensor.inline_().data(), tensor.inline_().size());
  return values;
}

v1::Step& AddStep(v1::RunRequest& request, const std::string& name, const std::vector<std::string>& inputs) {
  v1::Step& step = *request.mutable_program()->add_steps();
  step.set_name(name);
  for (const std::string& input : inputs) step.add_inputs(input);
  return step;
}

// sums = reduce(transpose(a @ b)), with a = [[1 2 3] [4 5 6]] and b = [[1 0] [0 1] [1 1]].
v1::RunRequest Chain() {
  v1::RunRequest request;
  *request.add_inputs() = Floats("a", {2, 3}, {1, 2, 3, 4, 5, 6});
  *request.add_inputs() = Floats("b", {3, 2}, {1, 0, 0, 1, 1, 1});
  AddStep(request, "product", {"a", "b"}).mutable_gemm();  // [[4 5] [10 11]]
  AddStep(request, "turned", {"product"}).mutable_transpose();
  v1::ReduceStep& sum = *AddStep(request, "sums", {"turned"}).mutable_reduce();
  sum.set_op(v1::REDUCE_OP_SUM);
  sum.add_axes(1);
  request.mutable_program()->add_outputs("sums");
  return request;
}

class RunTest : public ::testing::Test {
 protected:
  grpc::Status Run(const v1::RunRequest& request, v1::RunResponse* response) {
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    return stub_->Run(&context, request, response);
  }

  Daemon daemon_;
  std::unique_ptr<v1::KernelService::Stub> stub_ = v1::KernelService::NewStub(daemon_.Channel());
};

TEST_F(RunTest, AChainGivesItsLastResult) {
  v1::RunResponse response;
  const grpc::Status status = Run(Chain(), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.outputs_size(), 1);
  EXPECT_EQ(response.outputs(0).name(), "sums");
  EXPECT_EQ(FloatsOf(response.outputs(0).tensor()), std::vector<float>({14, 16}));
  EXPECT_EQ(response.execution().variants_size(), 0) << "nobody has asked for them";
  EXPECT_EQ(daemon_.Metric("warpline_requests_total", "op=\"run\""), 1);
}

TEST_F(RunTest, NamesWhatRanForEachStepIfTheRequestAsks) {
  for (const bool asks : {true, false}) {  // the plan of one is not that of the other
    v1::RunRequest request = Chain();
    request.mutable_options()->set_report(asks);
    v1::RunResponse response;
    ASSERT_TRUE(Run(request, &response).ok());
    ASSERT_EQ(response.execution().variants_size(), asks ? 3 : 0);
    for (const std::string& variant : response.execution().variants()) EXPECT_NE(variant, "");
  }
}

TEST_F(RunTest, OneMapGivesSeveralResults) {
  v1::RunRequest request;
  *request.add_inputs() = Floats("x", {2, 2}, {5, -7, 0, 8});
  *request.add_inputs() = Floats("y", {2}, {2, 3});
  v1::MapStep& map = *AddStep(request, "quotient", {"x", "y"}).mutable_map();
  for (const v1::MapOp op : {v1::MAP_OP_REMAINDER, v1::MAP_OP_FLOOR_DIVIDE}) {
    v1::MapNode& node = *map.add_nodes();
    node.set_op(op);
    node.add_operands(0);
    node.add_operands(1);
  }
  map.add_outputs()->set_name("rest");
  v1::ReduceStep& sum = *AddStep(request, "sums", {"rest"}).mutable_reduce();
  sum.set_op(v1::REDUCE_OP_SUM);
  sum.add_axes(0);
  for (const char* name : {"rest", "quotient", "sums"}) request.mutable_program()->add_outputs(name);
  v1::RunResponse response;
  const grpc::Status status = Run(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.outputs_size(), 3);
  EXPECT_EQ(FloatsOf(response.outputs(0).tensor()), std::vector<float>({1, 2, 0, 2}));
  EXPECT_EQ(FloatsOf(response.outputs(1).tensor()), std::vector<float>({2, -3, 0, 2}));
  EXPECT_EQ(FloatsOf(response.outputs(2).tensor()), std::vector<float>({1, 4}));
}

TEST_F(RunTest, SeveralOutputsComeInTheirOrderWithoutACopy) {
  v1::RunRequest request = Chain();
  AddStep(request, "twice", {"product", "product"}).mutable_add();
  AddStep(request, "whole", {"twice"}).mutable_cast()->set_data_type(v1::DATA_TYPE_I16);
  AddStep(request, "negative", {"twice"}).mutable_scale()->set_factor(-0.5);
  for (const char* name : {"whole", "negative", "product"}) request.mutable_program()->add_outputs(name);
  v1::RunResponse response;
  const grpc::Status status = Run(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.outputs_size(), 4);
  EXPECT_EQ(FloatsOf(response.outputs(0).tensor()), std::vector<float>({14, 16}));
  EXPECT_EQ(response.outputs(1).name(), "whole");
  EXPECT_EQ(response.outputs(1).tensor().inline_(), std::string("\x08\0\x0a\0\x14\0\x16\0", 8));
  EXPECT_EQ(FloatsOf(response.outputs(2).tensor()), std::vector<float>({-4, -5, -10, -11}));
  EXPECT_EQ(FloatsOf(response.outputs(3).tensor()), std::vector<float>({4, 5, 10, 11}));
  EXPECT_EQ(daemon_.Metric("warpline_host_copy_bytes_total", "site=\"stage_in\""), 48);
  EXPECT_EQ(daemon_.Metric("warpline_host_copy_bytes_total"), 48);
}

TEST_F(RunTest, ScalarsOfAKnownProgramMayChange) {
  v1::RunRequest request = Chain();
  v1::GemmStep& product = *request.mutable_program()->mutable_steps(0)->mutable_gemm();
  AddStep(request, "scaled", {"sums"}).mutable_scale();
  request.mutable_program()->set_outputs(0, "scaled");
  for (const auto& [alpha, factor] : {std::pair{2.5f, 0.5f}, {0.5f, -0.25f}, {2.5f, -0.25f}}) {
    product.set_alpha(alpha);
    request.mutable_program()->mutable_steps(3)->mutable_scale()->set_factor(factor);
    v1::RunResponse response;
    const grpc::Status status = Run(request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(FloatsOf(response.outputs(0).tensor()),
              std::vector<float>({14 * alpha * factor, 16 * alpha * factor}));
  }
  EXPECT_EQ(daemon_.Metric("warpline_plan_cache_misses_total", ""), 1);
  EXPECT_EQ(daemon_.Metric("warpline_plan_cache_hits_total", ""), 2);
}

TEST_F(RunTest, ConstantsOfAKnownMapMayChange) {
  v1::RunRequest request;
  *request.add_inputs() = Floats("x", {2, 2}, {1, -2, 3, -4});
  v1::MapStep& map = *AddStep(request, "y", {"x"}).mutable_map();
  const auto add = [&](v1::MapOp op, std::initializer_list<int> operands) -> v1::MapNode& {
    v1::MapNode& node = *map.add_nodes();
    node.set_op(op);
    for (const int operand : operands) node.add_operands(operand);
    return node;
  };
  add(v1::MAP_OP_CONSTANT, {}).set_data_type(v1::DATA_TYPE_F32);
  add(v1::MAP_OP_MULTIPLY, {0, 1});
  add(v1::MAP_OP_MAXIMUM, {2, 1});
  request.mutable_program()->add_outputs("y");
  for (const auto& [constant, want] : {std::pair{2.0, std::vector<float>{2, 2, 6, 2}},
                                       {0.5, std::vector<float>{0.5, 0.5, 1.5, 0.5}},
                                       {-0.25, std::vector<float>{-0.25, 0.5, -0.25, 1}}}) {
    map.mutable_nodes(0)->set_real(constant);
    v1::RunResponse response;
    const grpc::Status status = Run(request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(FloatsOf(response.outputs(0).tensor()), want);
  }
  // Integers and fractions are kinds of plans of their own.
  EXPECT_EQ(daemon_.Metric("warpline_plan_cache_misses_total", ""), 2);
}

TEST_F(RunTest, EmptyOutputsAreReturned) {
  v1::RunRequest request;
  *request.add_inputs() = Floats("x", {0, 3}, {});
  AddStep(request, "y", {"x"}).mutable_transpose();
  v1::ReduceStep& sum = *AddStep(request, "z", {"x"}).mutable_reduce();
  sum.set_op(v1::REDUCE_OP_SUM);
  sum.add_axes(0);
  request.mutable_program()->add_outputs("y");
  request.mutable_program()->add_outputs("z");
  v1::RunResponse response;
  const grpc::Status status = Run(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.outputs(0).tensor().inline_(), "");
  EXPECT_EQ(FloatsOf(response.outputs(1).tensor()), std::vector<float>({0, 0, 0}));
}

TEST_F(RunTest, ABadStepIsNamed) {
  v1::RunRequest request = Chain();
  request.mutable_program()->mutable_steps(2)->mutable_reduce()->set_axes(0, 5);
  v1::RunResponse response;
  grpc::Status status = Run(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(status).fields, std::vector<std::string>({"program.steps[2].axes"}));
  EXPECT_NE(status.error_message().find("step \"sums\""), std::string::npos) << status.error_message();

  request = Chain();
  request.mutable_program()->mutable_steps(1)->set_variant("none_such");
  status = Run(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(status).fields, std::vector<std::string>({"program.steps[1].variant"}));
}

TEST_F(RunTest, SizesThatOverflowTogetherAreRefused) {
  // Nothing goes in, and 2^63 - 256 bytes would come out of each of two steps: 2^64 together.
  v1::RunRequest request;
  v1::NamedTensor& x = *request.add_inputs();
  x.set_name("x");
  x.mutable_tensor()->set_data_type(v1::DATA_TYPE_U8);
  x.mutable_tensor()->add_shape(std::numeric_limits<std::int64_t>::max() - 255);
  x.mutable_tensor()->add_shape(0);
  for (const char* name : {"s", "t"}) {
    v1::ReduceStep& any = *AddStep(request, name, {"x"}).mutable_reduce();
    any.set_op(v1::REDUCE_OP_ANY);
    any.add_axes(1);
    AddStep(request, std::string("all_") + name, {name}).mutable_reduce()->set_op(v1::REDUCE_OP_ANY);
    request.mutable_program()->add_outputs(std::string("all_") + name);
  }
  v1::RunResponse response;
  const grpc::Status status = Run(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(status).fields, std::vector<std::string>({"inputs[0].tensor.shape"}));
}

TEST_F(RunTest, AnEmptyProductOfHugeSizesTakesNoTime) {
  for (v1::DataType data_type : {v1::DATA_TYPE_I8, v1::DATA_TYPE_F16, v1::DATA_TYPE_F32}) {
    v1::GemmRequest request;
    const auto fill = [&](v1::Tensor& tensor, std::initializer_list<std::int64_t> shape) {
      tensor.set_data_type(data_type);
      for (std::int64_t size : shape) tensor.add_shape(size);
    };
    fill(*request.mutable_a(), {std::int64_t{1} << 50, 0, 1});
    fill(*request.mutable_b(), {std::int64_t{1} << 50, 1, 0});
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    v1::GemmResponse response;
    const grpc::Status status = stub_->Gemm(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.d().shape_size(), 3);
  }
}

TEST_F(RunTest, AProgramThatDoesNotFitIsToldItsBytes) {
  // 2^19 x 1 times 1 x 2^19: 2 MiB each in, 1 TiB on the way, 2 MiB back.
  const std::int64_t side = 1 << 19;
  v1::RunRequest request;
  *request.add_inputs() = Floats("a", {side, 1}, std::vector<float>(static_cast<std::size_t>(side)));
  *request.add_inputs() = Floats("b", {1, side}, std::vector<float>(static_cast<std::size_t>(side)));
  AddStep(request, "product", {"a", "b"}).mutable_gemm();
  v1::ReduceStep& sum = *AddStep(request, "sums", {"product"}).mutable_reduce();
  sum.set_op(v1::REDUCE_OP_SUM);
  sum.add_axes(1);
  request.mutable_program()->add_outputs("sums");
  v1::RunResponse response;
  const grpc::Status status = Run(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(status).fields, std::vector<std::string>({"program"}));
  EXPECT_NE(status.error_message().find("needs 10995"), std::string::npos) << status.error_message();
}

}  // namespace
}  // namespace warpline
