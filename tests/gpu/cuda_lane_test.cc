// The graphs of a lane, on a real device.
#include <cstring>
#include <future>
#include <map>
#include <random>

#include "kernels/problem_text.h"
#include "server/device/cuda_backend.h"
#include "server/observe/metrics.h"
#include "tests/gpu/gpu_test.h"

namespace warpline {
namespace {

// So that small problems show all kinds: on their slots, over copies, in memory of the pool.
constexpr std::size_t kMaxMapped = std::size_t{128} << 10;
constexpr std::size_t kLaneBytes = std::size_t{1} << 20;

class CudaLaneTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) Open(/*kept_multiprocessors=*/0);
  }

  void Open(int kept_multiprocessors) {
    lane_.reset();
    compiled_.clear();
    memory_ = Buffer();
    backend_.reset();
    auto backend = CreateCudaBackend({.lane_bytes = kLaneBytes,
                                      .graph_cache_entries = 32,
                                      .paths = {.mapped_bytes = kMaxMapped,
                                                .mapped_bytes_alone = kMaxMapped,
                                                .mapped_scattered_bytes = kMaxMapped},
                                      .timing_sample = 4,
                                      .timing_period = absl::InfiniteDuration(),
                                      .kept_multiprocessors = kept_multiprocessors,
                                      .metrics = &metrics_});
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = std::move(*backend);
    lane_ = *backend_->CreateLane(0);
    memory_ = *backend_->AllocateHost(8 << 20);
  }

  static Program Transpose(std::int64_t rows, std::int64_t cols, const std::string& variant = {}) {
    Program program;
    TransposeProblem problem{DType::kF32, {rows, cols}, {1, 0}};
    const std::size_t bytes = static_cast<std::size_t>(rows * cols) * 4;
    program.tensors = {{DType::kF32, problem.shape, bytes}, {DType::kF32, problem.OutputShape(), bytes}};
    program.num_inputs = 1;
    program.steps.push_back(
        {.problem = problem, .variant = variant, .inputs = {0}, .output = 1, .scalars = {}});
    program.outputs = {1};
    return program;
  }

  // Runs it with its slots at `offset` of the pinned memory, checks the result.
  void RunTranspose(std::int64_t rows, std::int64_t cols, std::size_t offset,
                    const std::string& variant = {}) {
    const Program program = Transpose(rows, cols, variant);
    const MemoryPlan plan = PlanMemory(program);
    auto& compiled = compiled_[{rows, cols, variant}];
    if (compiled == nullptr) compiled = backend_->Compile(program, plan)->program;
    const Bindings bindings = MakeBindings(plan);
    const auto input = memory_.bytes().subspan(offset, plan.input_bytes);
    const auto output = memory_.bytes().subspan(offset + (2 << 20), plan.output_bytes);
    auto* in = reinterpret_cast<float*>(input.data());
    for (std::int64_t i = 0; i < rows * cols; ++i) in[i] = static_cast<float>(random_() % 100000);
    std::memset(output.data(), 0xcd, output.size());
    std::promise<LaunchReport> promise;
    StagedProgram staged = {&program, &plan, compiled.get(), bindings, input, output};
    staged.urgent = urgent_;
    lane_->Launch(staged, [&](LaunchReport report) { promise.set_value(std::move(report)); });
    const LaunchReport report = promise.get_future().get();
    ASSERT_TRUE(report.status.ok()) << report.status;
    const auto* out = reinterpret_cast<const float*>(output.data());
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) ASSERT_EQ(out[c * rows + r], in[r * cols + c]) << r << "," << c;
    }
  }

  // Bytes of transposes of f32 that were timed.
  double BytesOf(std::string_view kernel, KernelMemory memory) {
    return metrics_.Kernel(Op::kTranspose, kernel, DType::kF32, memory, 0).bytes.Value();
  }

  Metrics metrics_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Lane> lane_;
  Buffer memory_;
  std::mt19937 random_{1};
  bool urgent_ = false;
  std::map<std::tuple<std::int64_t, std::int64_t, std::string>, std::shared_ptr<const DeviceProgram>>
      compiled_;
};

TEST_F(CudaLaneTest, ACachedGraphServesOtherSlots) {
  for (int i = 0; i < 24; ++i) {
    for (std::size_t offset : {std::size_t{0}, std::size_t{4096}, std::size_t{1} << 20})
      RunTranspose(256, 192, offset);
  }
  EXPECT_EQ(metrics_.graph_cache.instantiations.Value(), 1);
  // One in four is timed, call by call.
  EXPECT_EQ(metrics_.graph_cache.misses.Value() + metrics_.graph_cache.hits.Value(), 72 * 3 / 4);
  EXPECT_LE(metrics_.graph_cache.misses.Value(), 9);
}

// On all paths, and alternately, as beside jobs of others.
TEST_F(CudaLaneTest, WithKeptMultiprocessorsEveryJobIsServedFromAnySlots) {
  Open(/*kept_multiprocessors=*/8);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t offset : {std::size_t{0}, std::size_t{4096}, std::size_t{1} << 20}) {
      RunTranspose(16, 32, offset);
      RunTranspose(256, 192, offset);
      RunTranspose(256, 192, offset, "swizzled_packed");
      RunTranspose(512, 1000, offset);
    }
  }
  EXPECT_EQ(metrics_.graph_cache.instantiations.Value(), 0);
}

// It changes between the two streams, each of which has a graph.
TEST_F(CudaLaneTest, AShortProgramIsServedBesideLongOnesToo) {
  for (int i = 0; i < 48; ++i) {
    urgent_ = i % 3 != 0;
    RunTranspose(256, 192, i % 2 == 0 ? 0 : 4096);
  }
  EXPECT_EQ(metrics_.graph_cache.instantiations.Value(), 2);
  EXPECT_GT(metrics_.graph_cache.hits.Value(), 0);
}

TEST_F(CudaLaneTest, TenThousandMixedKnownRequestsInstantiateAndAllocateNothing) {
  // Every other one is too large to run on its slots, and most of those for the lane's memory.
  const auto shape = [](int i) {
    return std::pair<std::int64_t, std::int64_t>(1 + i % 16, i % 2 == 0 ? 33 : 20011);
  };
  // Calls become graphs after a few launches. One in four is timed, and never becomes one.
  for (int i = 0; i < 16 * 16; ++i) {
    const int which = (i + i / 16) % 16;
    RunTranspose(shape(which).first, shape(which).second, 0);
  }
  const double instantiations = metrics_.graph_cache.instantiations.Value();
  const auto allocated = [&] {
    return metrics_.Allocations("device").Value() + metrics_.Allocations("event").Value() +
           metrics_.Allocations("pinned").Value();
  };
  const double allocations = allocated();
  for (int i = 0; i < 10000; ++i) {
    const int which = static_cast<int>(random_() % 16);
    RunTranspose(shape(which).first, shape(which).second, 4096 * (random_() % 8));
  }
  EXPECT_GT(instantiations, 0);
  EXPECT_EQ(metrics_.graph_cache.instantiations.Value(), instantiations);
  EXPECT_EQ(allocated(), allocations);
  EXPECT_EQ(metrics_.DeviceMemoryBytes(0, "pool_used").Value(), 0);
}

TEST_F(CudaLaneTest, EvictedGraphsAreMadeAgain) {
  for (int round = 0; round < 24; ++round) {
    for (std::int64_t rows = 1; rows <= 61; ++rows) RunTranspose(rows, 700, 0);
  }
  EXPECT_GT(metrics_.graph_cache.evictions.Value(), 0);
}

TEST_F(CudaLaneTest, ASmallProgramRunsOnItsSlots) {
  for (std::size_t offset : {std::size_t{0}, std::size_t{4096}}) {
    for (std::int64_t rows : {1, 2, 31, 32, 33, 127}) {
      for (std::int64_t cols : {1, 3, 32, 128}) RunTranspose(rows, cols, offset);
    }
  }
  EXPECT_EQ(metrics_.graph_cache.instantiations.Value(), 0);
  EXPECT_EQ(metrics_.Transfer(0, "h2d").bytes.Value(), 0);
  // One in four is sampled, and these are of one column each.
  EXPECT_GT(BytesOf("copy", KernelMemory::kHost), 0);
  EXPECT_EQ(BytesOf("copy", KernelMemory::kDevice), 0);
}

TEST_F(CudaLaneTest, CallsThatComeAgainBecomeAGraphThatIsPointedAtOtherSlots) {
  for (int i = 0; i < 40; ++i) RunTranspose(33, 31, 4096 * static_cast<std::size_t>(i % 5));
  EXPECT_EQ(metrics_.graph_cache.instantiations.Value(), 1);
  EXPECT_GT(metrics_.DeviceMemoryBytes(0, "graphs").Value(), 0);
  EXPECT_GT(BytesOf("box", KernelMemory::kHost), 0) << "samples are taken of calls";
}

TEST_F(CudaLaneTest, AVariantAskedForByNameRunsOnDeviceMemory) {
  for (int i = 0; i < 4; ++i) RunTranspose(32, 32, 0, "swizzled_packed");
  EXPECT_GT(metrics_.Transfer(0, "h2d").bytes.Value(), 0);
}

TEST_F(CudaLaneTest, AlgorithmsOfALibraryAreVariantsByTheirRank) {
  const Problem problem = *ParseProblem("gemm f32 512x512x512");
  if (!backend_->CheckVariant(problem, "cublas").ok()) GTEST_SKIP() << "no cuBLASLt";
  EXPECT_TRUE(backend_->CheckVariant(problem, "cublas:2").ok());
  EXPECT_FALSE(backend_->CheckVariant(problem, "cublas:17").ok());
}

TEST_F(CudaLaneTest, SampledJobsAreTimed) {
  for (int i = 0; i < 8; ++i) RunTranspose(256, 256, 0);
  EXPECT_EQ(BytesOf("tiles", KernelMemory::kDevice), 2 * 2.0 * 256 * 256 * 4);
  EXPECT_GT(metrics_.Transfer(0, "h2d").seconds.Value(), 0);
  EXPECT_EQ(metrics_.Transfer(0, "d2h").bytes.Value(), 2 * 256.0 * 256 * 4);
}

}  // namespace
}  // namespace warpline
