#include "client/cli/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "client/cli/help.h"

namespace warpline::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string Help(std::string_view name) {
  const auto commands = AllCommands();
  const auto command = std::find_if(commands.begin(), commands.end(),
                                    [&](const CommandSpec& each) { return each.name == name; });
  return command == commands.end() ? "" : HelpText(&*command);
}

TEST(HelpTextTest, TellsOfEachCommandsOwnFlags) {
  EXPECT_THAT(Help("transpose"), HasSubstr("@ leaves it on the server"));
  EXPECT_THAT(Help("get"), AllOf(HasSubstr("--output FILE"), Not(HasSubstr("leaves it on the server"))));
  EXPECT_THAT(Help("health"), HasSubstr("do not print SERVING"));
  for (const char* name : {"put", "get"}) {
    EXPECT_THAT(Help(name), AllOf(HasSubstr("--quiet"), Not(HasSubstr("SERVING")))) << name;
  }
  EXPECT_THAT(Help("bench"), HasSubstr("how arrays travel (see below; default: inline)"));
}

TEST(HelpTextTest, SaysWhereATensorMayStandForAFile) {
  for (const char* name : {"transpose", "gemm", "reduce", "run"}) {
    EXPECT_THAT(Help(name), HasSubstr("@ID, a tensor that is on the server")) << name;
  }
  EXPECT_THAT(Help("bench"), Not(HasSubstr("@ID")));
}

}  // namespace
}  // namespace warpline::client
