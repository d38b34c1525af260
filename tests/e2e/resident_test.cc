// Resident tensors as operands and as results, in every request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <string>
#include <vector>

#include "tests/e2e/tensors.h"

namespace warpline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string BytesOf(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

std::vector<float> ValuesOf(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class ResidentTest : public ::testing::Test {
 protected:
  std::string Made(const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
    return tensors_.Made(v1::DATA_TYPE_F32, shape, BytesOf(values));
  }
  std::vector<float> Values(const std::string& id) { return ValuesOf(tensors_.Get(id).data); }
  template <typename Response, typename Method, typename Request>
  Answer<Response> Call(Method method, const Request& request) {
    return CallStub<Response>(*stub_, method, request);
  }
  Answer<v1::TransposeResponse> Transpose(const v1::TransposeRequest& request) {
    return Call<v1::TransposeResponse>(&v1::KernelService::Stub::Transpose, request);
  }
  Answer<v1::GemmResponse> Gemm(const v1::GemmRequest& request) {
    return Call<v1::GemmResponse>(&v1::KernelService::Stub::Gemm, request);
  }
  Answer<v1::RunResponse> Run(const v1::RunRequest& request) {
    return Call<v1::RunResponse>(&v1::KernelService::Stub::Run, request);
  }

  Daemon daemon_;
  Tensors tensors_{daemon_.Channel()};
  std::unique_ptr<v1::KernelService::Stub> stub_ = v1::KernelService::NewStub(daemon_.Channel());
};

TEST_F(ResidentTest, AnOperandIsReadWhereItLies) {
  const std::string id = Made({2, 3}, {0, 1, 2, 3, 4, 5});
  const double copied = daemon_.Metric("warpline_host_copy_bytes_total");
  v1::TransposeRequest request;
  request.mutable_x()->mutable_resident()->set_id(id);
  const auto answer = Transpose(request);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(F32Values(answer.response.y()), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(daemon_.Metric("warpline_host_copy_bytes_total"), copied);
}

TEST_F(ResidentTest, AResultStaysAndIsAnOperandOfTheNextRequest) {
  v1::TransposeRequest request = IotaTranspose(2, 3);
  request.mutable_options()->add_sinks()->mutable_resident()->set_ttl_seconds(90);
  const auto first = Transpose(request);
  ASSERT_TRUE(first.status.ok()) << first.status.error_message();
  EXPECT_FALSE(first.response.y().has_inline_());
  EXPECT_EQ(first.response.y().resident().ttl_seconds(), 90);
  EXPECT_THAT(first.response.y().shape(), ElementsAre(3, 2));
  const std::string id = first.response.y().resident().id();
  EXPECT_THAT(Values(id), ElementsAre(0, 3, 1, 4, 2, 5));
  v1::TransposeRequest back;
  back.mutable_x()->mutable_resident()->set_id(id);
  back.mutable_options()->add_sinks()->mutable_resident();
  const auto second = Transpose(back);
  ASSERT_TRUE(second.status.ok()) << second.status.error_message();
  EXPECT_EQ(second.response.y().resident().ttl_seconds(), 600);
  EXPECT_THAT(Values(second.response.y().resident().id()), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(ResidentTest, InlineAndResidentOperandsMix) {
  const std::string matrix = Made({2, 2}, {1, 2, 3, 4});
  for (const bool resident_result : {false, true}) {
    v1::GemmRequest request;
    request.mutable_a()->mutable_resident()->set_id(matrix);
    *request.mutable_b() = F32Tensor({2, 1}, {10, 100});
    *request.mutable_bias() = F32Tensor({1}, {0.5});
    request.set_alpha(2);
    if (resident_result) request.mutable_options()->add_sinks()->mutable_resident();
    const auto answer = Gemm(request);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    const std::vector<float> values =
        resident_result ? Values(answer.response.d().resident().id()) : F32Values(answer.response.d());
    EXPECT_THAT(values, ElementsAre(420.5, 860.5));
  }
}

TEST_F(ResidentTest, OfAProgramSomeResultsStayAndSomeTravel) {
  const std::string id = Made({2, 3}, {0, 1, 2, 3, 4, 5});
  v1::RunRequest request;
  v1::NamedTensor& x = *request.add_inputs();
  x.set_name("x");
  x.mutable_tensor()->mutable_resident()->set_id(id);
  v1::NamedTensor& y = *request.add_inputs();
  y.set_name("y");
  *y.mutable_tensor() = F32Tensor({2, 3}, {1, 1, 1, 1, 1, 1});
  const auto add_step = [&](const std::string& name, const std::vector<std::string>& inputs) {
    v1::Step& step = *request.mutable_program()->add_steps();
    step.set_name(name);
    for (const std::string& input : inputs) step.add_inputs(input);
    request.mutable_program()->add_outputs(name);
    return &step;
  };
  add_step("sum", {"x", "y"})->mutable_add();
  add_step("turned", {"sum"})->mutable_transpose();
  add_step("twice", {"turned"})->mutable_scale()->set_factor(2);
  v1::Sink& sink = *request.mutable_options()->add_sinks();
  sink.set_output("turned");
  sink.mutable_resident();
  // Twice, so that the second one meets a known plan.
  for (int i = 0; i < 2; ++i) {
    const auto answer = Run(request);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    ASSERT_EQ(answer.response.outputs_size(), 3);
    EXPECT_THAT(F32Values(answer.response.outputs(0).tensor()), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_EQ(answer.response.outputs(1).name(), "turned");
    EXPECT_THAT(Values(answer.response.outputs(1).tensor().resident().id()), ElementsAre(1, 4, 2, 5, 3, 6));
    EXPECT_THAT(F32Values(answer.response.outputs(2).tensor()), ElementsAre(2, 8, 4, 10, 6, 12));
  }
}

TEST_F(ResidentTest, OtherTensorsOfTheSameKindMeetAKnownPlan) {
  const std::string one = Made({2, 2}, {1, 2, 3, 4}), other = Made({2, 2}, {5, 6, 7, 8});
  const std::string wide = Made({1, 4}, {1, 2, 3, 4});
  const auto transposed = [&](const std::string& id) {
    v1::TransposeRequest request;
    request.mutable_x()->mutable_resident()->set_id(id);
    return F32Values(Transpose(request).response.y());
  };
  EXPECT_THAT(transposed(one), ElementsAre(1, 3, 2, 4));
  const double misses = daemon_.Metric("warpline_plan_cache_misses_total");
  EXPECT_THAT(transposed(other), ElementsAre(5, 7, 6, 8));
  EXPECT_EQ(daemon_.Metric("warpline_plan_cache_misses_total"), misses);
  EXPECT_THAT(transposed(wide), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(daemon_.Metric("warpline_plan_cache_misses_total"), misses + 1);
}

TEST_F(ResidentTest, OneTensorMayBeAllOperands) {
  const std::string id = Made({2, 2}, {1, 2, 3, 4});
  v1::GemmRequest request;
  for (v1::Tensor* operand : {request.mutable_a(), request.mutable_b(), request.mutable_c()}) {
    operand->mutable_resident()->set_id(id);
  }
  request.set_beta(1);
  const auto answer = Gemm(request);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(F32Values(answer.response.d()), ElementsAre(8, 12, 18, 26));
}

TEST_F(ResidentTest, EmptyTensorsStayToo) {
  v1::TransposeRequest request;
  request.mutable_x()->set_data_type(v1::DATA_TYPE_F32);
  for (std::int64_t size : {0, 3}) request.mutable_x()->add_shape(size);
  request.mutable_options()->add_sinks()->mutable_resident();
  const auto answer = Transpose(request);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  v1::TransposeRequest back;
  back.mutable_x()->mutable_resident()->set_id(answer.response.y().resident().id());
  const auto inline_result = Transpose(back);
  ASSERT_TRUE(inline_result.status.ok()) << inline_result.status.error_message();
  EXPECT_THAT(inline_result.response.y().shape(), ElementsAre(0, 3));
}

TEST_F(ResidentTest, EveryVariantReadsAndWritesTensorsWhereTheyLie) {
  const std::int64_t n = 37, m = 53;
  std::vector<float> values(static_cast<std::size_t>(n * m));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 101);
  const std::string id = Made({n, m}, values);
  const auto info = v1::InfoService::NewStub(daemon_.Channel());
  grpc::ClientContext context;
  v1::GetInfoResponse response;
  ASSERT_TRUE(info->GetInfo(&context, v1::GetInfoRequest(), &response).ok());
  int ran = 0;
  for (const v1::Variant& variant : response.operations(0).variants()) {
    v1::TransposeRequest request;
    request.mutable_x()->mutable_resident()->set_id(id);
    request.set_variant(variant.name());
    request.mutable_options()->add_sinks()->mutable_resident();
    const auto answer = Transpose(request);
    if (answer.status.error_code() == grpc::StatusCode::INVALID_ARGUMENT) continue;  // not for this problem
    ASSERT_TRUE(answer.status.ok()) << variant.name() << ": " << answer.status.error_message();
    const std::vector<float> result = Values(answer.response.y().resident().id());
    ASSERT_EQ(result.size(), values.size());
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < m; ++j) {
        ASSERT_EQ(result[static_cast<std::size_t>(j * n + i)], values[static_cast<std::size_t>(i * m + j)])
            << variant.name();
      }
    }
    ++ran;
  }
  EXPECT_GE(ran, 2);
}

TEST_F(ResidentTest, WhatIsWrongWithASourceOrASinkNamesItsField) {
  const std::string id = Made({2, 2}, {1, 2, 3, 4});
  v1::TransposeRequest request;
  request.mutable_x()->mutable_resident()->set_id("nonsense");
  auto answer = Transpose(request);
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(DetailsOf(answer.status).fields, ElementsAre("x.resident.id"));
  request.mutable_x()->mutable_resident()->set_id(id);
  request.mutable_x()->set_data_type(v1::DATA_TYPE_F64);
  answer = Transpose(request);
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(DetailsOf(answer.status).fields, ElementsAre("x.data_type"));
  request.mutable_x()->clear_data_type();
  v1::ResidentSink& sink = *request.mutable_options()->add_sinks()->mutable_resident();
  for (const double seconds : {-1.0, 1e9}) {
    sink.set_ttl_seconds(seconds);
    answer = Transpose(request);
    EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(DetailsOf(answer.status).fields, ElementsAre("options.sinks[0].resident.ttl_seconds"));
    EXPECT_THAT(answer.status.error_message(), HasSubstr("86400"));
  }
  EXPECT_EQ(daemon_.Metric("warpline_resident_tensors"), 1);
}

TEST_F(ResidentTest, ATensorThatIsInUseOutlivesItsDrop) {
  // Tenths of a second on either backend with the plainest variant.
  const std::int64_t n = daemon_.backend() == "cpu" ? 600 : 8192;
  const std::vector<float> ones(static_cast<std::size_t>(n * n), 1.0F);
  const std::string id = Made({n, n}, ones);
  v1::GemmRequest request;
  request.mutable_a()->mutable_resident()->set_id(id);
  request.mutable_b()->mutable_resident()->set_id(id);
  request.set_variant(daemon_.backend() == "cpu" ? "reference" : "naive");
  grpc::ClientContext context;
  v1::GemmResponse response;
  auto call = std::async(std::launch::async, [&] { return stub_->Gemm(&context, request, &response); });
  ASSERT_TRUE(daemon_.AwaitMetric("warpline_requests_in_flight", "", 1));
  EXPECT_TRUE(tensors_.Drop(id).status.ok());
  const grpc::Status status = call.get();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(F32Values(response.d()).front(), static_cast<float>(n));
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_resident_bytes", "device=\"0\"", 0));
}

TEST_F(ResidentTest, AResultOfACallThatIsCancelledIsGone) {
  v1::GemmRequest request = SlowGemm();
  if (daemon_.backend() != "cpu") request.set_variant("naive");
  request.mutable_options()->add_sinks()->mutable_resident();
  grpc::ClientContext context;
  SetTimeout(context, absl::Milliseconds(200));
  v1::GemmResponse response;
  const grpc::Status status = stub_->Gemm(&context, request, &response);
  if (daemon_.backend() == "cpu") {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_requests_in_flight", "", 0));
  if (!status.ok()) {
    EXPECT_TRUE(daemon_.AwaitMetric("warpline_resident_tensors", "", 0));
  }
}

}  // namespace
}  // namespace warpline
