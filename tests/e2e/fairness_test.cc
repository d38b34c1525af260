// Clients beside others that ask for more than their part.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"

namespace warpline {
namespace {

// Half a minute on a lane, by the plainest loops: longer than the test waits for anything.
v1::GemmRequest LongGemm() {
  constexpr std::int64_t n = 2000;
  const std::vector<float> ones(static_cast<std::size_t>(n * n), 1.0f);
  v1::GemmRequest request;
  *request.mutable_a() = F32Tensor({n, n}, ones);
  *request.mutable_b() = F32Tensor({n, n}, ones);
  request.set_variant("reference");
  return request;
}

class LongCall {
 public:
  explicit LongCall(const Daemon& daemon)
      : channel_(daemon.Channel()), status_(std::async(std::launch::async, [this] {
          v1::GemmResponse response;
          return v1::KernelService::NewStub(channel_)->Gemm(&context_, LongGemm(), &response);
        })) {}
  bool Ended() const { return status_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  std::future<grpc::Status> status_;
};

TEST(FairnessTest, AShortJobStartsBesideLongOnesThatHaveAllLanes) {
  // With a sanitizer the estimate is far above the limit.
  Daemon daemon({"--backend=cpu", "--lanes=2", "--max-device-seconds=0"});
  std::vector<std::unique_ptr<LongCall>> calls;
  for (int i = 0; i < 6; ++i) calls.push_back(std::make_unique<LongCall>(daemon));
  ASSERT_TRUE(daemon.AwaitMetric("warpline_lane_busy", "", 2));
  ASSERT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", 6));
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  v1::TransposeResponse response;
  const grpc::Status status =
      v1::KernelService::NewStub(daemon.Channel())->Transpose(&context, IotaTranspose(32, 32), &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  for (const auto& call : calls) EXPECT_FALSE(call->Ended());
  daemon.Signal(SIGKILL);
  EXPECT_EQ(daemon.Wait(), -SIGKILL);
}

}  // namespace
}  // namespace warpline
