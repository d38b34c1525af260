// A poisoned context: in a binary of its own, since nothing works in the process afterwards.
#include <atomic>
#include <future>

#include "server/device/completion.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/poison.h"

namespace warpline {
namespace {

using ContextLostTest = GpuTest;

TEST_F(ContextLostTest, FailsWhatIsInFlightWithUnavailableAndSaysSoOnce) {
  std::atomic<int> told = 0;
  Completion completion(0, [&](const absl::Status&) { ++told; });
  cudaStream_t stream;
  cudaEvent_t events[2];
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  for (cudaEvent_t& event : events) ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  LaunchPoison(stream);
  std::promise<absl::Status> outcomes[2];
  for (int i = 0; i < 2; ++i) {
    cudaEventRecord(events[i], stream);
    completion.Watch(events[i],
                     [&outcomes, i](absl::Status status) { outcomes[i].set_value(std::move(status)); });
  }
  for (auto& outcome : outcomes) {
    EXPECT_EQ(outcome.get_future().get().code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(told.load(), 1);
}

}  // namespace
}  // namespace warpline
