#include "tests/testing/choice_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/bench/suites/breadth_lines.h"

namespace warpline::testing {
namespace {

constexpr char kArrow[] = " -> ";

bool IsComment(const std::string& line) { return line[0] == '#'; }
std::string ProblemOf(const std::string& line) { return line.substr(0, line.find(kArrow)); }

std::string ReadSource(const std::string& path) {
  std::ifstream in(absl::StrCat(WARPLINE_SOURCE_DIR, "/", path));
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

ChoiceTable::ChoiceTable(std::string path)
    : path_(std::move(path)), lines_(absl::StrSplit(ReadSource(path_), '\n', absl::SkipEmpty())) {
  for (const std::string& line : lines_) {
    if (!IsComment(line)) problems_.push_back(ProblemOf(line));
  }
}

void ChoiceTable::Expect(const std::function<std::string(const std::string&)>& kernels_of) const {
  std::string now;
  for (const std::string& line : lines_) {
    const std::string wanted =
        IsComment(line) ? line : absl::StrCat(ProblemOf(line), kArrow, kernels_of(ProblemOf(line)));
    EXPECT_EQ(wanted, line);
    absl::StrAppend(&now, wanted, "\n");
  }
  if (std::getenv("WARPLINE_REWRITE_CHOICES") != nullptr) {
    std::ofstream(absl::StrCat(WARPLINE_SOURCE_DIR, "/", path_)) << now;
  }
}

void ChoiceTable::ExpectBreadth(bool transposes) const {
  for (const std::string_view line : bench::BreadthLines()) {
    if (line.starts_with("transpose ") != transposes) continue;
    EXPECT_THAT(problems_, ::testing::Contains(line));
  }
}

std::vector<std::string> ChoiceTable::Kernels() const {
  std::set<std::string> kernels;
  for (const std::string& line : lines_) {
    if (IsComment(line)) continue;
    const std::string names = line.substr(line.find(kArrow) + sizeof(kArrow) - 1);
    for (const absl::string_view name : absl::StrSplit(names, absl::ByAnyChar(", "), absl::SkipEmpty())) {
      kernels.emplace(name);
    }
  }
  return {kernels.begin(), kernels.end()};
}

}  // namespace warpline::testing
