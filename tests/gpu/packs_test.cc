// Sums of more than 2^31 elements, which no test copies to the host: packs give what the interpreter gives.
#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cuda_choice.h"
#include "kernels/gpu/count_different.h"
#include "kernels/gpu/handle.h"
#include "kernels/map/pair.h"
#include "tests/gpu/device_check.h"
#include "tests/gpu/gpu_test.h"

namespace warpline {
namespace {

constexpr std::int64_t kRows = 65537, kColumns = 32784;
static_assert(kRows * kColumns > std::int64_t{1} << 31);

MapProblem Add(std::int64_t columns, std::int64_t x_row, std::int64_t y_row, std::int64_t y_column) {
  return ToMap({.op = PairOp::kAdd,
                .dtype = DType::kU8,
                .out_dtype = DType::kU8,
                .shape = {kRows, columns},
                .x_strides = {x_row, 1},
                .y_strides = {y_row, y_column}});
}

TEST_F(GpuTest, MoreThan2To31ElementsAreAddedAsTheInterpreterDoes) {
  constexpr std::size_t kBytes = static_cast<std::size_t>(kRows * kColumns);
  std::size_t free = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  if (free < 4 * kBytes) GTEST_SKIP() << "needs 8 GiB of device memory, free are " << (free >> 30);
  auto stream = gpu::CreateStream();
  const auto x = gpu::AllocateDevice(kBytes), got = gpu::AllocateDevice(kBytes),
             want = gpu::AllocateDevice(kBytes), y = gpu::AllocateDevice(kRows + kColumns),
             different = gpu::AllocateDevice(sizeof(unsigned long long));
  ASSERT_TRUE(stream.ok() && x.ok() && got.ok() && want.ok() && y.ok() && different.ok());
  ASSERT_EQ(LaunchFill(1, kBytes, x->get(), stream->get()), cudaSuccess);
  ASSERT_EQ(LaunchFill(1, kRows + kColumns, y->get(), stream->get()), cudaSuccess);
  Operands operands;
  operands.in[0] = x->get();
  operands.in[1] = y->get();
  const auto launch = [&](std::string_view name, const MapProblem& problem, void* out) {
    operands.out = out;
    const auto choice = Choose(problem, name, {}, operands);
    ASSERT_NE(choice.row, nullptr) << name;
    ASSERT_EQ(choice.Launch(problem, operands, {}, stream->get()), cudaSuccess) << name;
  };
  // A row for all, an element a row, rows of x further apart than they are long, and rows that no pack
  // divides.
  for (const MapProblem& problem : {Add(kColumns, kColumns, 0, 1), Add(kColumns, kColumns, 1, 0),
                                    Add(kColumns - 16, kColumns, 0, 1), Add(kColumns - 7, kColumns, 0, 1)}) {
    ASSERT_GT(problem.shape.Count(), std::int64_t{1} << 31);
    cudaMemsetAsync(got->get(), 0xCD, kBytes, stream->get());
    launch("packs", problem, got->get());
    launch("interpreter", problem, want->get());
    auto* count = static_cast<unsigned long long*>(different->get());
    cudaMemsetAsync(count, 0, sizeof(*count), stream->get());
    ASSERT_EQ(gpu::CountDifferent(got->get(), want->get(), DType::kU8, problem.shape.Count(), 0, 0, count,
                                  stream->get()),
              cudaSuccess);
    unsigned long long wrong = 1;
    cudaMemcpyAsync(&wrong, count, sizeof(wrong), cudaMemcpyDeviceToHost, stream->get());
    ASSERT_EQ(cudaStreamSynchronize(stream->get()), cudaSuccess);
    EXPECT_EQ(wrong, 0u) << ToString(problem.shape);
  }
}

}  // namespace
}  // namespace warpline
