// Every way to run a program gives the same result: on its slots, over copies, as a graph, in pieces.
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "kernels/gpu/pinned_memory.h"
#include "kernels/map/pair.h"
#include "server/base/errors.h"
#include "server/device/cuda_plan.h"
#include "server/device/cut_pipeline.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/lane_runs.h"
#include "tests/testing/programs.h"

namespace warpline {
namespace {

constexpr std::size_t kNever = std::size_t{1} << 50;

// Pieces so small that a few hundred rows have many.
CutOptions SmallPieces() {
  return {.piece_bytes = 32 << 10,
          .min_piece_bytes = 256,
          .min_pieces = 4,
          .in_row_bytes = 256,
          .out_row_bytes = 512,
          .min_row_bytes = 64,
          .taper = 4};
}

// kPooled: a lane with no memory of its own takes a block of the pool for each program. kGraph: what is
// copied is launched so often that it becomes a graph.
enum class Way { kMapped, kCopied, kGraph, kPooled, kBlocks };

constexpr int kLaunchesForGraph = 10;

CudaBackendOptions Forced(Way way) {
  CudaBackendOptions options{.timing_sample = way == Way::kGraph ? 0 : 1};
  options.paths = {
      .mapped_bytes = 0, .mapped_bytes_alone = 0, .mapped_scattered_bytes = 0, .cut_bytes = kNever};
  if (way == Way::kMapped) {
    options.paths.mapped_bytes = options.paths.mapped_bytes_alone = kNever;
    options.paths.mapped_scattered_bytes = kNever;
  }
  if (way == Way::kPooled) options.lane_bytes = kTensorAlignment;
  if (way == Way::kBlocks) {
    options.paths.cut_bytes = 0;
    options.cutting = SmallPieces();
  }
  return options;
}

TransposeProblem Problem(DType dtype, const std::vector<std::int64_t>& dims, const std::vector<int>& perm,
                         std::int64_t row_stride = 0) {
  TransposeProblem problem{.dtype = dtype, .row_stride = row_stride};
  for (std::int64_t dim : dims) problem.shape.Append(dim);
  for (std::size_t i = 0; i < perm.size(); ++i) problem.perm[i] = static_cast<std::int8_t>(perm[i]);
  return problem;
}

// Returns the transpose of `in`.
std::vector<std::byte> Reference(const TransposeProblem& problem, std::span<const std::byte> in) {
  const std::size_t element = SizeOf(problem.dtype);
  const Strides strides = RowMajorStrides(problem.shape, problem.row_stride);
  const Shape shape = problem.OutputShape();
  std::vector<std::byte> out(static_cast<std::size_t>(shape.Count()) * element);
  PerAxis<std::int64_t> index{};
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < out.size(); i += element) {
    std::memcpy(out.data() + i, in.data() + static_cast<std::size_t>(offset) * element, element);
    for (int axis = shape.rank - 1; axis >= 0; --axis) {
      const std::int64_t stride = strides[problem.perm[axis]];
      offset += stride;
      if (++index[axis] < shape[axis]) break;
      offset -= index[axis] * stride;
      index[axis] = 0;
    }
  }
  return out;
}

// The first launch of a program is not timed.
void ExpectTransposes(LaneRuns& runs, const TransposeProblem& problem, std::size_t at,
                      const std::string& what, int launches = 2) {
  const Program program = TransposeProgram(problem);
  const auto compiled = runs.backend().Compile(program, PlanMemory(program))->program;
  std::unique_ptr<LaneRuns::Job> job;
  LaunchReport report;
  for (int i = 0; i < launches; ++i) {
    // The last from other slots than that before.
    job = runs.LaunchCompiled(program, compiled, at + (i + 1 < launches ? std::size_t{64} << 20 : 0));
    report = job->report.get_future().get();
    ASSERT_TRUE(report.status.ok()) << what << ": " << report.status;
  }
  ASSERT_EQ(report.variants.size(), 1u) << what;
  const std::vector<std::byte> want = Reference(problem, job->input);
  ASSERT_EQ(want.size(), job->output.size()) << what;
  if (std::memcmp(want.data(), job->output.data(), want.size()) == 0) return;
  std::size_t first = 0;
  while (want[first] == job->output[first]) ++first;
  FAIL() << what << ": wrong from byte " << first << " of " << want.size();
}

constexpr DType kDTypes[] = {DType::kU8, DType::kBF16, DType::kF32, DType::kF64, DType::kC128};

struct NamedWay {
  Way way;
  const char* name;
};
class CudaPathsTest : public GpuTest, public ::testing::WithParamInterface<NamedWay> {};

TEST_P(CudaPathsTest, TransposesOfEveryElementSizeAndAwkwardShapes) {
  const CudaBackendOptions options = Forced(GetParam().way);
  LaneRuns runs(options);
  if (HasFailure()) return;
  const int launches = GetParam().way == Way::kGraph ? kLaunchesForGraph : 2;
  int jobs = 0;
  int uncut = 0;  // too little even for the smallest pieces
  for (DType dtype : kDTypes) {
    for (std::int64_t rows : {256, 300, 511}) {
      for (std::int64_t cols : {128, 257, 600}) {
        for (std::int64_t padding : {0, 1, 16}) {
          const std::string what = std::string(Name(dtype)) + " " + std::to_string(rows) + "x" +
                                   std::to_string(cols) + "+" + std::to_string(padding);
          const TransposeProblem problem =
              Problem(dtype, {rows, cols}, {1, 0}, padding == 0 ? 0 : cols + padding);
          ExpectTransposes(runs, problem, /*at=*/static_cast<std::size_t>(jobs % 3) * 4096, what, launches);
          if (HasFailure()) return;
          ++jobs;
          const Program program = TransposeProgram(problem);
          if (!CutProgram(program, PlanMemory(program), std::size_t{1} << 30, options.cutting)) ++uncut;
        }
      }
    }
  }
  if (GetParam().way == Way::kBlocks) {
    EXPECT_LT(uncut, 5);
  }
  const Way way = GetParam().way;
  if (way == Way::kGraph) {
    EXPECT_EQ(runs.metrics().graph_cache.instantiations.Value(), jobs);
    return;  // nothing is timed
  }
  EXPECT_EQ(runs.whole(), way == Way::kMapped ? 0 : way == Way::kBlocks ? uncut : jobs);
  EXPECT_EQ(runs.metrics().graph_cache.instantiations.Value(), 0);
  EXPECT_EQ(runs.metrics().Transfer(0, "h2d").bytes.Value() > 0, way != Way::kMapped);
}

TEST_P(CudaPathsTest, BatchesAndOtherPermutations) {
  LaneRuns runs(Forced(GetParam().way));
  if (HasFailure()) return;
  for (DType dtype : kDTypes) {
    const TransposeProblem problems[] = {
        Problem(dtype, {3, 256, 300}, {0, 2, 1}),
        Problem(dtype, {3, 256, 300}, {0, 2, 1}, 333),
        Problem(dtype, {1000, 9, 13}, {0, 2, 1}),
        Problem(dtype, {1000, 9, 13}, {0, 2, 1}, 16),
        Problem(dtype, {256, 5, 256}, {2, 1, 0}),
        Problem(dtype, {40, 50, 60}, {2, 0, 1}),
        Problem(dtype, {16, 40, 8, 64}, {0, 2, 1, 3}),
        Problem(dtype, {1, 300, 1, 256}, {3, 1, 0, 2}),
        Problem(dtype, {300000}, {0}),
        Problem(dtype, {700, 200}, {0, 1}, 201),
        Problem(dtype, {50000, 16}, {1, 0}),
        Problem(dtype, {16, 50000}, {1, 0}),
        Problem(dtype, {50001, 3}, {1, 0}),
        Problem(dtype, {7, 11, 13, 17, 19}, {4, 2, 0, 3, 1}),
    };
    int index = 0;
    for (const TransposeProblem& problem : problems) {
      ExpectTransposes(runs, problem, 0, std::string(Name(dtype)) + " case " + std::to_string(index++),
                       GetParam().way == Way::kGraph ? kLaunchesForGraph : 2);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, CudaPathsTest,
                         ::testing::Values(NamedWay{Way::kMapped, "mapped"}, NamedWay{Way::kCopied, "copied"},
                                           NamedWay{Way::kGraph, "graph"}, NamedWay{Way::kBlocks, "blocks"},
                                           NamedWay{Way::kPooled, "pooled"}),
                         [](const auto& info) { return std::string(info.param.name); });

class CudaMappedTest : public GpuTest {};

// Other operations than transposes: the same kernels, so the same bits.
TEST_F(CudaMappedTest, GivesTheBitsOfCopiesAndOfGraphs) {
  LaneRuns mapped(Forced(Way::kMapped)), copied(Forced(Way::kCopied)), graphs(Forced(Way::kGraph));
  if (HasFailure()) return;
  std::vector<std::pair<std::string, Program>> programs;
  for (const Shape& shape : {Shape{512, 512}, Shape{511, 513}, Shape{3, 100003}}) {
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kI32}) {
      const auto count = static_cast<std::size_t>(shape.Count());
      const TensorSpec x{dtype, shape, count * SizeOf(dtype)};
      for (std::uint32_t axes : {1u, 2u, 3u}) {
        const ReduceProblem sum{.op = ReduceOp::kSum, .dtype = dtype, .shape = shape, .axes_mask = axes};
        const Shape out = sum.OutputShape(false);
        programs.emplace_back(
            "sum", OneStepProgram(sum, {x},
                                  {sum.OutDType(), out,
                                   static_cast<std::size_t>(out.Count()) * SizeOf(sum.OutDType())}));
      }
      const Strides dense = RowMajorStrides(shape);
      programs.emplace_back("add", OneStepProgram(ToMap({.op = PairOp::kAdd,
                                                         .dtype = dtype,
                                                         .out_dtype = dtype,
                                                         .shape = shape,
                                                         .x_strides = dense,
                                                         .y_strides = dense}),
                                                  {x, x}, x));
      programs.emplace_back("cast", OneStepProgram(ToMap({.op = PairOp::kCast,
                                                          .dtype = dtype,
                                                          .out_dtype = DType::kF64,
                                                          .shape = shape,
                                                          .x_strides = dense}),
                                                   {x}, {DType::kF64, shape, count * 8}));
    }
  }
  std::uint32_t seed = 0;
  for (const auto& [name, program] : programs) {
    ++seed;
    const std::vector<std::byte> want = mapped.Output(program, seed);
    const std::string what = name + " of " + std::string(Name(program.tensors[0].dtype)) + " " +
                             ToString(program.tensors[0].shape);
    EXPECT_EQ(want, copied.Output(program, seed)) << what;
    EXPECT_EQ(want, graphs.Output(program, seed, kLaunchesForGraph)) << what;
  }
  EXPECT_EQ(graphs.metrics().graph_cache.instantiations.Value(), static_cast<double>(programs.size()));
  EXPECT_EQ(mapped.whole(), 0);
  EXPECT_EQ(mapped.metrics().graph_cache.instantiations.Value(), 0);
}

class CudaPooledTest : public GpuTest {};

// Pieces too lie in the pool where the lane has no room for them.
TEST_F(CudaPooledTest, LargeProgramsEqualTheReferenceWholeAndInPieces) {
  for (const std::size_t cut_bytes : {kNever, std::size_t{0}}) {
    CudaBackendOptions options{.timing_sample = 1};
    options.paths.cut_bytes = cut_bytes;
    LaneRuns runs(options);
    if (HasFailure()) return;
    for (std::int64_t rows : {3000, 2999}) {
      const TransposeProblem problem = Problem(DType::kF32, {rows, 2501}, {1, 0});
      const Program program = TransposeProgram(problem);
      ASSERT_GT(runs.backend().Compile(program, PlanMemory(program))->device_bytes, 0u)
          << "it fits into a lane";
      for (int i = 0; i < 3; ++i) ExpectTransposes(runs, problem, 0, "rows " + std::to_string(rows));
    }
    EXPECT_EQ(runs.whole(), cut_bytes == kNever ? 6 : 0);
    EXPECT_EQ(runs.metrics().graph_cache.instantiations.Value(), 0);
    EXPECT_EQ(runs.metrics().DeviceMemoryBytes(0, "pool_used").Value(), 0);
  }
}

// The same kernels on the same device, so the same bits.
TEST_F(CudaPooledTest, ScratchAndWorkspaceLieInTheBlock) {
  LaneRuns pooled(Forced(Way::kPooled)), copied(Forced(Way::kCopied)), graphs(Forced(Way::kGraph));
  if (HasFailure()) return;
  const Shape shape{512, 768};
  Program program = ScaleThenTranspose(shape);
  program.tensors.push_back({DType::kF32, {512}, 512 * 4});
  program.steps.push_back(
      {.problem = ReduceProblem{.op = ReduceOp::kSum, .shape = {768, 512}, .axes_mask = 1},
       .variant = {},
       .inputs = {2},
       .output = 3,
       .scalars = {}});
  program.outputs = {3};
  const std::vector<std::byte> want = pooled.Output(program, 7);
  EXPECT_EQ(want, copied.Output(program, 7));
  EXPECT_EQ(want, graphs.Output(program, 7, kLaunchesForGraph));
}

TEST_F(CudaPooledTest, KnownProgramsAllocateNothing) {
  LaneRuns runs(Forced(Way::kPooled));
  if (HasFailure()) return;
  const auto allocated = [&] {
    return runs.metrics().Allocations("event").Value() + runs.metrics().Allocations("device").Value();
  };
  const auto run_all = [&] {
    for (std::int64_t rows : {512, 700, 1024}) {
      ExpectTransposes(runs, Problem(DType::kF32, {rows, 512}, {1, 0}), 0, "rows " + std::to_string(rows));
    }
  };
  run_all();
  const double before = allocated();
  std::size_t free_before = 0, free_after = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_before, &total), cudaSuccess);
  for (int i = 0; i < 100; ++i) run_all();
  ASSERT_EQ(cudaMemGetInfo(&free_after, &total), cudaSuccess);
  EXPECT_EQ(allocated(), before);
  EXPECT_EQ(free_after, free_before) << "the pool has grown or shrunk";
}

TEST_F(CudaPooledTest, ARefusalOfThePoolIsAStatusAndPasses) {
  CudaBackendOptions options = Forced(Way::kPooled);
  options.device_bytes = std::size_t{65} << 20;  // a pool of 64 MiB
  LaneRuns runs(options);
  if (HasFailure()) return;
  const TransposeProblem small = Problem(DType::kF32, {1000, 500}, {1, 0});
  const Program large = TransposeProgram(Problem(DType::kF32, {4096, 2304}, {1, 0}));  // 72 MiB
  EXPECT_EQ(runs.backend().Compile(large, PlanMemory(large)).status().code(),
            absl::StatusCode::kInvalidArgument);
  LaneRuns roomy(Forced(Way::kPooled));
  if (HasFailure()) return;
  const auto compiled = roomy.backend().Compile(large, PlanMemory(large))->program;
  for (int i = 0; i < 3; ++i) {
    // Simulates a pool that others have left in pieces: the scheduler lets no program through that does not
    // fit.
    const LaunchReport refused = runs.LaunchCompiled(large, compiled)->report.get_future().get();
    EXPECT_EQ(refused.status.code(), absl::StatusCode::kResourceExhausted) << refused.status;
    EXPECT_TRUE(RetryAfterOf(refused.status).has_value());
    ExpectTransposes(runs, small, 0, "after a refusal");
  }
}

class CudaBlocksTest : public GpuTest {};

TEST_F(CudaBlocksTest, OnlyAJobThatIsAloneIsCut) {
  LaneRuns runs(Forced(Way::kBlocks), /*lanes=*/2);
  if (HasFailure()) return;
  const TransposeProblem problem = Problem(DType::kF32, {1500, 1000}, {1, 0});
  const Program program = TransposeProgram(problem);
  const auto compiled = runs.backend().Compile(program, PlanMemory(program))->program;
  for (int round = 0; round < 20; ++round) {
    // The second finds the first on the device, if the first is not quicker than the launch of the second.
    const auto first = runs.LaunchCompiled(program, compiled, 0, 0);
    const auto second = runs.LaunchCompiled(program, compiled, std::size_t{16} << 20, 1);
    for (const auto* job : {first.get(), second.get()}) {
      const LaunchReport report = const_cast<LaneRuns::Job*>(job)->report.get_future().get();
      ASSERT_TRUE(report.status.ok()) << report.status;
      const std::vector<std::byte> want = Reference(problem, job->input);
      ASSERT_EQ(std::memcmp(want.data(), job->output.data(), want.size()), 0) << "round " << round;
    }
  }
  EXPECT_LE(runs.whole(), 20) << "the first of two is alone";
}

TEST_F(CudaBlocksTest, TimesOfAJobInPiecesCountItOnce) {
  LaneRuns runs(Forced(Way::kBlocks));
  if (HasFailure()) return;
  const TransposeProblem problem = Problem(DType::kF32, {1024, 512}, {1, 0});
  for (int i = 0; i < 3; ++i) ExpectTransposes(runs, problem, 0, "round " + std::to_string(i));
  const double bytes = 1024.0 * 512 * 4;
  EXPECT_EQ(
      runs.metrics().Kernel(Op::kTranspose, "tiles", DType::kF32, KernelMemory::kPieces, 0).bytes.Value(),
      3 * 2 * bytes);
  EXPECT_EQ(runs.metrics().Transfer(0, "h2d").bytes.Value(), 3 * bytes);
  EXPECT_EQ(runs.metrics().Transfer(0, "d2h").bytes.Value(), 3 * bytes);
  EXPECT_GT(runs.metrics().Transfer(0, "h2d").seconds.Value(), 0);
  EXPECT_GT(runs.metrics().Transfer(0, "d2h").seconds.Value(), 0);
}

TEST_F(CudaBlocksTest, KnownProgramsInstantiateAndAllocateNothing) {
  LaneRuns runs(Forced(Way::kBlocks));
  if (HasFailure()) return;
  const auto made = [&] {
    return runs.metrics().graph_cache.instantiations.Value() + runs.metrics().Allocations("event").Value() +
           runs.metrics().Allocations("device").Value();
  };
  double first = 0;
  for (int i = 0; i < 100; ++i) {
    for (std::int64_t rows : {512, 700, 1024}) {
      ExpectTransposes(runs, Problem(DType::kF32, {rows, 512}, {1, 0}), 0, "rows " + std::to_string(rows));
    }
    if (i == 0) first = made();
  }
  EXPECT_EQ(made(), first);
}

// A copy that CUDA refuses in the middle: what was enqueued before it ends, and the streams go on.
TEST_F(CudaBlocksTest, AFailedEnqueueLeavesStreamsThatWork) {
  const TransposeProblem problem = Problem(DType::kF32, {512, 512}, {1, 0});
  const Program program = TransposeProgram(problem);
  const MemoryPlan plan = PlanMemory(program);
  const CudaKind kind;
  const auto compiled =
      CompileForCuda(program, plan, {&kind, 1}, 1,
                     {.lane_bytes = kNever, .paths = {.cut_bytes = 0}, .cutting = SmallPieces()});
  CudaPlan& in_pieces = compiled->plans[0];
  Cutting* const cutting = in_pieces.cutting.has_value() ? &*in_pieces.cutting : nullptr;
  ASSERT_NE(cutting, nullptr);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  auto pipeline = CutPipeline::Create();
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  auto stream = gpu::CreateStream();
  auto arena = gpu::AllocateDevice(cutting->arena_bytes);
  ASSERT_TRUE(stream.ok() && arena.ok());
  auto memory = gpu::PinnedMemory::Allocate(plan.input_bytes + plan.output_bytes);
  ASSERT_TRUE(memory.ok()) << memory.status();
  std::byte* const slots = memory->bytes().data();
  for (std::size_t i = 0; i < plan.input_bytes; ++i) slots[i] = static_cast<std::byte>(i * 7 + i / 256);
  const CudaContext context;
  const auto enqueue = [&] {
    return pipeline->Enqueue({.plan = in_pieces,
                              .input = {slots, plan.input_bytes},
                              .output = {slots + plan.input_bytes, plan.output_bytes},
                              .arena = {static_cast<std::byte*>(arena->get()), cutting->arena_bytes},
                              .context = context,
                              .kernels = stream->get(),
                              .pipelined = true});
  };
  PieceCopy& copy = cutting->pieces[cutting->pieces.size() / 2].in;
  ASSERT_GT(copy.rows, 1u);
  const std::size_t pitch = std::exchange(copy.host_pitch, copy.width - 1);
  EXPECT_FALSE(enqueue().ok());
  pipeline->Drain();
  EXPECT_EQ(cudaStreamSynchronize(stream->get()), cudaSuccess);
  copy.host_pitch = pitch;
  const auto variant = enqueue();
  ASSERT_TRUE(variant.ok()) << variant.status();
  EXPECT_EQ(cudaStreamSynchronize(pipeline->last()), cudaSuccess);
  const std::vector<std::byte> want = Reference(problem, {slots, plan.input_bytes});
  EXPECT_EQ(std::memcmp(want.data(), slots + plan.input_bytes, want.size()), 0);
}

}  // namespace
}  // namespace warpline
