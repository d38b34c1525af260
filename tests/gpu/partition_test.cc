#include "kernels/gpu/partition.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <vector>

#include "tests/gpu/gpu_test.h"
#include "tests/gpu/multiprocessor_ids.h"

namespace warpline::gpu {
namespace {

constexpr unsigned kBlocks = 8192;

class PartitionTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    auto partition = Partition::LeavingOut(8);
    if (absl::IsUnimplemented(partition.status())) GTEST_SKIP() << partition.status();
    ASSERT_TRUE(partition.ok()) << partition.status();
    partition_.emplace(*std::move(partition));
    auto ids = AllocateDevice(kBlocks * sizeof(unsigned));
    ASSERT_TRUE(ids.ok());
    ids_ = *std::move(ids);
    cudaDeviceProp properties;
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    all_ = properties.multiProcessorCount;
  }

  unsigned* ids() const { return static_cast<unsigned*>(ids_.get()); }

  // Returns the ids that all blocks wrote, once `stream` is idle.
  std::set<unsigned> Used(const Stream& stream) const {
    EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    std::vector<unsigned> ids(kBlocks);
    EXPECT_EQ(cudaMemcpy(ids.data(), ids_.get(), kBlocks * sizeof(unsigned), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return {ids.begin(), ids.end()};
  }

  std::optional<Partition> partition_;
  DeviceBytes ids_;
  int all_ = 0;
};

TEST_F(PartitionTest, ItsStreamsUseNothingButIts) {
  EXPECT_LE(partition_->multiprocessors(), all_ - 8);
  EXPECT_GE(partition_->multiprocessors(), all_ / 2);
  auto stream = partition_->CreateStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  LaunchMultiprocessorIds(ids(), kBlocks, stream->get());
  EXPECT_EQ(Used(*stream).size(), static_cast<std::size_t>(partition_->multiprocessors()));
}

TEST_F(PartitionTest, GraphsCapturedOnItsStreamsToo) {
  auto stream = partition_->CreateStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  cudaGraph_t captured = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream->get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  LaunchMultiprocessorIds(ids(), kBlocks, stream->get());
  ASSERT_EQ(cudaStreamEndCapture(stream->get(), &captured), cudaSuccess);
  const Graph graph(captured);
  auto exec = Instantiate(graph);
  ASSERT_TRUE(exec.ok()) << exec.status();
  ASSERT_EQ(cudaGraphLaunch(exec->get(), stream->get()), cudaSuccess);
  EXPECT_EQ(Used(*stream).size(), static_cast<std::size_t>(partition_->multiprocessors()));
}

TEST_F(PartitionTest, OtherStreamsUseAll) {
  auto stream = CreateUrgentStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  LaunchMultiprocessorIds(ids(), kBlocks, stream->get());
  EXPECT_EQ(Used(*stream).size(), static_cast<std::size_t>(all_));
}

TEST_F(PartitionTest, NotAllCanBeLeftOut) {
  const auto partition = Partition::LeavingOut(100000);
  EXPECT_EQ(partition.status().code(), absl::StatusCode::kInvalidArgument) << partition.status();
}

}  // namespace
}  // namespace warpline::gpu
