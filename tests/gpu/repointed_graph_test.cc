#include "kernels/gpu/repointed_graph.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/cuda_choice.h"
#include "kernels/gemm/cublaslt.h"
#include "kernels/gpu/count_different.h"
#include "kernels/gpu/pinned_memory.h"
#include "kernels/gpu/random_data.h"
#include "kernels/gpu/status.h"
#include "kernels/operand_sizes.h"
#include "kernels/problem_text.h"
#include "tests/gpu/gpu_test.h"

namespace warpline::gpu {
namespace {

constexpr std::size_t kPart = std::size_t{8} << 20, kParts = 8;

class RepointedGraphTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    auto stream = CreateStream();
    auto memory = AllocateDevice(kPart * kParts + (std::size_t{64} << 20));
    ASSERT_TRUE(stream.ok() && memory.ok());
    stream_ = *std::move(stream);
    memory_ = *std::move(memory);
    std::string why_not;
    cublaslt_ = CublasLt::Load(&why_not);
    cudaDeviceProp properties;
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    context_.cublaslt = cublaslt_.get();
    context_.traits = {.compute_capability = properties.major * 10 + properties.minor,
                       .multiprocessors = properties.multiProcessorCount,
                       .has_cublaslt = cublaslt_ != nullptr};
    const StepScalars scalars;
    ASSERT_EQ(cudaMemcpy(Part(kParts), &scalars, sizeof(scalars), cudaMemcpyHostToDevice), cudaSuccess);
  }

  std::byte* Part(std::size_t index) { return static_cast<std::byte*>(memory_.get()) + index * kPart; }

  absl::Status Enqueue(const Problem& problem, std::string_view variant, std::span<std::byte* const> bases) {
    Operands operands;
    operands.in[0] = bases[0];
    operands.in[1] = bases[1];
    operands.out = bases[2];
    operands.scalars = reinterpret_cast<const StepScalars*>(Part(kParts));
    operands.workspace = Part(kParts) + 4096;
    operands.workspace_bytes = std::size_t{48} << 20;
    return std::visit(
        [&](const auto& p) -> absl::Status {
          auto choice = Choose(p, variant, context_.traits, operands);
          cudaError_t error = cudaErrorNotSupported;
          for (; choice.row != nullptr; choice = ChooseAfter(choice, p, context_.traits)) {
            error = choice.Launch(p, operands, context_, stream_.get());
            if (error != cudaErrorNotSupported) break;
          }
          return ToStatus(error, "launching");
        },
        problem);
  }

  Stream stream_;
  DeviceBytes memory_;
  std::unique_ptr<CublasLt> cublaslt_;
  CudaContext context_;
};

// Kernels with pointers in structs, tensor maps, partial results in a second kernel, and kernels of a
// library.
TEST_F(RepointedGraphTest, ComputesAtOtherAddressesWhatCallsCompute) {
  auto different = AllocateDevice(sizeof(unsigned long long));
  ASSERT_TRUE(different.ok());
  int tested = 0;
  for (const auto& [text, variant] :
       std::vector<std::pair<const char*, const char*>>{{"transpose f32 1000x900 1,0", ""},
                                                        {"transpose f32 33x31 1,0", "box"},
                                                        {"transpose f32 64x64 1,0", "tiles"},
                                                        {"transpose u8 301x4 1,0", ""},
                                                        {"sum f32 1000x900 1", ""},
                                                        {"sum f32 900x1000 0", ""},
                                                        {"sum f32 1000x1000 all", ""},
                                                        {"add f32 1000x1000", ""},
                                                        {"cast f32 1000x1000 >f16", ""},
                                                        {"scale f32 1000x1000", ""},
                                                        {"gemm f32 64x64x64", "naive"},
                                                        {"gemm bf16 512x512x512", "wgmma"},
                                                        {"gemm bf16 512x512x512", "mma"},
                                                        {"gemm f32 4x1000x1000", "gemv"},
                                                        {"gemm bf16 256x256x256", "cublas"},
                                                        {"gemm bf16 1024x1024x1024", "cublas"},
                                                        {"gemm f32 512x512x512", "cublas"},
                                                        {"gemm f64 256x256x256", "cublas"},
                                                        {"gemm bf16 511x511x511", "cublas_packed"}}) {
    SCOPED_TRACE(std::string(text) + " by " + variant);
    const Problem problem = *ParseProblem(text);
    const bool can = std::visit(
        [&](const auto& p) { return Choose(p, variant, context_.traits, Operands()).row != nullptr; },
        problem);
    if (!can) continue;  // another GPU, or no library
    ++tested;
    const auto inputs = InputSizes(problem);
    for (std::size_t part : {0, 1, 3, 4}) {
      ASSERT_EQ(
          FillNumbers(Part(part), inputs[0].dtype, static_cast<std::int64_t>(kPart / SizeOf(inputs[0].dtype)),
                      part << 40, stream_.get()),
          cudaSuccess);
    }
    std::vector<std::byte*> bases = {Part(0), Part(1), Part(2)};
    const auto enqueue = [&](std::span<std::byte* const> at) { return Enqueue(problem, variant, at); };
    ASSERT_TRUE(enqueue(bases).ok());  // loads what is loaded at first
    ASSERT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
    auto graph = RepointedGraph::Make(bases, enqueue, stream_.get());
    if (!graph.ok()) {
      ADD_FAILURE() << graph.status();
      continue;
    }
    const OperandSize out = OutputSize(problem);
    for (int round = 0; round < 3; ++round) {
      const std::size_t first = round == 1 ? 0 : 3;
      bases = {Part(first), Part(first + 1), Part(round == 1 ? 2 : 5)};
      ASSERT_TRUE(graph->Fits(bases));
      ASSERT_EQ(cudaMemsetAsync(bases[2], 0x5a, out.Bytes(), stream_.get()), cudaSuccess);
      ASSERT_TRUE(graph->Launch(bases, stream_.get()).ok());
      ASSERT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
      const std::vector<std::byte*> plain = {bases[0], bases[1], Part(6)};
      ASSERT_TRUE(enqueue(plain).ok());
      auto* const counter = static_cast<unsigned long long*>(different->get());
      ASSERT_EQ(cudaMemsetAsync(counter, 0, sizeof(*counter), stream_.get()), cudaSuccess);
      ASSERT_EQ(CountDifferent(bases[2], Part(6), out.dtype, out.count, 0, 0, counter, stream_.get()),
                cudaSuccess);
      unsigned long long count = 1;
      ASSERT_EQ(cudaMemcpyAsync(&count, counter, sizeof(count), cudaMemcpyDeviceToHost, stream_.get()),
                cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
      EXPECT_EQ(count, 0u) << "round " << round;
    }
    bases[0] += SizeOf(inputs[0].dtype);
    EXPECT_FALSE(graph->Fits(bases)) << "kernels are chosen by alignment";
  }
  EXPECT_GE(tested, 10);
}

TEST_F(RepointedGraphTest, PointsCopiesAtOtherHostMemoryToo) {
  auto slots = PinnedMemory::Allocate(4096);
  ASSERT_TRUE(slots.ok());
  std::byte* const host = slots->bytes().data();
  for (int i = 0; i < 4096; ++i) host[i] = static_cast<std::byte>(i / 256);
  const auto enqueue = [&](std::span<std::byte* const> bases) {
    if (cudaMemcpyAsync(Part(0), bases[0], 256, cudaMemcpyHostToDevice, stream_.get()) != cudaSuccess ||
        cudaMemcpyAsync(bases[1], Part(0), 256, cudaMemcpyDeviceToHost, stream_.get()) != cudaSuccess) {
      return absl::InternalError("copying");
    }
    return absl::OkStatus();
  };
  auto graph = RepointedGraph::Make(std::vector<std::byte*>{host, host + 2048}, enqueue, stream_.get());
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (int i = 0; i < 8; ++i) {
    const std::vector<std::byte*> bases = {host + 256 * i, host + 2048 + 256 * (7 - i)};
    ASSERT_TRUE(graph->Launch(bases, stream_.get()).ok());
    ASSERT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
    EXPECT_EQ(bases[1][255], static_cast<std::byte>(i));
  }
}

TEST_F(RepointedGraphTest, RefusesWorkThatDependsOnAddresses) {
  const auto enqueue = [&](std::span<std::byte* const> bases) {
    // The distance of two bases is no address.
    const auto distance = static_cast<std::size_t>(bases[1] - bases[0]) % 4096 + 1;
    return ToStatus(cudaMemsetAsync(Part(0), 0, distance, stream_.get()), "setting");
  };
  const auto fixed = RepointedGraph::Make(std::vector<std::byte*>{Part(1), Part(2)}, enqueue, stream_.get());
  EXPECT_TRUE(fixed.ok()) << "the same with any bases: " << fixed.status();
  const auto moving = [&](std::span<std::byte* const> bases) {
    return ToStatus(cudaMemsetAsync(bases[0], 0, 16, stream_.get()), "setting");
  };
  EXPECT_TRUE(absl::IsUnimplemented(
      RepointedGraph::Make(std::vector<std::byte*>{Part(1)}, moving, stream_.get()).status()));
}

}  // namespace
}  // namespace warpline::gpu
