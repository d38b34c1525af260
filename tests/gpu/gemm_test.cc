// Matrix products: which row is chosen, and addresses that are aligned to an element only.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda_choice.h"
#include "kernels/gpu/handle.h"
#include "kernels/gpu/random_data.h"
#include "kernels/ladder/rungs.h"
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
  return Choose(problem, {}, traits, Operands()).name();
}

// Without cuBLASLt.
constexpr DeviceTraits kHopper = {.compute_capability = 90, .multiprocessors = 132};
constexpr DeviceTraits kAmpere = {.compute_capability = 80, .multiprocessors = 108};

TEST(GemmChoiceTest, LargeProductsGoToTheFastestRungOfTheirTypeAndDevice) {
  EXPECT_EQ(Choice(Product(DType::kBF16, 4096, 4096, 64), kHopper), "wgmma");
  EXPECT_EQ(Choice(Product(DType::kBF16, 4096, 4096, 64), kAmpere), "mma");
  EXPECT_EQ(Choice(Product(DType::kBF16, 4095, 4095, 63), kHopper), "wgmma_packed");
  EXPECT_EQ(Choice(Product(DType::kF32, 4096, 4096, 64), kHopper), "wide_loads");
  EXPECT_EQ(Choice(Product(DType::kF32, 4095, 4095, 63), kHopper), "register_tiled");
  EXPECT_EQ(Choice(Product(DType::kI8, 4096, 4096, 64), kHopper), "register_tiled");
}

TEST(GemmChoiceTest, FewOrEmptyTilesGoToSmallOnes) {
  EXPECT_EQ(Choice(Product(DType::kF32, 128, 128, 4096), kHopper), "unrolled");
  EXPECT_EQ(Choice(Product(DType::kBF16, 16, 1 << 20, 64), kHopper), "unrolled");
  GemmProblem batch = Product(DType::kI8, 16, 16, 16);
  batch.batch = GemmBatch::Dense(1000);
  EXPECT_EQ(Choice(batch, kHopper), "unrolled");
}

TEST(GemmChoiceTest, FewRowsOrColumnsGoToGemv) {
  EXPECT_EQ(Choice(Product(DType::kF64, 1 << 20, 1, 64), kHopper), "gemv");
  EXPECT_EQ(Choice(Product(DType::kF32, 4, 8192, 8192), kHopper), "gemv");
  // Rows of B that are not aligned, and a product that is over before a second kernel has begun.
  EXPECT_EQ(Choice(Product(DType::kF32, 4, 8191, 8192), kHopper), "unrolled");
}

// With cuBLASLt.
constexpr DeviceTraits kH200 = {.compute_capability = 90, .multiprocessors = 132, .has_cublaslt = true};

TEST(GemmChoiceTest, TheLibraryGetsWhatItDoesWellAndAsPromised) {
  EXPECT_EQ(Choice(Product(DType::kBF16, 4096, 4096, 4096), kH200), "cublas");
  EXPECT_EQ(Choice(Product(DType::kF32, 4095, 4095, 4095), kH200), "cublas");
  // Rows that are not aligned are worth two copies where the product is large: for the library, and, where
  // rows of D are many, for wgmma.
  EXPECT_EQ(Choice(Product(DType::kBF16, 4095, 4096, 4095), kH200), "cublas_packed");
  EXPECT_EQ(Choice(Product(DType::kBF16, 1001, 1003, 1005), kH200), "cublas_packed");
  EXPECT_EQ(Choice(Product(DType::kBF16, 4095, 4095, 4095), kH200), "wgmma_packed");
  EXPECT_EQ(Choice(Product(DType::kBF16, 65, 65, 65), kH200), "cublas");
  EXPECT_EQ(Choice(Product(DType::kI8, 1001, 1003, 1005), kH200), "cublas_packed");
  EXPECT_EQ(Choice(Product(DType::kI8, 64, 64, 64), kH200), "cublas");
  GemmProblem problem = Product(DType::kF64, 2048, 2048, 2048);
  problem.has_bias = true;
  EXPECT_EQ(Choice(problem, kH200), "cublas_epilogue");
  problem = Product(DType::kF32, 2048, 2048, 2048);
  problem.activation = Activation::kGelu;
  EXPECT_EQ(Choice(problem, kH200), "cublas_epilogue");
  // Rows of D that are not aligned, which it writes slowly, but not as slowly as few tiles of wgmma take.
  problem = Product(DType::kBF16, 1024, 1023, 1024);
  problem.trans_b = true;
  problem.ldb = 1024;
  EXPECT_EQ(Choice(problem, kH200), "wgmma");
  problem.m = 1 << 20;  // sums would be too large for a workspace
  EXPECT_EQ(Choice(problem, kH200), "wgmma");
  problem.m = 128;
  problem.has_bias = true;
  EXPECT_EQ(Choice(problem, kH200), "cublas_epilogue");
  problem.has_bias = false;
  EXPECT_EQ(Choice(problem, kH200), "cublas");
  // A few rows of A and a B that it reads as slowly.
  problem = Product(DType::kBF16, 8, 50257, 768);
  problem.trans_b = true;
  problem.ldb = 768;
  EXPECT_EQ(Choice(problem, kH200), "wgmma");
  // ReLU of what was rounded before is ReLU rounded; a sum is not.
  problem = Product(DType::kBF16, 203, 1691, 104);
  problem.activation = Activation::kRelu;
  EXPECT_EQ(Choice(problem, kH200), "cublas");
  problem.has_bias = true;
  EXPECT_EQ(Choice(problem, kH200), "cublas_epilogue");
  // One kernel is over before the second of two has begun.
  problem = Product(DType::kBF16, 75, 338, 29);
  problem.has_bias = true;
  EXPECT_EQ(Choice(problem, kH200), "unrolled");
  // And a bias in such rows.
  problem = Product(DType::kF32, 2048, 2047, 2048);
  problem.has_bias = true;
  EXPECT_EQ(Choice(problem, kH200), "cublas");
  problem.precision = Precision::kTf32;
  EXPECT_EQ(Choice(problem, kH200), "cublas_epilogue");
  problem.has_c = true;  // which may lie where D does
  EXPECT_EQ(Choice(problem, kH200), "cublas");
  // wgmma adds the bias where the sums are.
  problem = Product(DType::kBF16, 4096, 4092, 4096);
  problem.trans_b = true;
  problem.ldb = 4096;
  problem.has_bias = true;
  EXPECT_EQ(Choice(problem, kH200), "wgmma");
}

TEST(GemmChoiceTest, OddRowsThatTheLibraryWritesSlowlyOrNotAtAll) {
  // Operands that are aligned, and few of their elements for each of D.
  GemmProblem problem = Product(DType::kBF16, 13267, 13877, 8);
  problem.trans_b = true;
  problem.ldb = 8;
  EXPECT_EQ(Choice(problem, kH200), "wgmma");
  // A second kernel that the library would need.
  problem = Product(DType::kBF16, 1024, 2001, 128);
  problem.trans_b = true;
  problem.ldb = 128;
  problem.has_bias = true;
  EXPECT_EQ(Choice(problem, kH200), "wgmma");
  // Few vectors and long rows, which gemv reads faster.
  problem = Product(DType::kBF16, 4, 8191, 8192);
  problem.trans_b = true;
  problem.ldb = 8192;
  EXPECT_EQ(Choice(problem, kH200), "gemv");
  problem.m = 16;
  EXPECT_EQ(Choice(problem, kH200), "wgmma");
  problem = Product(DType::kBF16, 7213, 5, 4784);
  problem.trans_b = true;
  problem.ldb = 4784;
  EXPECT_EQ(Choice(problem, kH200), "gemv");
  problem = Product(DType::kBF16, 20000, 1, 4096);
  EXPECT_EQ(Choice(problem, kH200), "cublas");
  EXPECT_EQ(Choice(Product(DType::kBF16, 16384, 1, 16384), kH200), "cublas");
  problem.trans_b = true;
  problem.ldb = 4096;
  EXPECT_EQ(Choice(problem, kH200), "cublas");
  problem.m = 16896;  // as many tiles as there are multiprocessors
  problem.k = problem.lda = problem.ldb = 8192;
  EXPECT_EQ(Choice(problem, kH200), "cublas");
  // Sums that no workspace holds.
  problem = Product(DType::kBF16, 20001, 20001, 1001);
  problem.has_c = true;
  problem.activation = Activation::kGelu;
  EXPECT_EQ(Choice(problem, kH200), "wgmma_packed");
  // More calls of the library than a graph may hold.
  problem = Product(DType::kBF16, 1024, 1024, 1023);
  problem.batch = GemmBatch();
  problem.batch.Append(20, 1, 0, 20);
  problem.batch.Append(20, 0, 1, 1);
  EXPECT_EQ(Choice(problem, kH200), "wgmma_packed");
  problem.m = 16;
  problem.n = 8191;
  problem.k = problem.lda = problem.ldb = 8192;
  problem.trans_b = true;
  EXPECT_EQ(Choice(problem, kH200), "wgmma");
  problem.m = 4;
  EXPECT_EQ(Choice(problem, kH200), "gemv");
}

TEST(GemmChoiceTest, GemvOnlyWhereItBeatsTheLibrary) {
  EXPECT_EQ(Choice(Product(DType::kF32, 4, 8192, 8192), kH200), "gemv");
  EXPECT_EQ(Choice(Product(DType::kF32, 16, 8192, 8192), kH200), "cublas");
  EXPECT_EQ(Choice(Product(DType::kF64, 1, 8192, 8192), kH200), "cublas");
  EXPECT_EQ(Choice(Product(DType::kBF16, 1, 8192, 8192), kH200), "cublas");
  // Rows of D of four bytes.
  EXPECT_EQ(Choice(Product(DType::kBF16, 8192, 2, 8192), kH200), "gemv");
  GemmProblem problem = Product(DType::kF32, 1, 8192, 8192);
  problem.precision = Precision::kTf32;
  EXPECT_EQ(Choice(problem, kH200), "cublas");
  problem.trans_b = true;
  EXPECT_EQ(Choice(problem, kH200), "gemv");
}

TEST(StridedBatchTest, StridesTheLargestAxisAndLoopsOverTheOthers) {
  GemmBatch batch;  // (32, 1) with (1, 8)
  batch.Append(32, 1, 0, 8);
  batch.Append(8, 0, 1, 1);
  const StridedBatch strided = StridedBatch::OfLargestAxis(batch);
  EXPECT_EQ(strided.count, 32);
  EXPECT_EQ(strided.a, 1);
  EXPECT_EQ(strided.b, 0);
  EXPECT_EQ(strided.c, 8);
  EXPECT_EQ(strided.d, 8);
  ASSERT_EQ(strided.loop.Count(), 8);
  for (std::int64_t i = 0; i < 8; ++i) {
    const GemmBatch::Matrices at = strided.loop.At(i);
    EXPECT_EQ(at.a, 0);
    EXPECT_EQ(at.b, i);
    EXPECT_EQ(at.c, i);
    EXPECT_EQ(strided.DAt(i), i);
  }
}

// Every matrix of D comes about once, of the matrices that GemmBatch::At names.
TEST(StridedBatchTest, StepsAndStridesMeetEveryMatrix) {
  GemmBatch batch;
  batch.Append(2, 0, 1, 0);
  batch.Append(5, 1, 0, 1);
  batch.Append(3, 0, 2, 2);
  for (const StridedBatch& strided : {StridedBatch::OfLargestAxis(batch), StridedBatch::OfNoAxis(batch)}) {
    std::vector<int> met(static_cast<std::size_t>(batch.Count()));
    for (std::int64_t i = 0; i < strided.loop.Count(); ++i) {
      const GemmBatch::Matrices base = strided.loop.At(i);
      for (std::int64_t j = 0; j < strided.count; ++j) {
        const std::int64_t d = strided.DAt(i) + j * strided.d;
        const GemmBatch::Matrices want = batch.At(d);
        EXPECT_EQ(base.a + j * strided.a, want.a);
        EXPECT_EQ(base.b + j * strided.b, want.b);
        EXPECT_EQ(base.c + j * strided.c, want.c);
        ++met[static_cast<std::size_t>(d)];
      }
    }
    EXPECT_EQ(met, std::vector<int>(met.size(), 1));
  }
  EXPECT_EQ(StridedBatch::OfLargestAxis(GemmBatch()).count, 1);
  EXPECT_EQ(StridedBatch::OfLargestAxis(GemmBatch()).loop.Count(), 1);
}

class GemmAlignmentTest : public GpuTest {
 protected:
  static CudaContext Context() {
    cudaDeviceProp properties;
    EXPECT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    return {.traits = {.compute_capability = properties.major * 10 + properties.minor,
                       .multiprocessors = properties.multiProcessorCount}};
  }
};

// D alone may be unaligned: it is written by words or elements then instead of vectors, is the same, and
// nothing beside it is touched.
TEST_F(GemmAlignmentTest, ADThatBeginsWithinAWordIsTheSame) {
  const CudaContext context = Context();
  auto stream = gpu::CreateStream();
  ASSERT_TRUE(stream.ok());
  constexpr std::size_t kMiB = std::size_t{1} << 20, kGuard = 64;  // elements on both sides of D
  auto memory = gpu::AllocateDevice(4 * kMiB);
  ASSERT_TRUE(memory.ok());
  auto* base = static_cast<std::byte*>(memory->get());
  const GemmProblem problem = Product(DType::kBF16, 133, 520, 72);
  const auto count = static_cast<std::size_t>(problem.m * problem.n);
  ASSERT_EQ(gpu::FillNumbers(base + kMiB, DType::kBF16, problem.m * problem.k, 1, stream->get()),
            cudaSuccess);
  ASSERT_EQ(gpu::FillNumbers(base + 2 * kMiB, DType::kBF16, problem.k * problem.n, 2, stream->get()),
            cudaSuccess);
  const StepScalars scalars;
  ASSERT_EQ(cudaMemcpy(base, &scalars, sizeof(scalars), cudaMemcpyHostToDevice), cudaSuccess);
  int compared = 0;
  for (const auto& row : CudaGemmVariants()) {
    if ((row.name != "wgmma" && row.name != "mma") || !Suits(row, problem, context.traits)) continue;
    std::vector<std::uint16_t> results[2];
    for (const std::size_t at : {0, 1}) {
      // Other bytes each time, so that what is not written differs.
      const int fill = at == 0 ? 0xa5 : 0x5a;
      const auto guard = static_cast<std::uint16_t>(fill * 0x101);
      ASSERT_EQ(cudaMemset(base + 3 * kMiB, fill, kMiB), cudaSuccess);
      Operands operands;
      operands.in[0] = base + kMiB;
      operands.in[1] = base + 2 * kMiB;
      operands.out = base + 3 * kMiB + (kGuard + at) * sizeof(std::uint16_t);
      operands.scalars = reinterpret_cast<const StepScalars*>(base);
      ASSERT_EQ(row.launch(problem, operands, context, stream->get()), cudaSuccess) << std::string(row.name);
      ASSERT_EQ(cudaStreamSynchronize(stream->get()), cudaSuccess) << std::string(row.name);
      std::vector<std::uint16_t> all(count + 2 * kGuard + 1);
      ASSERT_EQ(
          cudaMemcpy(all.data(), base + 3 * kMiB, all.size() * sizeof(std::uint16_t), cudaMemcpyDeviceToHost),
          cudaSuccess);
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(kGuard + at);
      const auto end = first + static_cast<std::ptrdiff_t>(count);
      results[at].assign(first, end);
      EXPECT_EQ(std::count(all.begin(), first, guard), first - all.begin()) << std::string(row.name);
      EXPECT_EQ(std::count(end, all.end(), guard), all.end() - end) << std::string(row.name);
    }
    EXPECT_EQ(results[0], results[1]) << std::string(row.name);
    ++compared;
  }
  EXPECT_GE(compared, 1);
}

// Vectors of 16 bytes would fault: the rows that load them refuse, the others compute.
TEST_F(GemmAlignmentTest, OnlyVectorRungsRefuseMisalignedOperands) {
  const CudaContext context = Context();
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
    for (const auto* each : Climb(problem)) {
      const auto& row = *each;
      if (row.name == "cublas" || !Suits(row, problem, context.traits)) continue;
      for (const std::size_t at : {std::size_t{0}, SizeOf(dtype)}) {
        Operands operands;
        operands.in[0] = base + (std::size_t{1} << 20) + at;
        operands.in[1] = base + (std::size_t{2} << 20) + at;
        operands.out = base + (std::size_t{3} << 20) + at;
        operands.scalars = reinterpret_cast<const StepScalars*>(base);
        const bool is_vector = row.name == "vectorized" || row.name == "wide_loads" ||
                               row.name == "double_buffered" || row.name == "wmma" || row.name == "mma" ||
                               row.name == "wgmma";
        const cudaError_t want = at != 0 && is_vector ? cudaErrorNotSupported : cudaSuccess;
        EXPECT_EQ(row.launch(problem, operands, context, stream->get()), want)
            << std::string(row.name) << " " << std::string(Name(dtype)) << " at " << at;
        EXPECT_EQ(cudaStreamSynchronize(stream->get()), cudaSuccess) << std::string(row.name);
        ++(want == cudaSuccess ? computed : refused);
      }
    }
  }
  EXPECT_GE(refused, 8);  // and wgmma on Hopper
  EXPECT_GE(computed, 12);
}

}  // namespace
}  // namespace warpline
