// What a client may count on when all goes well.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"

namespace warpline {
namespace {

class ServiceTest : public ::testing::Test {
 protected:
  Daemon daemon_;
  std::shared_ptr<grpc::Channel> channel_ = daemon_.Channel();
  std::unique_ptr<v1::KernelService::Stub> kernels_ = v1::KernelService::NewStub(channel_);
  std::unique_ptr<v1::InfoService::Stub> info_ = v1::InfoService::NewStub(channel_);
};

TEST_F(ServiceTest, TransposesForAGeneratedClient) {
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  context.AddMetadata("x-request-id", "my-id");
  v1::TransposeResponse response;
  const grpc::Status status = kernels_->Transpose(&context, IotaTranspose(2, 3), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(F32Values(response.y()), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(response.y().shape(0), 3);
  EXPECT_EQ(response.execution().request_id(), "my-id");
  EXPECT_EQ(response.execution().variants_size(), 1);
  EXPECT_EQ(response.execution().backend(), daemon_.backend());
  EXPECT_GT(response.execution().stage_times().device(), 0);
}

TEST_F(ServiceTest, MultipliesWithAlphaBetaAndC) {
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  v1::GemmRequest request;
  *request.mutable_a() = F32Tensor({2, 2}, {1, 2, 3, 4});
  *request.mutable_b() = F32Tensor({2, 2}, {5, 6, 7, 8});
  *request.mutable_c() = F32Tensor({2, 2}, {1, 1, 1, 1});
  request.set_alpha(2);
  request.set_beta(-1);
  request.set_trans_b(true);
  v1::GemmResponse response;
  const grpc::Status status = kernels_->Gemm(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(F32Values(response.d()), (std::vector<float>{33, 45, 77, 105}));
}

TEST_F(ServiceTest, ReducesWithKeepdims) {
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  v1::ReduceRequest request;
  *request.mutable_x() = F32Tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  request.set_op(v1::REDUCE_OP_MEAN);
  request.add_axes(-1);
  request.set_keepdims(true);
  v1::ReduceResponse response;
  const grpc::Status status = kernels_->Reduce(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(F32Values(response.y()), (std::vector<float>{2, 5}));
  EXPECT_EQ(response.y().shape_size(), 2);
  EXPECT_EQ(response.y().shape(1), 1);
}

TEST_F(ServiceTest, CopiesA64MiBPayloadInOnceAndOutNever) {
  constexpr double kPayload = 64 << 20;
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  v1::TransposeResponse response;
  const grpc::Status status = kernels_->Transpose(&context, IotaTranspose(4096, 4096), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.y().inline_().size(), static_cast<std::size_t>(kPayload));
  EXPECT_EQ(daemon_.Metric("warpline_host_copy_bytes_total", "site=\"stage_in\""), kPayload);
  EXPECT_EQ(daemon_.Metric("warpline_host_copy_bytes_total"), kPayload);
}

TEST_F(ServiceTest, TellsWhatItCanDo) {
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  v1::GetInfoResponse response;
  ASSERT_TRUE(info_->GetInfo(&context, {}, &response).ok());
  EXPECT_EQ(response.backend(), daemon_.backend());
  EXPECT_EQ(response.operations_size(), 3);
  EXPECT_GT(response.operations(0).variants_size(), 1);
  EXPECT_GT(response.devices_size(), 0);
  EXPECT_GT(response.limits().max_inline_bytes(), 0);
}

TEST_F(ServiceTest, ServesMetricsAndProbes) {
  int status = 0;
  daemon_.Get("/healthz", &status);
  EXPECT_EQ(status, 200);
  daemon_.Get("/readyz", &status);
  EXPECT_EQ(status, 200);
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  v1::TransposeResponse response;
  ASSERT_TRUE(kernels_->Transpose(&context, IotaTranspose(8, 8), &response).ok());
  for (const char* name :
       {"warpline_requests_total", "warpline_request_duration_seconds_count",
        "warpline_stage_duration_seconds_count", "warpline_kernel_duration_seconds_count",
        "warpline_kernel_bytes_total", "warpline_lanes", "grpc_server_started_total",
        "grpc_server_handled_total", "grpc_server_handling_seconds_count", "warpline_build_info",
        "warpline_device_info", "process_resident_memory_bytes", "process_cpu_seconds_total"}) {
    EXPECT_GT(daemon_.Metric(name), 0) << name;
  }
}

TEST_F(ServiceTest, AfterWarmUpKnownRequestsAllocateAndInstantiateNothing) {
  if (daemon_.backend() != "cuda") GTEST_SKIP() << "only the cuda backend has graphs";
  // On their slots, and as graphs.
  std::vector<v1::TransposeRequest> requests;
  for (int i = 1; i <= 10; ++i) requests.push_back(IotaTranspose(i % 2 == 0 ? i : 100 * i, 64));
  const auto send = [&](int count) {
    for (int i = 0; i < count; ++i) {
      grpc::ClientContext context;
      SetTimeout(context, absl::Seconds(60));
      v1::TransposeResponse response;
      ASSERT_TRUE(
          kernels_->Transpose(&context, requests[static_cast<std::size_t>(i) % requests.size()], &response)
              .ok());
    }
  };
  // Lanes are taken in turn; 11 is prime to their number, so every lane meets every signature.
  requests.push_back(IotaTranspose(3, 5));
  send(11 * 16);
  const double instantiations = daemon_.Metric("warpline_graph_instantiations_total");
  const double allocations = daemon_.Metric("warpline_allocations_total");
  send(10000);
  EXPECT_EQ(daemon_.Metric("warpline_graph_instantiations_total"), instantiations);
  EXPECT_EQ(daemon_.Metric("warpline_allocations_total"), allocations);
  EXPECT_GT(instantiations, 0);
  EXPECT_GT(allocations, 0);
}

TEST(UnixSocketTest, Serves) {
  const std::string path = "unix:/tmp/warpline_e2e_" + std::to_string(getpid()) + ".sock";
  Daemon daemon({"--listen=" + path});
  EXPECT_EQ(daemon.address(), path);
  auto stub = v1::KernelService::NewStub(daemon.Channel());
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  v1::TransposeResponse response;
  EXPECT_TRUE(stub->Transpose(&context, IotaTranspose(2, 2), &response).ok());
}

}  // namespace
}  // namespace warpline
