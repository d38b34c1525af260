#include "kernels/gpu/handle.h"

#include "kernels/gpu/capture.h"
#include "kernels/gpu/pinned_memory.h"
#include "kernels/gpu/status.h"
#include "tests/gpu/gpu_test.h"

namespace warpline::gpu {
namespace {

using HandleTest = GpuTest;

TEST_F(HandleTest, StreamsDoNotWaitForTheLegacyStream) {
  auto stream = CreateStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  unsigned flags = 0;
  ASSERT_EQ(cudaStreamGetFlags(stream->get(), &flags), cudaSuccess);
  EXPECT_EQ(flags, static_cast<unsigned>(cudaStreamNonBlocking));
}

TEST_F(HandleTest, TooMuchDeviceMemoryIsResourceExhausted) {
  const auto bytes = AllocateDevice(std::size_t{1} << 50);
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(AllocateDevice(1 << 20).ok()) << "the failure must not stick";
}

TEST_F(HandleTest, PinnedMemoryIsKnownToTheDriver) {
  auto memory = PinnedMemory::Allocate(8 << 20);
  ASSERT_TRUE(memory.ok()) << memory.status();
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, memory->bytes().data()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
}

TEST_F(HandleTest, ACaptureBecomesAGraphThatCopies) {
  auto stream = CreateStream();
  auto device = AllocateDevice(4096);
  auto host = PinnedMemory::Allocate(4096);
  ASSERT_TRUE(stream.ok() && device.ok() && host.ok());
  auto capture = Capture::Begin(stream->get());
  ASSERT_TRUE(capture.ok());
  cudaMemcpyAsync(device->get(), host->bytes().data(), 4096, cudaMemcpyHostToDevice, stream->get());
  ASSERT_TRUE(capture->LastNode().ok());
  auto graph = std::move(*capture).End();
  ASSERT_TRUE(graph.ok());
  auto exec = Instantiate(*graph);
  ASSERT_TRUE(exec.ok());
  EXPECT_EQ(cudaGraphLaunch(exec->get(), stream->get()), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream->get()), cudaSuccess);
}

TEST_F(HandleTest, AnAbandonedCaptureLeavesTheStreamUsable) {
  auto stream = CreateStream();
  ASSERT_TRUE(stream.ok());
  { ASSERT_TRUE(Capture::Begin(stream->get()).ok()); }
  EXPECT_EQ(cudaStreamSynchronize(stream->get()), cudaSuccess);
}

}  // namespace
}  // namespace warpline::gpu
