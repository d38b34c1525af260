// Requests of old clients decode for ever, and mean what they meant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/problem_text.h"
#include "tests/server/rpc/codec/planned_requests.h"

namespace warpline {
namespace {

TEST(GoldenRequestsTest, DecodeToTheSameProblems) {
  std::ifstream file(WARPLINE_SOURCE_DIR "/tests/server/rpc/codec/golden_8bb0270.txt");
  ASSERT_TRUE(file.is_open());
  int requests = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || absl::StartsWith(line, "#")) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, " | ");
    ASSERT_EQ(parts.size(), 3u) << line;
    const std::vector<Codec> codecs = KernelCodecs();
    const auto codec = std::find_if(codecs.begin(), codecs.end(),
                                    [&](const Codec& each) { return each.method == parts[0]; });
    ASSERT_NE(codec, codecs.end()) << parts[0];
    const std::string bytes = absl::HexStringToBytes(parts[2]);
    const auto decoded = DecodePlan(*codec, testing::Scan(codec->kind, bytes), {}, testing::kLimits);
    ASSERT_THAT(decoded, testing::IsOk()) << line;
    std::vector<std::string> problems;
    for (const Step& step : decoded->plan.program.steps) problems.push_back(ProblemText(step.problem));
    EXPECT_EQ(absl::StrJoin(problems, "; "), parts[1]);
    ++requests;
  }
  EXPECT_GE(requests, 6);
}

}  // namespace
}  // namespace warpline
