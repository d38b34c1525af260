#include "kernels/gpu/stream_flag.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "kernels/gpu/handle.h"
#include "tests/gpu/gpu_test.h"

namespace warpline::gpu {
namespace {

using StreamFlagTest = GpuTest;

TEST_F(StreamFlagTest, IsReachedOnceTheSectionHasEndedAndItsWritesAreThere) {
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  auto stream = CreateStream();
  auto flag = StreamFlag::Create();
  auto source = AllocateDevice(kBytes);
  auto target = PinnedMemory::Allocate(kBytes);
  ASSERT_TRUE(stream.ok() && flag.ok() && source.ok() && target.ok());
  for (int round = 1; round <= 50; ++round) {
    ASSERT_EQ(cudaMemsetAsync(source->get(), round, kBytes, stream->get()), cudaSuccess);
    ASSERT_EQ(
        cudaMemcpyAsync(target->bytes().data(), source->get(), kBytes, cudaMemcpyDeviceToHost, stream->get()),
        cudaSuccess);
    ASSERT_TRUE(flag->Enqueue(stream->get()).ok());
    while (!flag->Reached()) {
    }
    // The last byte is written last.
    ASSERT_EQ(target->bytes().back(), static_cast<std::byte>(round));
    ASSERT_EQ(target->bytes().front(), static_cast<std::byte>(round));
  }
}

TEST_F(StreamFlagTest, IsNotReachedWhileTheStreamWaits) {
  auto stream = CreateStream();
  auto other = CreateStream();
  auto flag = StreamFlag::Create();
  auto gate = StreamFlag::Create();
  ASSERT_TRUE(stream.ok() && other.ok() && flag.ok() && gate.ok());
  std::atomic<bool> open = false;
  const auto wait = [](void* opened) {
    while (!static_cast<std::atomic<bool>*>(opened)->load()) {
    }
  };
  // An assertion that fails leaves the test while the host function still spins and reads `open`.
  const absl::Cleanup release = [&] {
    open = true;
    static_cast<void>(cudaStreamSynchronize(stream->get()));
  };
  ASSERT_EQ(cudaLaunchHostFunc(stream->get(), wait, &open), cudaSuccess);
  ASSERT_TRUE(flag->Enqueue(stream->get()).ok());
  ASSERT_TRUE(gate->Enqueue(other->get()).ok());
  ASSERT_EQ(cudaStreamSynchronize(other->get()), cudaSuccess);
  EXPECT_TRUE(gate->Reached());
  EXPECT_FALSE(flag->Reached());
  open = true;
  ASSERT_EQ(cudaStreamSynchronize(stream->get()), cudaSuccess);
  EXPECT_TRUE(flag->Reached());
}

}  // namespace
}  // namespace warpline::gpu
