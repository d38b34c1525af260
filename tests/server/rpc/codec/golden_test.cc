// Requests as clients of the last version send them decode to the same problems.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/src/codec.h"
#include "kernels/problem_text.h"
#include "tests/server/rpc/codec/planned_requests.h"
#include "tests/testing/every_step.h"

namespace warpline {
namespace {

constexpr char kFile[] = WARPLINE_SOURCE_DIR "/tests/server/rpc/codec/golden_requests.txt";

// The problems of a request's steps, and the types of its results.
absl::StatusOr<std::string> ProblemsOf(const std::string& method, const std::string& bytes) {
  const std::vector<Codec> codecs = KernelCodecs();
  const auto codec =
      std::find_if(codecs.begin(), codecs.end(), [&](const Codec& each) { return each.method == method; });
  if (codec == codecs.end()) return absl::NotFoundError(method);
  const auto decoded = DecodePlan(*codec, testing::Scan(codec->kind, bytes), {}, testing::kLimits);
  if (!decoded.ok()) return decoded.status();
  const Program& program = decoded->plan.program;
  std::vector<std::string> problems;
  for (const Step& step : program.steps) {
    const std::string text = ProblemText(step.problem);  // empty for kinds that it does not know
    problems.push_back(text.empty() ? std::string(Name(OpOf(step.problem))) : text);
  }
  std::vector<std::string> results;
  for (const int output : program.outputs) {
    const TensorSpec& result = program.tensors[static_cast<std::size_t>(output)];
    results.push_back(absl::StrCat(std::string(Name(result.dtype)), " ", ToString(result.shape)));
  }
  return absl::StrCat(absl::StrJoin(problems, "; "), " -> ", absl::StrJoin(results, ", "));
}

// A request of each method and of each step, with methods.
std::vector<std::pair<std::string, std::string>> Requests() {
  std::vector<std::pair<std::string, std::string>> requests;
  v1::TransposeRequest transpose;
  testing::Fill(*transpose.mutable_x(), v1::DATA_TYPE_U8, {2, 3}, 1);
  requests.emplace_back("Transpose", transpose.SerializeAsString());
  requests.emplace_back("Gemm", testing::Gemm().SerializeAsString());
  v1::ReduceRequest reduce;
  testing::Fill(*reduce.mutable_x(), v1::DATA_TYPE_I32, {2, 3}, 4);
  reduce.set_op(v1::REDUCE_OP_MAX);
  reduce.add_axes(-1);
  requests.emplace_back("Reduce", reduce.SerializeAsString());
  const std::string elements(64, '\1');
  for (auto& [name, args] : testing::EveryStep()) {
    for (auto& [input, operand] : args.inputs) operand.data = elements.data();
    const absl::StatusOr<client::OutgoingMessage> message = client::Encode(args);
    EXPECT_THAT(message, testing::IsOk()) << name;
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(message->buffer.Dump(&slices).ok());
    std::string bytes;
    for (const grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    requests.emplace_back("Run", bytes);
  }
  return requests;
}

// WARPLINE_REWRITE_GOLDEN=1 adds the requests that the file lacks. It changes none that is there.
void AddNew() {
  std::ifstream before(kFile);
  const std::string known((std::istreambuf_iterator<char>(before)), std::istreambuf_iterator<char>());
  std::ofstream file(kFile, std::ios::app);
  for (const auto& [method, bytes] : Requests()) {
    const absl::StatusOr<std::string> problems = ProblemsOf(method, bytes);
    ASSERT_THAT(problems, testing::IsOk());
    const std::string hex = absl::BytesToHexString(bytes);
    if (!absl::StrContains(known, hex)) file << method << " | " << *problems << " | " << hex << "\n";
  }
}

TEST(GoldenRequestsTest, DecodeToTheSameProblems) {
  if (std::getenv("WARPLINE_REWRITE_GOLDEN") != nullptr) AddNew();
  std::ifstream file(kFile);
  ASSERT_TRUE(file.is_open());
  std::set<std::string> methods;
  std::set<int> steps;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || absl::StartsWith(line, "#")) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, " | ");
    ASSERT_EQ(parts.size(), 3u) << line;
    std::string bytes;
    for (std::size_t i = 0; i < parts[2].size(); i += 2) {
      bytes += static_cast<char>(std::stoi(parts[2].substr(i, 2), nullptr, 16));
    }
    const absl::StatusOr<std::string> problems = ProblemsOf(parts[0], bytes);
    ASSERT_THAT(problems, testing::IsOk()) << line;
    EXPECT_EQ(*problems, parts[1]);
    methods.insert(parts[0]);
    v1::RunRequest run;
    if (parts[0] != "Run") continue;
    ASSERT_TRUE(run.ParseFromString(bytes));
    for (const v1::Step& step : run.program().steps()) steps.insert(step.operation_case());
  }
  EXPECT_EQ(methods.size(), KernelCodecs().size());
  EXPECT_EQ(static_cast<int>(steps.size()),
            v1::Step::descriptor()->FindOneofByName("operation")->field_count());
}

}  // namespace
}  // namespace warpline
