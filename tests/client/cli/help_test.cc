#include "client/cli/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "client/cli/command_line.h"

namespace warpline::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string Help(const std::string& name) { return CommandLine().Parse({name, "--help"}).value_or(""); }

TEST(HelpTest, TellsOfEachCommandsOwnFlags) {
  EXPECT_THAT(Help("transpose"), HasSubstr("@ leaves it on the"));
  EXPECT_THAT(Help("get"), AllOf(HasSubstr("-o,--output FILE"), Not(HasSubstr("leaves it on the"))));
  EXPECT_THAT(Help("health"), HasSubstr("do not print SERVING; the exit code tells"));
  for (const char* name : {"put", "get"}) {
    EXPECT_THAT(Help(name), AllOf(HasSubstr("--quiet"), Not(HasSubstr("SERVING")))) << name;
  }
  EXPECT_THAT(Help("bench"), HasSubstr("how arrays travel (default: inline)"));
}

TEST(HelpTest, SaysWhereATensorMayStandForAFile) {
  for (const char* name : {"transpose", "gemm", "reduce", "run"}) {
    EXPECT_THAT(Help(name), HasSubstr("@ID, a tensor on the server")) << name;
  }
  EXPECT_THAT(Help("bench"), Not(HasSubstr("@ID")));
}

TEST(HelpTest, ShowsExamplesThatTheCommandTakes) {
  CommandLine names;
  for (const CLI::App* command : names.app->get_subcommands({})) {
    const std::string footer = command->get_footer();
    const std::string start = "\nexample: warpline ";
    const std::size_t begin = ("\n" + footer).find(start) + start.size() - 1;
    std::string_view rest =
        std::string_view(footer).substr(begin, footer.find_first_of(">\n", begin) - begin);
    std::vector<std::string> words;
    while (!rest.empty()) {
      // A quoted word is the one that has spaces.
      const bool quoted = rest[0] == '\'';
      if (quoted) rest.remove_prefix(1);
      const std::size_t end = std::min(rest.find(quoted ? '\'' : ' '), rest.size());
      words.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + (quoted ? 2 : 1), rest.size()));
    }
    CommandLine line;
    const auto text = line.Parse(words);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(line.app->get_subcommands().front()->get_name(), command->get_name());
  }
}

// The texts of proto/rules/step_table.cc are written by hand.
TEST(HelpTest, ListsEveryOperationAndItsFields) {
  const std::string help = Help("run");
  const auto& operations = *v1::Step::descriptor()->FindOneofByName("operation");
  for (int i = 0; i < operations.field_count(); ++i) {
    const std::string name(operations.field(i)->name());
    if (name == "map") continue;  // its operations are listed by their names
    const std::size_t start = help.find("\n  " + name + "(");
    ASSERT_NE(start, std::string::npos) << name;
    // Lines of one operation stand deeper than its name; the last one ends with an empty line.
    std::size_t end = help.find('\n', start + 1);
    while (help.compare(end, 5, "\n    ") == 0) end = help.find('\n', end + 1);
    const std::string lines = help.substr(start, end - start);
    const auto& type = *operations.field(i)->message_type();
    for (int j = 0; j < type.field_count(); ++j) {
      std::string field(type.field(j)->name());
      if (field == "has_bias") field = "bias";
      if (field == "has_sorter") field = "sorter";
      if (field == "data_type") field = "dtype";
      if (field == "out_data_type") field = "out_dtype";
      EXPECT_TRUE(lines.find(field + " = ") != std::string::npos ||
                  lines.find(field + ":") != std::string::npos)
          << name << " " << field;
    }
  }
  EXPECT_NE(help.find("logsumexp"), std::string::npos);
  EXPECT_NE(help.find("logaddexp"), std::string::npos);
  EXPECT_NE(help.find("f8e5m2"), std::string::npos);
}

TEST(HelpTest, MentionsEveryCommandAndItsFlags) {
  CommandLine line;
  const std::string all = *line.Parse({"--help"});
  for (const CLI::App* command : line.app->get_subcommands({})) {
    EXPECT_THAT(all, HasSubstr("\n  " + command->get_name()));
    const std::string help = Help(command->get_name());
    EXPECT_THAT(help, AllOf(HasSubstr("--server"), HasSubstr("example: warpline " + command->get_name())));
  }
}

TEST(HelpTest, IsOfTheCommandThatIsNamed) {
  EXPECT_THAT(Help("transpose"), AllOf(HasSubstr("--perm AXES"), Not(HasSubstr("--alpha"))));
  EXPECT_EQ(*CommandLine().Parse({"--help", "transpose"}), Help("transpose"));
  EXPECT_EQ(*CommandLine().Parse({"help", "transpose"}), Help("transpose"));
  EXPECT_EQ(*CommandLine().Parse({"help"}), *CommandLine().Parse({"--help"}));
  EXPECT_THAT(*CommandLine().Parse({"info", "--version"}), StartsWith("warpline "));
}

TEST(HelpTest, WrapsLines) {
  for (const char* name : {"transpose", "gemm", "reduce", "bench"}) {
    const std::string help = Help(name);
    for (const absl::string_view line : absl::StrSplit(help, '\n')) EXPECT_LE(line.size(), 112u) << line;
  }
  EXPECT_EQ(Wrapped("a b", 108), "a\n" + std::string(108, ' ') + "b");
}

}  // namespace
}  // namespace warpline::client
