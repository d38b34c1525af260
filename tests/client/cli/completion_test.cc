#include "client/cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "client/cli/command_line.h"

namespace warpline::client {
namespace {

using testing::HasSubstr;

TEST(CompletionTest, KnowsEveryCommandAndFlag) {
  CommandLine line;
  for (const std::string& script : {BashCompletion(*line.app), ZshCompletion(*line.app)}) {
    for (const CLI::App* command : line.app->get_subcommands({})) {
      EXPECT_THAT(script, HasSubstr("    " + command->get_name() + ")\n"));
      for (const CLI::Option* flag : command->get_options()) {
        if (flag->get_positional()) continue;
        EXPECT_THAT(script, HasSubstr("--" + flag->get_lnames().front()));
      }
    }
    EXPECT_THAT(script, HasSubstr("--token-file"));
    EXPECT_THAT(script, HasSubstr("sum prod min max"));
    EXPECT_THAT(script, HasSubstr("none relu gelu"));
  }
}

TEST(CompletionTest, TellsOfEachCommandsOwnFlags) {
  EXPECT_THAT(ZshCompletion(*CommandLine().app),
              HasSubstr("[where the elements go, a .npy file; - is standard output]"));
}

TEST(CompletionTest, EscapesWhatZshWouldRead) {
  EXPECT_THAT(ZshCompletion(*CommandLine().app),
              HasSubstr(R"('--perm=[axis i of the result is axis AXES\[i\] of the input)"));
  EXPECT_THAT(ZshCompletion(*CommandLine().app),
              HasSubstr(R"('--tls-cert=[this client'\''s certificate, for servers)"));
}

}  // namespace
}  // namespace warpline::client
