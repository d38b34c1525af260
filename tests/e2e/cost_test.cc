// Requests that are small to send and long to compute, through a real daemon.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"

namespace warpline {
namespace {

v1::NamedTensor Ones(const std::string& name, const std::vector<std::int64_t>& shape) {
  v1::NamedTensor input;
  input.set_name(name);
  std::int64_t count = 1;
  for (std::int64_t size : shape) count *= size;
  *input.mutable_tensor() = F32Tensor(shape, std::vector<float>(static_cast<std::size_t>(count), 1.0f));
  return input;
}

v1::Step& AddStep(v1::RunRequest& request, const std::string& name, const std::vector<std::string>& inputs) {
  v1::Step& step = *request.mutable_program()->add_steps();
  step.set_name(name);
  for (const std::string& input : inputs) step.add_inputs(input);
  return step;
}

// "big" is n x n: two vectors from the client, broadcast and added.
v1::RunRequest Broadcast(std::int64_t n) {
  v1::RunRequest request;
  *request.add_inputs() = Ones("column", {n, 1});
  *request.add_inputs() = Ones("row", {1, n});
  AddStep(request, "big", {"column", "row"}).mutable_add();
  return request;
}

// Two vectors of n elements become a matrix of n x n, which is added up 62 times, one element after the
// other.
v1::RunRequest ComputeBomb(const Daemon& daemon, std::int64_t n) {
  const char* const variant = daemon.backend() == "cpu" ? "reference" : "naive";
  v1::RunRequest request = Broadcast(n);
  for (int i = 0; i < 62; ++i) {
    const std::string name = "sum" + std::to_string(i);
    v1::Step& step = AddStep(request, name, {"big"});
    step.mutable_reduce()->set_op(v1::REDUCE_OP_SUM);
    step.set_variant(variant);
    request.mutable_program()->add_outputs(name);
  }
  return request;
}

// The sum of a product of two n x n matrices.
v1::RunRequest Product(std::int64_t n) {
  v1::RunRequest request = Broadcast(n);
  AddStep(request, "product", {"big", "big"}).mutable_gemm();
  AddStep(request, "sum", {"product"}).mutable_reduce()->set_op(v1::REDUCE_OP_SUM);
  request.mutable_program()->add_outputs("sum");
  return request;
}

grpc::Status RunOn(const Daemon& daemon, const v1::RunRequest& request, absl::Duration timeout) {
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  v1::RunResponse response;
  return v1::KernelService::NewStub(daemon.Channel())->Run(&context, request, &response);
}

TEST(CostTest, AComputeBombIsRefusedWithTheEstimateAndTheLimit) {
  // On a GPU one thread takes minutes for it, on the CPU the plainest loop some 15 s.
  Daemon daemon({"--max-device-seconds=2"});
  const v1::RunRequest bomb = ComputeBomb(daemon, 8192);
  EXPECT_LT(bomb.ByteSizeLong(), 70000u);
  const grpc::Status status = RunOn(daemon, bomb, absl::Seconds(60));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(status).fields, std::vector<std::string>({"program"}));
  EXPECT_NE(status.error_message().find("would take about "), std::string::npos) << status.error_message();
  EXPECT_NE(status.error_message().find("the limit is 2 s"), std::string::npos) << status.error_message();
}

TEST(CostTest, WhatNeedsTooMuchScratchMemoryIsRefusedWithTheLargestStep) {
  Daemon daemon({"--device-bytes=512M", "--max-inline-bytes=4M", "--resident-bytes=0", "--upload-bytes=0"});
  v1::RunRequest request = Product(16384);  // 1 GiB each
  AddStep(request, "twice", {"product"}).mutable_scale()->set_factor(2);
  request.mutable_program()->clear_outputs();
  AddStep(request, "all", {"twice"}).mutable_reduce()->set_op(v1::REDUCE_OP_MAX);
  request.mutable_program()->add_outputs("all");
  request.mutable_program()->add_outputs("sum");
  const grpc::Status status = RunOn(daemon, request, absl::Seconds(60));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(status).fields, std::vector<std::string>({"program"}));
  for (const char* part : {"bytes of scratch memory", "(the server's --device-bytes)",
                           "step \"big\" has the largest intermediate result, 1073741824 bytes"}) {
    EXPECT_NE(status.error_message().find(part), std::string::npos) << status.error_message();
  }
}

TEST(CostTest, LargeButOrdinaryRequestsAreNotRefused) {
  Daemon daemon;
  // The call may miss its deadline on a slow machine or with sanitizers; that is not tested here.
  const grpc::Status status = RunOn(daemon, Product(4096), absl::Seconds(10));
  EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
      << status.error_message();
}

TEST(CostTest, ZeroIsNoLimit) {
  for (const auto& [limit, accepted] : {std::pair("0.001", false), std::pair("0", true)}) {
    Daemon daemon({std::string("--max-device-seconds=") + limit});
    const grpc::Status status = RunOn(daemon, ComputeBomb(daemon, 1024), absl::Minutes(2));
    EXPECT_EQ(status.ok(), accepted) << limit << ": " << status.error_message();
  }
}

TEST(CostTest, InfoTellsTheLimit) {
  Daemon daemon({"--max-device-seconds=7.5"});
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  v1::GetInfoResponse info;
  ASSERT_TRUE(v1::InfoService::NewStub(daemon.Channel())->GetInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.limits().max_device_seconds(), 7.5);
}

}  // namespace
}  // namespace warpline
