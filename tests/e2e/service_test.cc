// Tests for the behaviour that a client may count on when all goes well.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/problem.h"
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

TEST_F(ServiceTest, ThePaddingOfLastRowsMayBeSentOrNot) {
  const std::vector<float> rows = {1, 2, -7, 3, 4, -7};  // 3 apart
  const std::vector<float> short_rows(rows.begin(), rows.end() - 1);
  for (const auto& [a, b] : {std::pair(rows, short_rows), std::pair(short_rows, rows)}) {
    v1::GemmRequest request;
    *request.mutable_a() = F32Tensor({2, 2}, a);
    *request.mutable_b() = F32Tensor({2, 2}, b);
    *request.mutable_c() = F32Tensor({2, 2}, {1, 1, 1, 1});
    request.mutable_a()->set_row_stride(3);
    request.mutable_b()->set_row_stride(3);
    request.set_beta(1);
    v1::GemmResponse response;
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    const grpc::Status status = kernels_->Gemm(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(F32Values(response.d()), (std::vector<float>{8, 11, 16, 23}));
  }
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
  EXPECT_EQ(response.operations_size(), static_cast<int>(kAllOps.size()));
  EXPECT_GT(response.operations(0).variants_size(), 1);
  EXPECT_GT(response.devices_size(), 0);
  EXPECT_GT(response.limits().max_inline_bytes(), 0);
  EXPECT_EQ(response.limits().max_steps(), 256);
  EXPECT_EQ(response.limits().max_inputs(), 128);
  EXPECT_EQ(response.limits().max_nodes(), 256);
}

TEST_F(ServiceTest, ServesMetricsAndProbes) {
  int status = 0;
  daemon_.Get("/healthz", &status);
  EXPECT_EQ(status, 200);
  daemon_.Get("/readyz", &status);
  EXPECT_EQ(status, 200);
  // A kernel's first launch loads it, and what takes so long is not timed.
  for (int i = 0; i < 100 && !(daemon_.Metric("warpline_kernel_duration_seconds_count") > 0); ++i) {
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    v1::TransposeResponse response;
    ASSERT_TRUE(kernels_->Transpose(&context, IotaTranspose(8, 8), &response).ok());
    absl::SleepFor(absl::Milliseconds(50));
  }
  for (const char* name : {"warpline_requests_total", "warpline_request_duration_seconds_count",
                           "warpline_stage_duration_seconds_count", "warpline_kernel_duration_seconds_count",
                           "warpline_kernel_bytes_total", "warpline_lanes", "grpc_server_started_total",
                           "grpc_server_handled_total", "grpc_server_handling_seconds_count",
                           "warpline_build_info", "warpline_device_info", "process_resident_memory_bytes"}) {
    EXPECT_GT(daemon_.Metric(name), 0) << name;
  }
  EXPECT_GE(daemon_.Metric("process_cpu_seconds_total"), 0);  // its clock ticks slower than the test runs
}

TEST_F(ServiceTest, AfterWarmUpKnownRequestsAllocateAndInstantiateNothing) {
  if (daemon_.backend() != "cuda") GTEST_SKIP() << "only the cuda backend has graphs";
  // Small ones, which run on their slots, and larger ones, which run as graphs.
  std::vector<v1::TransposeRequest> transposes = {IotaTranspose(1, 64), IotaTranspose(9, 64),
                                                  IotaTranspose(300, 64), IotaTranspose(500, 65)};
  std::vector<v1::ReduceRequest> reductions(4);
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    *reductions[i].mutable_x() = IotaTranspose(i < 2 ? 5 : 600, 64).x();
    reductions[i].set_op(i % 2 == 0 ? v1::REDUCE_OP_SUM : v1::REDUCE_OP_ARGMAX);
    reductions[i].add_axes(static_cast<int>(i % 2));
  }
  std::vector<v1::GemmRequest> products(3);
  for (std::size_t i = 0; i < products.size(); ++i) {
    const auto n = static_cast<std::int64_t>(16 << i);
    *products[i].mutable_a() = IotaTranspose(n, 32).x();
    *products[i].mutable_b() = IotaTranspose(32, n).x();
  }
  const auto send = [&](std::size_t which) {
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    v1::TransposeResponse transposed;
    v1::ReduceResponse reduced;
    v1::GemmResponse product;
    if (which < 4) return kernels_->Transpose(&context, transposes[which], &transposed);
    if (which < 8) return kernels_->Reduce(&context, reductions[which - 4], &reduced);
    return kernels_->Gemm(&context, products[which - 8], &product);
  };
  const auto send_all = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const grpc::Status status = send(static_cast<std::size_t>(i % 11));
      ASSERT_TRUE(status.ok()) << status.error_message();
    }
  };
  // Lanes are taken in turn; 11 is prime to their number, so every lane meets every signature. What is
  // launched as calls becomes a graph once a lane has met it some times.
  const int lanes = static_cast<int>(daemon_.Metric("warpline_lanes"));
  send_all(11 * lanes * 16);
  const double instantiations = daemon_.Metric("warpline_graph_instantiations_total");
  const double allocations = daemon_.Metric("warpline_allocations_total");
  EXPECT_GT(instantiations, 0);
  EXPECT_GT(allocations, 0);
  send_all(10000);
  EXPECT_EQ(daemon_.Metric("warpline_graph_instantiations_total"), instantiations);
  EXPECT_EQ(daemon_.Metric("warpline_allocations_total"), allocations);
}

TEST(PrecisionTest, IsThatOfTheRequestWhateverTheEnvironmentSays) {
  // 1 + 2^-12 needs more bits than TF32 has.
  constexpr std::int64_t n = 256;
  const float value = 1.0f + 1.0f / 4096;
  std::vector<float> identity(n * n, 0.0f);
  for (std::size_t i = 0; i < n; ++i) identity[i * n + i] = 1.0f;
  for (const char* setting : {"0", "1"}) {
    setenv("NVIDIA_TF32_OVERRIDE", setting, 1);
    Daemon daemon;
    unsetenv("NVIDIA_TF32_OVERRIDE");
    if (daemon.backend() != "cuda") GTEST_SKIP() << "the variable is one of CUDA's libraries";
    auto stub = v1::KernelService::NewStub(daemon.Channel());
    for (v1::Precision precision : {v1::PRECISION_IEEE, v1::PRECISION_TF32}) {
      v1::GemmRequest request;
      *request.mutable_a() = F32Tensor({n, n}, std::vector<float>(n * n, value));
      *request.mutable_b() = F32Tensor({n, n}, identity);
      request.set_precision(precision);
      grpc::ClientContext context;
      SetTimeout(context, absl::Seconds(60));
      v1::GemmResponse response;
      const grpc::Status status = stub->Gemm(&context, request, &response);
      ASSERT_TRUE(status.ok()) << status.error_message();
      ASSERT_EQ(response.execution().variants(0), "cublas");
      EXPECT_EQ(F32Values(response.d())[0] == value, precision == v1::PRECISION_IEEE) << setting;
    }
  }
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
