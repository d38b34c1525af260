#include "server/base/parse_toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

std::string Times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// Ten thousand brackets ended a daemon once, when its stack did.
TEST(ParseTomlTest, RefusesWhatIsNestedTooDeep) {
  for (const std::string& deep :
       {"x = 1\ny = " + Times(10000, "[") + Times(10000, "]"), "x = 1\ny = " + Times(10000, "["),
        "x = 1\ny = " + Times(10000, "{a = "), "x = 1\n[" + Times(10000, "a.") + "b]",
        "x = 1\n" + Times(10000, "a.") + "b = 1"}) {
    EXPECT_THAT(
        ParseToml(deep, "file.toml").status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("file.toml:2: is nested more than 64 deep")));
  }
}

TEST(ParseTomlTest, CountsNoBracketsInStringsAndComments) {
  const std::string brackets = Times(100, "[") + Times(100, "a.");
  for (const std::string& text :
       {"x = \"" + brackets + "\"", "x = '" + brackets + "'", "x = \"\\\"" + brackets + "\"",
        "x = \"\"\"\n" + brackets + "\"\"\"", "x = '''\n" + brackets + "'''", "x = 1 # " + brackets,
        "x = " + Times(60, "[") + Times(60, "]")}) {
    EXPECT_THAT(ParseToml(text, "file.toml").status(), IsOk()) << text;
  }
}

TEST(ParseTomlTest, AStringWithoutAnEndIsAnErrorOfTheParser) {
  for (const char* text : {"x = \"", "x = '", "x = \"\"\"", "x = '''", "x = \"\\"}) {
    EXPECT_THAT(ParseToml(text, "file.toml").status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 1")))
        << text;
  }
}

}  // namespace
}  // namespace warpline
