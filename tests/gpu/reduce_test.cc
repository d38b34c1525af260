// Reductions of inputs that are aligned to an element only, which the server's own memory never is, by every
// kernel that can, compared with the plain one.
#include <gmock/gmock.h>

#include <cstddef>
#include <set>
#include <string_view>
#include <vector>

#include "kernels/cuda_choice.h"
#include "kernels/gpu/count_different.h"
#include "kernels/gpu/handle.h"
#include "kernels/gpu/random_data.h"
#include "tests/gpu/gpu_test.h"

namespace warpline {
namespace {

using ReduceTest = GpuTest;

TEST_F(ReduceTest, InputsMayBeUnaligned) {
  constexpr std::size_t kInBytes = std::size_t{64} << 20, kOutBytes = std::size_t{8} << 20;
  auto stream = gpu::CreateStream();
  auto in = gpu::AllocateDevice(kInBytes + 64), got = gpu::AllocateDevice(kOutBytes),
       want = gpu::AllocateDevice(kOutBytes), workspace = gpu::AllocateDevice(kInBytes),
       different = gpu::AllocateDevice(sizeof(unsigned long long));
  ASSERT_TRUE(stream.ok() && in.ok() && got.ok() && want.ok() && workspace.ok() && different.ok());
  CudaContext context;
  context.traits = {.compute_capability = 90, .multiprocessors = 132};
  std::set<std::string_view> chosen, forced;  // kernels that ran
  for (const DType dtype : {DType::kI8, DType::kI16, DType::kI32, DType::kI64}) {
    const std::size_t size = SizeOf(dtype);
    const auto count = static_cast<std::int64_t>(kInBytes / size);
    for (std::size_t shift = size; shift < 16; shift += size) {
      auto* const x = static_cast<std::byte*>(in->get()) + shift;
      ASSERT_EQ(gpu::FillNumbers(x, dtype, count, shift << 40, stream->get()), cudaSuccess);
      // Rows, short rows, rows of several runs, columns, and few columns of one block.
      for (const auto& [shape, axes] : std::vector<std::pair<Shape, std::uint32_t>>{
               {{301, 4099}, 2}, {{4099, 31}, 2}, {{19, 37, 53}, 5}, {{515, 1027}, 1}, {{60001, 3}, 1}}) {
        const ReduceProblem problem{ReduceOp::kMax, dtype, shape, axes, {}, 0, 0};
        const auto results = problem.OutputShape(false).Count();
        Operands operands;
        operands.in[0] = x;
        operands.workspace = workspace->get();
        operands.workspace_bytes = kInBytes;
        const auto run = [&](std::string_view name, void* out) -> std::string_view {
          operands.out = out;
          const auto choice = Choose(problem, name, context.traits, operands);
          if (choice.row == nullptr) return {};
          EXPECT_EQ(cudaMemsetAsync(out, 0x55, results * size, stream->get()), cudaSuccess);
          EXPECT_EQ(choice.Launch(problem, operands, context, stream->get()), cudaSuccess) << choice.name();
          return choice.name();
        };
        const auto check = [&](std::string_view name, std::set<std::string_view>& ran) {
          const std::string_view kernel = run(name, got->get());
          if (kernel.empty()) return;
          ran.insert(kernel);
          auto* const counter = static_cast<unsigned long long*>(different->get());
          ASSERT_EQ(cudaMemsetAsync(counter, 0, sizeof(*counter), stream->get()), cudaSuccess);
          ASSERT_EQ(
              gpu::CountDifferent(got->get(), want->get(), dtype, results, 0, 0, counter, stream->get()),
              cudaSuccess);
          unsigned long long count_of = 0;
          ASSERT_EQ(
              cudaMemcpyAsync(&count_of, counter, sizeof(count_of), cudaMemcpyDeviceToHost, stream->get()),
              cudaSuccess);
          ASSERT_EQ(cudaStreamSynchronize(stream->get()), cudaSuccess);
          EXPECT_EQ(count_of, 0u) << kernel << " of " << Name(dtype) << " " << ToString(shape) << ", "
                                  << shift << " bytes from an aligned address";
        };
        ASSERT_EQ(run("naive", want->get()), "naive");
        check("", chosen);
        for (const auto& row : CudaReduceVariants()) {
          if (!row.group.empty()) check(row.name, forced);
        }
      }
    }
  }
  for (const auto* reached : {&chosen, &forced}) {
    EXPECT_THAT(*reached, ::testing::IsSupersetOf({"rows", "runs", "columns", "flat_columns"}));
  }
}

}  // namespace
}  // namespace warpline
