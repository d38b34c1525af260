// Transpositions that the conformance suite cannot reach: more than 2^31 elements, which no test copies to
// the host, and addresses that are aligned to an element only.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cuda_choice.h"
#include "kernels/gpu/handle.h"
#include "kernels/ladder/rungs.h"
#include "tests/gpu/device_check.h"
#include "tests/gpu/gpu_test.h"

namespace warpline {
namespace {

class TransposeTest : public GpuTest {
 protected:
  // Returns what is wrong with the result of a launch that must succeed; "" if nothing.
  std::string Run(const CudaChoice<TransposeProblem>& choice, const TransposeProblem& problem,
                  const Operands& operands, const CudaContext& context = {}) {
    const std::size_t bytes = static_cast<std::size_t>(problem.shape.Count()) * SizeOf(problem.dtype);
    void* const out = operands.out;
    cudaMemsetAsync(out, 0xCD, bytes, stream_.get());
    cudaMemsetAsync(wrong_.get(), 0, sizeof(unsigned long long), stream_.get());
    if (const cudaError_t error = choice.Launch(problem, operands, context, stream_.get());
        error != cudaSuccess) {
      return std::string("launch: ") + cudaGetErrorString(error);
    }
    auto* device_wrong = static_cast<unsigned long long*>(wrong_.get());
    LaunchCountWrong(problem, out, device_wrong, stream_.get());
    unsigned long long wrong = 0;
    cudaMemcpyAsync(&wrong, device_wrong, sizeof(wrong), cudaMemcpyDeviceToHost, stream_.get());
    if (const cudaError_t error = cudaStreamSynchronize(stream_.get()); error != cudaSuccess) {
      return cudaGetErrorString(error);
    }
    return wrong == 0 ? "" : std::to_string(wrong) + " elements are wrong";
  }

  static Operands MakeOperands(const void* in, void* out) {
    Operands operands;
    operands.in[0] = in;
    operands.out = out;
    return operands;
  }

  // Every variant that can, on every one of the problems, which are dense.
  void RunAll(DType dtype, const std::vector<TransposeProblem>& problems, const CudaContext& context = {}) {
    std::int64_t count = 0;
    for (const TransposeProblem& problem : problems) count = std::max(count, problem.shape.Count());
    const std::size_t bytes = static_cast<std::size_t>(count) * SizeOf(dtype);
    std::size_t free = 0, total = 0;
    ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    if (free < 2 * bytes + (std::size_t{256} << 20)) {
      GTEST_SKIP() << "needs 2 x " << (bytes >> 20) << " MiB of device memory, free are " << (free >> 20);
    }
    const auto in = gpu::AllocateDevice(bytes), out = gpu::AllocateDevice(bytes);
    ASSERT_TRUE(in.ok() && out.ok());
    ASSERT_EQ(LaunchFill(SizeOf(dtype), count, in->get(), stream_.get()), cudaSuccess);
    for (const auto* row : Climb(TransposeProblem())) {
      const auto& variant = *row;
      if (!variant.supports_dtype(dtype)) continue;
      int supported = 0;
      const Operands operands = MakeOperands(in->get(), out->get());
      for (const TransposeProblem& problem : problems) {
        const auto choice = ChooseOnLadder(problem, variant.name, context.traits, operands);
        if (choice.row == nullptr) continue;
        ++supported;
        ASSERT_EQ(Run(choice, problem, operands, context), "")
            << variant.name << ", " << ToString(problem.shape);
      }
      // Others take only what they were made for.
      EXPECT_TRUE(supported > 0 || !variant.group.empty()) << variant.name;
    }
  }

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    auto stream = gpu::CreateStream();
    auto wrong = gpu::AllocateDevice(sizeof(unsigned long long));
    ASSERT_TRUE(stream.ok() && wrong.ok());
    stream_ = *std::move(stream);
    wrong_ = *std::move(wrong);
  }

  gpu::Stream stream_;
  gpu::DeviceBytes wrong_;
};

// One of each kind has sides that are no multiples of anything, the others take whole vectors.
std::vector<TransposeProblem> HugeProblems(DType dtype) {
  std::vector<TransposeProblem> problems = {{dtype, {65537, 32771}, {1, 0}},
                                            {dtype, {65540, 32772}, {1, 0}},
                                            {dtype, {5, 20748, 20740}, {0, 2, 1}}};
  for (const TransposeProblem& problem : problems) EXPECT_GT(problem.shape.Count(), std::int64_t{1} << 31);
  return problems;
}

// Runs shapes like those in tests/kernels/transpose/small_blocks_test.cc, with boxes that are shorter than
// others, or end with less than a word. Also runs small images, which would otherwise be moved by words.
TEST_F(TransposeTest, SmallBlocks) {
  for (int multiprocessors : {0, 1, 3}) {
    CudaContext context;
    context.traits.multiprocessors = multiprocessors;
    RunAll(DType::kU8,
           {{DType::kU8, {602, 65, 65}, {0, 2, 1}},
            {DType::kU8, {20001, 13, 7}, {0, 2, 1}},
            {DType::kU8, {1501, 50, 50}, {0, 2, 1}},
            {DType::kU8, {12, 10, 167, 24}, {1, 0, 3, 2}},
            {DType::kU8, {801, 58, 43, 3}, {0, 2, 1, 3}},
            {DType::kU8, {1001, 1028, 4}, {0, 2, 1}}},
           context);
    RunAll(DType::kBF16,
           {{DType::kBF16, {20001, 7, 7}, {0, 2, 1}},
            {DType::kBF16, {1001, 28, 28}, {0, 2, 1}},
            {DType::kBF16, {30, 20, 3, 25, 60}, {1, 0, 4, 2, 3}}},
           context);
    RunAll(DType::kF32, {{DType::kF32, {1001, 10, 129}, {0, 2, 1}}, {DType::kF32, {1001, 12, 12}, {0, 2, 1}}},
           context);
  }
}

// Devices of no multiprocessors, as here, have enough tiles for the large ones.
TEST_F(TransposeTest, LargeTilesOfBytesMayBePartlyEmpty) {
  RunAll(DType::kU8, {{DType::kU8, {4096, 4096}, {1, 0}},
                      {DType::kU8, {4112, 4096}, {1, 0}},
                      {DType::kU8, {4096, 4112}, {1, 0}},
                      {DType::kU8, {3, 8176, 2048}, {0, 2, 1}}});
}

TEST_F(TransposeTest, MoreThan2To31ElementsOfOneByte) { RunAll(DType::kI8, HugeProblems(DType::kI8)); }
TEST_F(TransposeTest, MoreThan2To31ElementsOfFourBytes) { RunAll(DType::kF32, HugeProblems(DType::kF32)); }
TEST_F(TransposeTest, MoreThan2To31ElementsOfEightBytes) { RunAll(DType::kF64, HugeProblems(DType::kF64)); }

// The table may promise vectors only by shape; the addresses of a launch are known to the launcher alone.
TEST_F(TransposeTest, VectorsNeedAlignedAddressesAndNothingElseDoes) {
  for (DType dtype : {DType::kF32, DType::kF64}) {
    const TransposeProblem problem{dtype, {132, 68}, {1, 0}}, odd{dtype, {33, 65}, {1, 0}};
    const std::size_t size = SizeOf(dtype), count = 132 * 68;
    const auto in = gpu::AllocateDevice((count + 1) * size), out = gpu::AllocateDevice((count + 1) * size);
    ASSERT_TRUE(in.ok() && out.ok());
    for (std::size_t in_shift : {std::size_t{0}, size}) {
      for (std::size_t out_shift : {std::size_t{0}, size}) {
        std::byte* const from = static_cast<std::byte*>(in->get()) + in_shift;
        std::byte* const to = static_cast<std::byte*>(out->get()) + out_shift;
        ASSERT_EQ(LaunchFill(size, count, from, stream_.get()), cudaSuccess);
        const Operands operands = MakeOperands(from, to);
        for (const auto* row : Climb(problem)) {
          const auto& variant = *row;
          const auto choice = ChooseOnLadder(problem, variant.name, {}, operands);
          if (choice.row == nullptr) continue;
          const bool refuses =
              variant.group.empty() && !variant.supports(odd, {}) && in_shift + out_shift != 0;
          const std::string refusal = std::string("launch: ") + cudaGetErrorString(cudaErrorNotSupported);
          EXPECT_EQ(Run(choice, problem, operands), refuses ? refusal : "") << variant.name;
        }
      }
    }
  }
}

// Words of memory hold elements of two rows then, and the first and the last word some bytes of strangers.
TEST_F(TransposeTest, OddSidesMayBeUnaligned) {
  CudaContext context;
  context.traits = {.compute_capability = 90, .multiprocessors = 4};  // few boxes are enough for them
  std::set<std::string_view> chosen, forced;  // kernels that ran at addresses that are not aligned
  for (DType dtype : {DType::kI8, DType::kBF16, DType::kF32, DType::kF64}) {
    for (const TransposeProblem& problem :
         {TransposeProblem{dtype, {197, 331}, {1, 0}}, TransposeProblem{dtype, {997, 1009}, {1, 0}},
          TransposeProblem{dtype, {2, 10, 25, 3, 125}, {0, 4, 3, 2, 1}},
          TransposeProblem{dtype, {23, 2051}, {1, 0}}, TransposeProblem{dtype, {3, 2051, 23}, {0, 2, 1}},
          TransposeProblem{dtype, {3, 4, 5, 61}, {2, 1, 0, 3}},
          TransposeProblem{dtype, {3, 17, 40, 29, 31}, {4, 2, 0, 3, 1}}}) {
      const auto count = static_cast<std::size_t>(problem.shape.Count()), size = SizeOf(dtype);
      constexpr std::size_t kShifts = 4;  // in elements
      const auto in = gpu::AllocateDevice((count + kShifts) * size),
                 out = gpu::AllocateDevice((count + kShifts) * size);
      ASSERT_TRUE(in.ok() && out.ok());
      for (std::size_t in_shift = 0; in_shift < kShifts; ++in_shift) {
        for (std::size_t out_shift = 0; out_shift < kShifts; ++out_shift) {
          std::byte* const from = static_cast<std::byte*>(in->get()) + in_shift * size;
          std::byte* const to = static_cast<std::byte*>(out->get()) + out_shift * size;
          ASSERT_EQ(LaunchFill(size, problem.shape.Count(), from, stream_.get()), cudaSuccess);
          const Operands operands = MakeOperands(from, to);
          const bool aligned = in_shift == 0 && out_shift == 0;
          const auto check = [&](std::string_view name, std::set<std::string_view>& ran) {
            const auto choice = Choose(problem, name, context.traits, operands);
            if (choice.row == nullptr) return;
            if (!aligned) ran.insert(choice.name());
            EXPECT_EQ(Run(choice, problem, operands, context), "")
                << choice.name() << ", " << Name(dtype) << ", " << ToString(problem.shape) << ", " << in_shift
                << " and " << out_shift;
          };
          check("", chosen);
          for (const auto& row : CudaTransposeVariants()) {
            if (!row.group.empty()) check(row.name, forced);
          }
        }
      }
    }
  }
  for (const auto* reached : {&chosen, &forced}) {
    EXPECT_THAT(*reached, ::testing::IsSupersetOf(
                              {"rows", "odd_tiles", "joined_tiles", "split_words", "joined_words", "box"}));
  }
}

}  // namespace
}  // namespace warpline
