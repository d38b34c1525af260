// Tests where the cpu backend takes the memory for intermediates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_variants.h"
#include "server/device/cpu_backend.h"
#include "tests/testing/programs.h"

namespace warpline {
namespace {

constexpr std::int64_t kSide = 512;
constexpr std::size_t kMiB = std::size_t{1} << 20;  // of a matrix of f32 with that side

const Shape kShape{kSide, kSide};

// The intermediate matrix, and what the map computes in.
std::size_t ScratchBytes(const Program& program) {
  const auto& map = std::get<MapProblem>(program.steps[0].problem);
  return kMiB + CpuMapVariants()[0].workspace_bytes(map, {});
}

TEST(CpuScratchTest, AProgramThatFitsALaneTakesNothingElse) {
  const Program program = ScaleThenTranspose(kShape);
  const auto backend = *CreateCpuBackend({.lane_bytes = ScratchBytes(program)});
  EXPECT_EQ(backend->Compile(program, PlanMemory(program))->device_bytes, 0u);
}

TEST(CpuScratchTest, ALargerOneGetsItsMemoryForTheRun) {
  const Program program = ScaleThenTranspose(kShape);
  const auto backend = *CreateCpuBackend({.lane_bytes = ScratchBytes(program) - 1});
  const MemoryPlan plan = PlanMemory(program);
  const CompiledProgram compiled = *backend->Compile(program, plan);
  EXPECT_EQ(compiled.device_bytes, ScratchBytes(program));
  const auto lane = *backend->CreateLane(0);
  std::vector<std::byte> input(plan.input_bytes), output(plan.output_bytes);
  auto* x = reinterpret_cast<float*>(input.data());
  for (std::int64_t i = 0; i < kSide * kSide; ++i) x[i] = static_cast<float>(i);
  *reinterpret_cast<StepScalars*>(input.data() + plan.scalars[0]) =
      StepScalars{.alpha_f32 = 2, .alpha_f64 = 2, .alpha_i64 = 2};
  const Bindings bindings = MakeBindings(plan);
  for (int run = 0; run < 3; ++run) {
    absl::Status status = absl::InternalError("not called");
    lane->Launch({&program, &plan, compiled.program.get(), bindings, input, output},
                 [&](const LaunchReport& report) { status = report.status; });
    ASSERT_TRUE(status.ok()) << status;
    const auto* y = reinterpret_cast<const float*>(output.data());
    for (std::int64_t i = 0; i < kSide * kSide; ++i) {
      ASSERT_EQ(y[i], 2 * static_cast<float>(i % kSide * kSide + i / kSide)) << i;
    }
  }
}

TEST(CpuScratchTest, MoreThanThePoolIsRefusedWithBothFigures) {
  // 64 MiB is the smallest pool.
  const auto backend = *CreateCpuBackend({.lane_bytes = kMiB, .device_bytes = 65 * kMiB});
  EXPECT_EQ(backend->devices()[0].pool_bytes, 64 * kMiB);
  const Program program = ScaleThenTranspose(kShape);
  MemoryPlan plan = PlanMemory(program);
  plan.scratch_bytes = 64 * kMiB + 1 - (ScratchBytes(program) - kMiB);
  const absl::Status refused = backend->Compile(program, plan).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("67108865"));
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("67108864"));
}

// The program is minutes long, and its test is not.
TEST(CpuScratchTest, AMapEndsMidwayOnceItsDeadlineHasPassed) {
  const auto backend = *CreateCpuBackend({.lane_bytes = kMiB});
  MapProblem map{.dtype = DType::kBool, .shape = {std::int64_t{1} << 26}};
  map.nodes = {{MapOp::kIndex, DType::kI64, {0}}};
  for (std::int16_t i = 0; i < 200; ++i) map.nodes.push_back({MapOp::kPow, DType::kI64, {i, 0}});
  map.nodes.push_back({MapOp::kCast, DType::kBool, {200}});
  const std::size_t bytes = std::size_t{1} << 26;
  Program program;
  program.tensors = {{DType::kBool, map.shape, bytes}};
  program.steps.push_back({.problem = map, .variant = {}, .inputs = {}, .output = 0, .scalars = {}});
  program.outputs = {0};
  const MemoryPlan plan = PlanMemory(program);
  std::vector<std::byte> output(plan.output_bytes);
  const Bindings bindings = MakeBindings(plan);
  const CompiledProgram compiled = *backend->Compile(program, plan);
  StagedProgram staged{&program, &plan, compiled.program.get(), bindings, {}, output};
  staged.deadline = MonotonicClock::now() + std::chrono::milliseconds(20);
  absl::Status status;
  (*backend->CreateLane(0))->Launch(staged, [&](const LaunchReport& report) { status = report.status; });
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

TEST(CpuScratchTest, AnExactFigureBeyondTheMachineIsAnError) {
  EXPECT_EQ(
      CreateCpuBackend({.device_bytes = std::size_t{1} << 60, .exact_device_bytes = true}).status().code(),
      absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace warpline
