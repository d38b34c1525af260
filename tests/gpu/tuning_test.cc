// Tuning on a real device: what is found, where it is kept, and who runs by it.
#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "kernels/operand_sizes.h"
#include "kernels/problem_text.h"
#include "server/tuning/tuner.h"
#include "server/tuning/tuning_store.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/lane_runs.h"

namespace warpline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Mode = TuningStore::Mode;

constexpr char kProduct[] = "gemm f32 200x300x400";

Program ProgramOf(const char* text) {
  const Problem problem = *ParseProblem(text);
  const auto spec = [](const OperandSize& size) {
    return TensorSpec{size.dtype, {size.count}, size.Bytes()};
  };
  std::vector<TensorSpec> inputs;
  for (const OperandSize& input : InputSizes(problem)) inputs.push_back(spec(input));
  return OneStepProgram(problem, inputs, spec(OutputSize(problem)));
}

class TuningTest : public GpuTest {
 protected:
  TuningTest() { std::remove(path_.c_str()); }
  ~TuningTest() override { std::remove(path_.c_str()); }

  // All programs are graphs.
  std::unique_ptr<LaneRuns> Open(Mode mode) {
    auto store = TuningStore::Open(path_, mode);
    EXPECT_TRUE(store.ok()) << store.status();
    CudaBackendOptions options;
    options.paths = {.mapped_bytes = 0, .mapped_bytes_alone = 0, .mapped_scattered_bytes = 0};
    options.tuning = *std::move(store);
    options.resident_bytes = std::size_t{64} << 20;
    return std::make_unique<LaneRuns>(options);
  }
  static Tuner& TunerOf(LaneRuns& runs) { return *runs.backend().tuners().at(0); }

  static std::vector<std::string_view> VariantsOf(LaneRuns& runs, Program program) {
    const auto job = runs.Launch(std::move(program));
    const LaunchReport report = job->report.get_future().get();
    EXPECT_TRUE(report.status.ok()) << report.status;
    return report.variants;
  }

  std::string File() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  // Makes a file that knows the product, with one field replaced.
  void WriteFile(const std::string& field, const std::string& value) {
    const auto runs = Open(Mode::kWrite);
    TunerOf(*runs).Offer(*ParseProblem(kProduct));
    TunerOf(*runs).AwaitIdle(kNever);
    const std::string text = std::regex_replace(File(), std::regex("([ {])" + field + " = \"[^\"]*\""),
                                                "$1" + field + " = \"" + value + "\"");
    std::ofstream(path_) << text;
  }

  // Tests may run side by side.
  const std::string path_ = testing::TempDir() + "/warpline_tuning_test_" +
                            testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml";
};

TEST_F(TuningTest, SettlesProblemsOfEveryOperation) {
  const char* const problems[] = {
      "gemm f32 200x300x400",        "gemm bf16 128x1024x1024 nt bias gelu",
      "gemm bf16 127x129x131 c",     "gemm f64 64x64x64 x16 c relu",
      "gemm tf32 256x256x256 tn",    "gemm i8 256x256x256 nt",
      "gemm f32 1x4096x1024",        "gemm f16 64x96x64 batch=3x4 a=4,1 b=0,1 c=0,0 >f32",
      "transpose f32 1000x1001 1,0", "transpose u8 100x3x1000 2,0,1",
      "transpose c128 64x65 1,0",    "sum f32 1000x1000 0",
      "var bf16 1000x1000 1",        "argmax i32 1000x1000 1",
      "prod f64 100x100 all",        "any bool 1000x1000 1",
      "cast u8 1000x1000 >f32",      "scale i64 1000x1000",
      "add bf16 1000x1000 *0"};
  const auto runs = Open(Mode::kWrite);
  Tuner& tuner = TunerOf(*runs);
  for (const char* problem : problems) tuner.Offer(*ParseProblem(problem));
  tuner.AwaitIdle(kNever);
  EXPECT_EQ(tuner.series().failed.Value(), 0);
  EXPECT_EQ(tuner.series().kept.Value() + tuner.series().changed.Value(), std::size(problems));
  EXPECT_THAT(File(), HasSubstr("\"gemm f32 200x300x400\" = { variant = \""));
}

// A candidate with other results is left out, and said so; none of ours may be.
TEST_F(TuningTest, NoCandidateHasOtherResults) {
  testing::internal::CaptureStderr();
  const auto runs = Open(Mode::kWrite);
  for (const char* problem : {"gemm bf16 512x512x4096", "gemm f32 100x4x3000", "gemm f16 333x77x1001 c bias",
                              "sum f32 100000 all", "norm2 f16 64x3000 1", "logsumexp f32 30x40x50 0,2"}) {
    TunerOf(*runs).Offer(*ParseProblem(problem));
  }
  TunerOf(*runs).AwaitIdle(kNever);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("left out")));
}

TEST_F(TuningTest, LanesRunWhatTheFileSays) {
  WriteFile("variant", "unrolled");
  const auto runs = Open(Mode::kRead);
  EXPECT_TRUE(runs->backend().tuners().empty());
  EXPECT_THAT(VariantsOf(*runs, ProgramOf(kProduct)), ElementsAre("unrolled"));
}

TEST_F(TuningTest, ProductsOfResidentTensorsRunWhatTheFileSays) {
  WriteFile("variant", "unrolled");
  const auto runs = Open(Mode::kRead);
  const Program program = ProgramOf(kProduct);
  const OwnMemory own = {.resident = {0, 1, 2}, .shared = {}};
  const MemoryPlan plan = PlanMemory(program, own);
  ASSERT_FALSE(plan.Travels());
  Bindings bindings = MakeBindings(plan);
  for (Binding& binding : bindings) {
    const std::size_t bytes = program.tensors[static_cast<std::size_t>(binding.tensor)].bytes;
    binding.memory = *runs->backend().AllocateResident(0, bytes);
  }
  const Buffer host = *runs->backend().AllocateHost(1 << 20);
  const StepScalars scalars;
  std::memcpy(host.bytes().data() + plan.scalars[0], &scalars, sizeof(scalars));
  const auto lane = *runs->backend().CreateLane(0);
  const std::string signature = Signature(program, own);
  std::promise<LaunchReport> ended;
  lane->Launch({&program, &plan, signature, bindings, host.bytes().first(plan.input_bytes), {}, 0},
               [&](LaunchReport report) { ended.set_value(std::move(report)); });
  const LaunchReport report = ended.get_future().get();
  ASSERT_TRUE(report.status.ok()) << report.status;
  EXPECT_THAT(report.variants, ElementsAre("unrolled"));
}

TEST_F(TuningTest, ResultsAreThoseOfTheVariantThatRan) {
  WriteFile("variant", "unrolled");
  const auto runs = Open(Mode::kRead);
  Program named = ProgramOf(kProduct);
  named.steps[0].variant = "unrolled";
  EXPECT_EQ(runs->Output(ProgramOf(kProduct), 7), runs->Output(named, 7));
}

TEST_F(TuningTest, ProgramsThatAreToBeReproducibleRunByRulesAlone) {
  WriteFile("variant", "unrolled");
  const auto runs = Open(Mode::kRead);
  Program untuned = ProgramOf(kProduct);
  untuned.untuned = true;
  EXPECT_THAT(VariantsOf(*runs, untuned), Not(ElementsAre("unrolled")));
}

TEST_F(TuningTest, AVariantThatIsNamedRuns) {
  WriteFile("variant", "unrolled");
  const auto runs = Open(Mode::kRead);
  Program named = ProgramOf(kProduct);
  named.steps[0].variant = "naive";
  EXPECT_THAT(VariantsOf(*runs, named), ElementsAre("naive"));
}

TEST_F(TuningTest, WhatWasMeasuredAgainstAnotherChoiceIsVoid) {
  WriteFile("untuned", "shared");
  const auto before = File();
  const auto runs = Open(Mode::kWrite);
  TunerOf(*runs).Offer(*ParseProblem(kProduct));
  TunerOf(*runs).AwaitIdle(kNever);
  EXPECT_EQ(TunerOf(*runs).series().kept.Value() + TunerOf(*runs).series().changed.Value(), 1);
  EXPECT_NE(File(), before);
}

TEST_F(TuningTest, ALaneTakesOverWhatIsFoundWhileItRuns) {
  auto runs = Open(Mode::kWrite);
  const auto first = VariantsOf(*runs, ProgramOf(kProduct));  // asks for tuning
  ASSERT_TRUE(TunerOf(*runs).AwaitIdle(MonotonicClock::now() + std::chrono::minutes(2)));
  std::smatch found;
  const std::string file = File();
  ASSERT_TRUE(std::regex_search(file, found, std::regex("200x300x400\" = \\{ variant = \"([^\"]*)\"")))
      << file;
  EXPECT_THAT(VariantsOf(*runs, ProgramOf(kProduct)), ElementsAre(found[1].str()));
  // The gauge has the graphs as they are now, and nothing of those before.
  const auto graphs = [](LaneRuns& of) { return of.metrics().DeviceMemoryBytes(0, "graphs").Value(); };
  const double rebuilt = graphs(*runs);
  runs.reset();
  const auto fresh = Open(Mode::kRead);
  VariantsOf(*fresh, ProgramOf(kProduct));
  EXPECT_EQ(rebuilt, graphs(*fresh));
  EXPECT_THAT(first,
              ElementsAre(testing::AnyOf(found[1].str(), "cublas", "wide_loads", "vectorized", "unrolled")));
}

TEST_F(TuningTest, AVariantsConfigurationsAreNamesOfTheirOwn) {
  const auto runs = Open(Mode::kWrite);
  Program program = ProgramOf("gemm f32 512x512x512");
  const Problem& problem = program.steps[0].problem;
  program.steps[0].variant = "cublas:2";
  if (!runs->backend().CheckVariant(problem, "cublas").ok()) GTEST_SKIP() << "no cuBLASLt";
  EXPECT_TRUE(runs->backend().CheckVariant(problem, "cublas:2").ok());
  EXPECT_FALSE(runs->backend().CheckVariant(problem, "cublas:17").ok());
  EXPECT_THAT(VariantsOf(*runs, program), ElementsAre("cublas:2"));
}

}  // namespace
}  // namespace warpline
