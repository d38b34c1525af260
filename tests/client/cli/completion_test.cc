#include "client/cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "client/cli/flags.h"

namespace warpline::client {
namespace {

using testing::HasSubstr;

TEST(CompletionTest, KnowsEveryCommandAndFlag) {
  for (const std::string& script : {BashCompletion(), ZshCompletion()}) {
    for (const CommandSpec& command : AllCommands()) {
      EXPECT_THAT(script, HasSubstr(absl::StrCat("    ", std::string(command.name), ")\n")));
    }
    for (const FlagSpec& flag : AllFlags()) {
      EXPECT_THAT(script, HasSubstr(absl::StrCat("--", std::string(flag.name))));
    }
    EXPECT_THAT(script, HasSubstr("sum prod min max"));
    EXPECT_THAT(script, HasSubstr("none relu gelu"));
  }
}

TEST(CompletionTest, TellsOfEachCommandsOwnFlags) {
  EXPECT_THAT(ZshCompletion(), HasSubstr("[where the elements go, a .npy file; - is standard output]"));
}

TEST(CompletionTest, EscapesWhatZshWouldRead) {
  EXPECT_THAT(ZshCompletion(), HasSubstr(R"('--perm=[axis i of the result is axis AXES\[i\] of the input)"));
  EXPECT_THAT(ZshCompletion(), HasSubstr(R"('--help[this text; after a command, the command'\''s]')"));
}

}  // namespace
}  // namespace warpline::client
