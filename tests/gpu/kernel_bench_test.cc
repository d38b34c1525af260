// The benchmark measures what it says: cases, the check of results, the JSON. What needs a GPU skips without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>

#include "kernels/bench/harness/baselines.h"
#include "kernels/bench/harness/check.h"
#include "kernels/bench/harness/device.h"
#include "kernels/bench/harness/expected.h"
#include "kernels/bench/harness/ladder.h"
#include "kernels/bench/harness/operand_slots.h"
#include "kernels/bench/harness/reference.h"
#include "kernels/bench/report/choice_text.h"
#include "kernels/bench/report/json.h"
#include "kernels/bench/report/labels.h"
#include "kernels/bench/report/result.h"
#include "kernels/bench/suites/articles.h"
#include "kernels/bench/suites/breadth.h"
#include "kernels/bench/suites/cases.h"
#include "kernels/gpu/random_data.h"
#include "kernels/problem_text.h"

namespace warpline::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Labels(const std::vector<Case>& cases) {
  std::vector<std::string> labels;
  for (const Case& each : cases) labels.push_back(Label(each.problem));
  return labels;
}

TEST(KernelBenchChoiceTextTest, SaysWhichKernelAndHowItCutsTheProblem) {
  const DeviceTraits traits = {.compute_capability = 90, .multiprocessors = 132, .has_cublaslt = true};
  const std::pair<const char*, const char*> kTexts[] = {
      {"transpose f32 1024x1024 1,0", "tiles: elements of 4 bytes, 1024x1024"},
      {"transpose f32 33x31 1,0", "box: elements of 4 bytes, 5 boxes with 1088 bytes of shared memory"},
      {"transpose f32 64x64 0,1", "copy: 16384 bytes"},
      {"mean f32 4096x4096 0",
       "columns: 4096 results in 512 CTAs of 256 threads, 16 to a result, workspace 2097152 bytes"},
      {"gemm f32 256x256x256", "cublas: workspace 33554432 bytes"},
      {"add f32 1000x1000 *0", "packs: a pack of x is dense, of y vectors"},
      {"sum f32 4000000x1 1", "copy"}};
  for (const auto& [problem, text] : kTexts) {
    EXPECT_EQ(ChoiceText(*ParseProblem(problem), traits), text) << problem;
  }
}

std::vector<Case> Cases(std::vector<std::string> ops, std::vector<std::string> types,
                        std::vector<std::string> shapes) {
  return MakeCases(ops, types, shapes, {});
}

TEST(KernelBenchCasesTest, AShapeGoesToTheOperationsThatHaveSuch) {
  EXPECT_THAT(Labels(Cases({}, {"f64"}, {"30x20"})),
              ElementsAre("transpose f64 30x20", "reduce f64 30x20 all", "reduce f64 30x20 axis 0",
                          "reduce f64 30x20 axis 1"));
  EXPECT_THAT(Labels(Cases({}, {"tf32", "bf16"}, {"3x4x5"})),
              ElementsAre("gemm tf32 3x4x5", "gemm bf16 3x4x5"));
  EXPECT_THAT(Labels(Cases({}, {"f32"}, {"7"})), ElementsAre("reduce f32 7 all"));
}

TEST(KernelBenchCasesTest, RefusesWhatItDoesNotUnderstand) {
  EXPECT_THROW(Cases({"sort"}, {}, {}), Failure);
  EXPECT_THROW(Cases({}, {"f8"}, {}), Failure);
  for (const char* shape : {"", "x", "3x", "0x3", "-1", "1x2x3x4", "3.5", "99999999999999999999"}) {
    EXPECT_THROW(Cases({}, {}, {shape}), Failure) << shape;
  }
  EXPECT_THROW(Cases({"gemm"}, {}, {"3x4"}), Failure);
}

TEST(KernelBenchCasesTest, EveryFilterMustMeetSomething) {
  const auto make = [](std::vector<std::string> ops, std::vector<std::string> types,
                       std::vector<std::string> shapes, std::vector<std::string> variants) {
    return Labels(MakeCases(ops, types, shapes, variants));
  };
  // Operations without the variant are not measured.
  EXPECT_THAT(make({}, {"f32"}, {"3x4", "3x4x5"}, {"swizzled", "wgmma"}),
              ElementsAre("transpose f32 3x4", "gemm f32 3x4x5"));
  EXPECT_THROW(make({}, {}, {}, {"swizzled", "no-such"}), Failure);
  EXPECT_THROW(make({"gemm"}, {}, {}, {"swizzled"}), Failure);
  EXPECT_THROW(make({"gemm"}, {}, {"3x4x5", "3x4"}, {}), Failure);
  EXPECT_THROW(make({"transpose"}, {"f32", "tf32"}, {}, {}), Failure);
}

TEST(KernelBenchCasesTest, EveryTableHasItsDefaults) {
  for (const char* op : {"transpose", "gemm", "reduce"}) {
    EXPECT_GE(Cases({op}, {}, {}).size(), 2u) << op;
  }
}

TEST(KernelBenchBreadthTest, HasManyProblemsOfEveryOperation) {
  const std::vector<Case> cases = BreadthCases({});
  EXPECT_GE(cases.size(), 200u);
  std::vector<std::string> labels = Labels(cases);
  std::sort(labels.begin(), labels.end());
  EXPECT_EQ(std::adjacent_find(labels.begin(), labels.end()), labels.end());
  const std::string ops[] = {"transpose", "reduce", "map", "gemm"};
  std::size_t sum = 0;
  for (const std::string& op : ops) sum += BreadthCases(std::span(&op, 1)).size();
  EXPECT_EQ(sum, cases.size());
}

TEST(KernelBenchBreadthTest, LabelsSayWhatThePlainProblemIsNot) {
  const auto label = [](const char* line) { return Label(*ParseProblem(line)); };
  EXPECT_EQ(label("transpose u8 2x3x4 2,0,1"), "transpose u8 2x3x4 perm 2,0,1");
  EXPECT_EQ(label("sum bf16 2x3x4 0,2"), "reduce bf16 2x3x4 axes 0,2");
  EXPECT_EQ(label("argmax f32 2x3 all"), "argmax f32 2x3 all");
  EXPECT_EQ(label("gemm bf16 2x3x4 nt x5 bias gelu >f32"), "gemm bf16 2x3x4 nt batch 5 bias gelu to f32");
  EXPECT_EQ(label("cast u8 2x3 >f32"), "cast u8 2x3 to f32");
  EXPECT_EQ(label("add f32 2x3 *0"), "add f32 2x3 broadcast 0");
}

TEST(KernelBenchTimingTest, SummarizesByTheMedian) {
  const Timing odd = Summarize({5, 1, 3}, 4);
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.least, 1);
  EXPECT_EQ(odd.greatest, 5);
  EXPECT_EQ(odd.launches, 4);
  EXPECT_EQ(Summarize({4, 2}, 1).median, 3);
}

TEST(KernelBenchJsonTest, EscapesAndHasNoNumbersThatJsonLacks) {
  CaseResult result{.problem = MakeTranspose(DType::kF32, 3, 4)};
  result.rows.push_back({.name = "a \"quoted\" \\ name", .timing = {.median = 2e-6}, .rate = INFINITY});
  result.rows.push_back({.name = "other", .status = "not for this problem"});
  nlohmann::ordered_json json;
  json["cases"] = std::vector<nlohmann::ordered_json>{ToJson(result)};
  const std::string path = ::testing::TempDir() + "/kernel_bench_test.json";
  WriteFile(json, path);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::remove(path.c_str());
  EXPECT_THAT(text.str(), HasSubstr(R"("a \"quoted\" \\ name")"));
  EXPECT_THAT(text.str(), HasSubstr(R"("rate": null)"));
  EXPECT_THAT(text.str(), HasSubstr(R"("seconds": 2e-06)"));
  EXPECT_THROW(WriteFile(json, "/nonexistent/directory/file.json"), Failure);
}

TEST(KernelBenchArticlesTest, EveryFigureHasAPromise) {
  std::vector<CaseResult> results;
  for (const Case& each : ArticleCases()) {
    CaseResult& result = results.emplace_back(CaseResult{.problem = each.problem});
    result.rows.push_back({.name = "shared", .timing = {.median = 3e-6}});
    result.rows.push_back({.name = "padded", .timing = {.median = 2e-6}});
  }
  const Table table = ArticleTable(results);
  EXPECT_EQ(table.rows.size(), results.size() + 1);  // bank conflicts
  for (const auto& row : table.rows) {
    for (const Table::Cell& cell : row) EXPECT_FALSE(std::get<std::string>(cell).empty());
  }
  EXPECT_THAT(std::get<std::string>(table.rows[2][2]),
              HasSubstr("padded 2.0 us, 1.500 times as fast as shared"));
}

class KernelBenchGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    device_ = OpenDevice(&why_not);
    if (!device_) GTEST_SKIP() << "no GPU on this machine: " << why_not;
  }
  std::optional<Device> device_;
};

std::vector<Case> SmallCases() {
  std::vector<Case> cases =
      Cases({"transpose", "reduce"}, {"f16", "bf16", "f32", "f64"}, {"260x132", "1001"});
  for (Case& each : Cases({"gemm"}, {"f16", "bf16", "f32", "tf32", "f64"}, {"64x96x80"})) {
    cases.push_back(std::move(each));
  }
  return cases;
}

TEST(KernelBenchCasesTest, SmallCasesAreOfEveryOperationAndType) {
  EXPECT_EQ(SmallCases().size(), 4u * (1 + 3 + 1) + 5u);
}

TEST_F(KernelBenchGpuTest, EveryVariantOfEverySmallCaseIsRight) {
  Roofs roofs(*device_);
  ClockSampler clocks("");
  for (const Case& each : SmallCases()) {
    const CaseResult result =
        RunLadder(*device_, roofs, clocks, each, {.rounds = 1, .buffers = Buffers::kWarm});
    int measured = 0;
    for (const Row& row : result.rows) {
      EXPECT_FALSE(row.is_failure) << Label(each.problem) << " " << row.name << ": " << row.status;
      if (row.measured()) {
        EXPECT_GT(row.timing.median, 0);
        ++measured;
      }
    }
    EXPECT_GE(measured, 1) << Label(each.problem);
  }
}

TEST_F(KernelBenchGpuTest, CopiesCopyAndReadingReadsEverything) {
  cudaStream_t stream = device_->stream.get();
  const gpu::DeviceBytes differences = Value(gpu::AllocateDevice(sizeof(Differences)));
  for (const std::size_t bytes : {16u, 4096u * 16u + 48u, (1u << 20) + 16u}) {
    const gpu::DeviceBytes from = Value(gpu::AllocateDevice(bytes));
    const gpu::DeviceBytes to = Value(gpu::AllocateDevice(bytes));
    ASSERT_EQ(gpu::FillBits(from.get(), bytes, 1, stream), cudaSuccess);
    for (const auto launch : {LaunchCopy, LaunchCopyShared}) {
      ASSERT_EQ(cudaMemsetAsync(to.get(), 0xa5, bytes, stream), cudaSuccess);
      ASSERT_EQ(launch(from.get(), to.get(), bytes, stream), cudaSuccess);
      Differences count;
      ASSERT_EQ(cudaMemcpyAsync(differences.get(), &count, sizeof(count), cudaMemcpyHostToDevice, stream),
                cudaSuccess);
      ASSERT_EQ(
          CompareBytes(to.get(), from.get(), bytes, static_cast<Differences*>(differences.get()), stream),
          cudaSuccess);
      ASSERT_EQ(cudaMemcpyAsync(&count, differences.get(), sizeof(count), cudaMemcpyDeviceToHost, stream),
                cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(count.count, 0u) << bytes;
    }
    // The one word that makes it write, wherever it lies: in each of a thread's loads, in all blocks.
    std::vector<std::size_t> places = {bytes - 16};
    for (std::size_t at = 0; at < bytes; at += 255 * 16) places.push_back(at);
    for (const std::size_t at : places) {
      uint4 seen{};
      ASSERT_EQ(cudaMemsetAsync(from.get(), 0, bytes, stream), cudaSuccess);
      ASSERT_EQ(cudaMemsetAsync(to.get(), 0, 16, stream), cudaSuccess);
      ASSERT_EQ(cudaMemcpyAsync(static_cast<std::byte*>(from.get()) + at, &kReadSinkWord, 16,
                                cudaMemcpyHostToDevice, stream),
                cudaSuccess);
      ASSERT_EQ(LaunchRead(from.get(), bytes, to.get(), stream), cudaSuccess);
      ASSERT_EQ(cudaMemcpyAsync(&seen, to.get(), 16, cudaMemcpyDeviceToHost, stream), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(std::memcmp(&seen, &kReadSinkWord, 16), 0) << bytes << " bytes, word at " << at;
    }
  }
}

TEST_F(KernelBenchGpuTest, OneWrongElementIsFound) {
  for (const Case& each : SmallCases()) {
    cudaStream_t stream = device_->stream.get();
    const Problem& problem = each.problem;
    const OperandSlots slots(problem, 1, std::size_t{64} << 20, stream);
    const Expected expected(problem, slots.At(0), stream);
    const auto compute = [&](const auto& p) {
      const auto table = CudaTable(p);  // the last row is the plain one
      return table.back().launch(p, slots.At(0), device_->context, stream);
    };
    ASSERT_EQ(std::visit(compute, problem), cudaSuccess);
    EXPECT_THAT(expected.FindError(slots.At(0).out, stream), IsEmpty()) << Label(problem);
    const std::size_t element = SizeOf(OutDType(problem));
    auto* last = static_cast<std::byte*>(slots.At(0).out) + OutBytes(problem) - element;
    ASSERT_EQ(gpu::Poison(last, element, stream), cudaSuccess);
    EXPECT_THAT(expected.FindError(slots.At(0).out, stream), HasSubstr("1 differences")) << Label(problem);
  }
}

}  // namespace
}  // namespace warpline::bench
