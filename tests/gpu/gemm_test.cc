// Matrix products: which row is chosen, and addresses that are aligned to an element only.
#include <cstddef>
#include <string>
#include <string_view>

#include "kernels/cuda_variants.h"
#include "kernels/gpu/handle.h"
#include "tests/gpu/gpu_test.h"

namespace warpline {
namespace {

GemmProblem Product(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmProblem problem;
  problem.dtype = dtype;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.lda = k;
  problem.ldb = problem.ldc = n;
  return problem;
}

std::string_view Choice(const GemmProblem& problem, const DeviceTraits& traits) {
  for (const auto& row : CudaGemmVariants()) {
    if (MayChoose(row, problem, traits)) return row.name;
  }
  return "";
}

// Without cuBLASLt.
constexpr DeviceTraits kHopper = {.compute_capability = 90, .multiprocessors = 132};
constexpr DeviceTraits kAmpere = {.compute_capability = 80, .multiprocessors = 108};

TEST(GemmChoiceTest, LargeProductsGoToTheFastestRungOfTheirTypeAndDevice) {
  EXPECT_EQ(Choice(Product(DType::kBF16, 4096, 4096, 64), kHopper), "wgmma");
  EXPECT_EQ(Choice(Product(DType::kBF16, 4096, 4096, 64), kAmpere), "wmma");
  EXPECT_EQ(Choice(Product(DType::kF32, 4096, 4096, 64), kHopper), "double_buffered");
  EXPECT_EQ(Choice(Product(DType::kF32, 4095, 4095, 63), kHopper), "register_tiled");
  EXPECT_EQ(Choice(Product(DType::kI8, 4096, 4096, 64), kHopper), "register_tiled");
}

TEST(GemmChoiceTest, FewOrEmptyTilesGoToSmallOnes) {
  EXPECT_EQ(Choice(Product(DType::kF32, 128, 127, 4096), kHopper), "unrolled");
  EXPECT_EQ(Choice(Product(DType::kF32, 128, 128, 4096), kHopper), "vectorized");
  EXPECT_EQ(Choice(Product(DType::kF64, 1 << 20, 1, 64), kHopper), "unrolled");
  EXPECT_EQ(Choice(Product(DType::kBF16, 16, 1 << 20, 64), kHopper), "unrolled");
  GemmProblem batch = Product(DType::kI8, 16, 16, 16);
  batch.batch = GemmBatch::Dense(1000);
  EXPECT_EQ(Choice(batch, kHopper), "unrolled");
}

class GemmAlignmentTest : public GpuTest {};

// Vectors of 16 bytes would fault: the rows that load them refuse, the others compute.
TEST_F(GemmAlignmentTest, OnlyVectorRungsRefuseMisalignedOperands) {
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  const CudaContext context = {.traits = {.compute_capability = properties.major * 10 + properties.minor,
                                          .multiprocessors = properties.multiProcessorCount}};
  auto stream = gpu::CreateStream();
  ASSERT_TRUE(stream.ok());
  auto memory = gpu::AllocateDevice(std::size_t{4} << 20);
  ASSERT_TRUE(memory.ok());
  auto* base = static_cast<std::byte*>(memory->get());
  ASSERT_EQ(cudaMemset(base, 0, std::size_t{4} << 20), cudaSuccess);
  const StepScalars scalars;
  ASSERT_EQ(cudaMemcpy(base, &scalars, sizeof(scalars), cudaMemcpyHostToDevice), cudaSuccess);
  int refused = 0, computed = 0;
  for (DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    const GemmProblem problem = Product(dtype, 136, 264, 72);
    for (const auto& row : CudaGemmVariants()) {
      if (row.name == "cublas" || !Suits(row, problem, context.traits)) continue;
      for (const std::size_t at : {std::size_t{0}, SizeOf(dtype)}) {
        Operands operands;
        operands.in[0] = base + (std::size_t{1} << 20) + at;
        operands.in[1] = base + (std::size_t{2} << 20) + at;
        operands.out = base + (std::size_t{3} << 20) + at;
        operands.scalars = reinterpret_cast<const StepScalars*>(base);
        const bool is_vector = row.name == "vectorized" || row.name == "double_buffered" ||
                               row.name == "wmma" || row.name == "wgmma";
        const cudaError_t want = at != 0 && is_vector ? cudaErrorNotSupported : cudaSuccess;
        EXPECT_EQ(row.launch(problem, operands, context, stream->get()), want)
            << std::string(row.name) << " " << std::string(Name(dtype)) << " at " << at;
        EXPECT_EQ(cudaStreamSynchronize(stream->get()), cudaSuccess) << std::string(row.name);
        ++(want == cudaSuccess ? computed : refused);
      }
    }
  }
  EXPECT_GE(refused, 5);
  EXPECT_GE(computed, 12);
}

}  // namespace
}  // namespace warpline
