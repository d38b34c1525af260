#include "client/cli/args.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/flags.h"
#include "client/cli/help.h"

namespace warpline::client {
namespace {

absl::StatusOr<Args> Parse(const std::vector<std::string_view>& words) {
  return Args::Parse(words, AllFlags());
}

TEST(ArgsTest, TakesFlagsAnywhereInBothForms) {
  const auto args = Parse({"--server", "a:1", "gemm", "A.npy", "--alpha=-2.5", "-o", "D.npy", "B.npy",
                           "--trans-a", "--beta", "-1"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->positionals(), (std::vector<std::string>{"gemm", "A.npy", "B.npy"}));
  EXPECT_EQ(args->String("server", ""), "a:1");
  EXPECT_EQ(args->String("output", ""), "D.npy");
  EXPECT_EQ(args->Number("alpha")->value(), -2.5);
  EXPECT_EQ(args->Number("beta")->value(), -1);
  EXPECT_TRUE(*args->Bool("trans-a"));
  EXPECT_FALSE(*args->Bool("trans-b"));
}

TEST(ArgsTest, TakesShortFlagsInThreeForms) {
  EXPECT_EQ(Parse({"-oX"})->String("output", ""), "X");
  EXPECT_EQ(Parse({"-o=X"})->String("output", ""), "X");
  EXPECT_EQ(Parse({"-o", "-"})->String("output", ""), "-");
}

TEST(ArgsTest, KeepsTheLastOfRepeatedFlags) {
  EXPECT_EQ(Parse({"--perm", "0,1", "--perm=1,0"})->String("perm", ""), "1,0");
  EXPECT_EQ(Parse({"-ox=1", "run", "-o", "y=2"})->Strings("output"),
            (std::vector<std::string>{"x=1", "y=2"}));
  EXPECT_TRUE(Parse({"run"})->Strings("output").empty());
}

TEST(ArgsTest, EndsFlagsAtTwoDashes) {
  const auto args = Parse({"transpose", "--", "-o", "--perm"});
  ASSERT_TRUE(args.ok());
  EXPECT_EQ(args->positionals(), (std::vector<std::string>{"transpose", "-o", "--perm"}));
}

TEST(ArgsTest, LeavesASingleDashPositional) {
  EXPECT_EQ(Parse({"transpose", "-"})->positionals(), (std::vector<std::string>{"transpose", "-"}));
}

TEST(ArgsTest, NamesTheFlagInErrors) {
  for (const auto& words :
       std::vector<std::vector<std::string_view>>{{"--nonsense"}, {"--nonsense=1"}, {"-z"}}) {
    const auto args = Parse(words);
    ASSERT_FALSE(args.ok());
    EXPECT_NE(args.status().message().find(absl::string_view(words[0].data(), words[0].size())),
              absl::string_view::npos);
  }
  EXPECT_FALSE(Parse({"gemm", "--alpha"}).ok());
  EXPECT_NE(Parse({"--alpha=x"})->Number("alpha").status().message().find("--alpha=x"),
            absl::string_view::npos);
  EXPECT_FALSE(Parse({"--json=maybe"})->Bool("json").ok());
}

TEST(ArgsTest, ParsesTimesWithAUnit) {
  EXPECT_EQ(*Parse({"--deadline=1.5s"})->Duration("deadline", absl::Seconds(1)), absl::Milliseconds(1500));
  EXPECT_EQ(*Parse({})->Duration("deadline", absl::Seconds(1)), absl::Seconds(1));
  for (std::string_view value :
       {"--deadline=5", "--deadline=0s", "--deadline=-1s", "--deadline=inf", "--deadline="}) {
    EXPECT_FALSE(Parse({value})->Duration("deadline", absl::Seconds(1)).ok()) << value;
  }
}

TEST(ArgsTest, ParsesLists) {
  EXPECT_EQ(*Parse({"--axes", "-1,0"})->Integers("axes"), (std::vector<int>{-1, 0}));
  EXPECT_TRUE(Parse({})->Integers("axes")->empty());
  for (std::string_view value :
       {"--axes=", "--axes=1,", "--axes=,1", "--axes=1;2", "--axes=a", "--axes=3000000000"}) {
    EXPECT_FALSE(Parse({value})->Integers("axes").ok()) << value;
  }
  EXPECT_EQ(ParseIntegers("32x64", 'x'), (std::vector<std::int64_t>{32, 64}));
  EXPECT_EQ(ParseIntegers("32xx", 'x'), std::nullopt);
}

TEST(ArgsTest, ChecksTheRangeOfIntegers) {
  EXPECT_EQ(*Parse({"--channels=4"})->Integer("channels", 1, 1, 8), 4);
  EXPECT_FALSE(Parse({"--channels=9"})->Integer("channels", 1, 1, 8).ok());
  EXPECT_FALSE(Parse({"--channels=4.0"})->Integer("channels", 1, 1, 8).ok());
}

TEST(FindCommandTest, RefusesFlagsOfOtherCommands) {
  EXPECT_TRUE(FindCommand(*Parse({"reduce", "--op=sum"})).ok());
  const auto command = FindCommand(*Parse({"transpose", "--alpha=1"}));
  EXPECT_TRUE(IsUsageError(command.status()));
  EXPECT_NE(command.status().message().find("--alpha"), absl::string_view::npos);
  EXPECT_TRUE(IsUsageError(FindCommand(*Parse({"invert"})).status()));
  EXPECT_TRUE(IsUsageError(FindCommand(*Parse({})).status()));
}

TEST(CommonFlagsTest, NamesAWrongDType) {
  EXPECT_EQ(CommonFlags::From(*Parse({"--dtype=bf16"}))->dtype, DType::kBF16);
  const auto flags = CommonFlags::From(*Parse({"--dtype=bfloat16"}));
  EXPECT_NE(flags.status().message().find("--dtype=bfloat16"), absl::string_view::npos);
}

TEST(CommonFlagsTest, TakesAHostWithoutItsPort) {
  for (const auto& [given, address] :
       std::vector<std::pair<std::string, std::string>>{{"localhost", "localhost:50051"},
                                                        {"10.0.0.1", "10.0.0.1:50051"},
                                                        {"gpu:1", "gpu:1"},
                                                        {"unix:./socket", "unix:./socket"},
                                                        {"[::1]:1", "[::1]:1"},
                                                        {"dns:///gpu:1", "dns:///gpu:1"}}) {
    EXPECT_EQ(CommonFlags::From(*Parse({"--server", given}))->server, address);
  }
  const auto error = [](std::string_view address) {
    return std::string(CommonFlags::From(*Parse({"--server", address})).status().message());
  };
  EXPECT_EQ(error("http://gpu:1"), "--server=http://gpu:1: expected host:port: leave http:// out");
  EXPECT_EQ(error("HTTPS://gpu"), "--server=HTTPS://gpu: expected host:port: leave https:// out");
  EXPECT_EQ(error("/run/s"), "--server=/run/s: expected unix:/run/s for a socket");
  EXPECT_EQ(error(""), "--server is empty");
}

TEST(CommonFlagsTest, TakesTheServerOfTheEnvironment) {
  const char* before = std::getenv("WARPLINE_SERVER");
  const std::string saved = before != nullptr ? before : "";
  ::setenv("WARPLINE_SERVER", "gpu", 1);
  EXPECT_EQ(CommonFlags::From(*Parse({}))->server, "gpu:50051");
  ::setenv("WARPLINE_SERVER", "http://gpu", 1);
  EXPECT_EQ(CommonFlags::From(*Parse({})).status().message(),
            "$WARPLINE_SERVER=http://gpu: expected host:port: leave http:// out");
  ::setenv("WARPLINE_SERVER", "", 1);
  EXPECT_EQ(CommonFlags::From(*Parse({}))->server, "127.0.0.1:50051");
  before != nullptr ? ::setenv("WARPLINE_SERVER", saved.c_str(), 1) : ::unsetenv("WARPLINE_SERVER");
}

TEST(CommonFlagsTest, KnowsTheNamesOfValues) {
  EXPECT_EQ(*ReduceOpFlag(*Parse({"--op=count_nonzero"}), "op"), v1::REDUCE_OP_COUNT_NONZERO);
  EXPECT_EQ(*ActivationFlag(*Parse({"--activation=gelu"}), "activation"), v1::ACTIVATION_GELU);
  EXPECT_EQ(*ActivationFlag(*Parse({}), "activation"), v1::ACTIVATION_UNSPECIFIED);
  EXPECT_EQ(**DTypeFlag(*Parse({"--out-dtype=u64"}), "out-dtype"), DType::kU64);
  EXPECT_EQ(
      ReduceOpFlag(*Parse({"--op=median"}), "op").status().message(),
      "--op=median: expected one of sum, prod, min, max, mean, argmin, argmax, any, all, count_nonzero, "
      "norm1, norm2, norminf, sumsq, var, std, logsumexp");
  EXPECT_TRUE(IsUsageError(ActivationFlag(*Parse({"--activation=tanh"}), "activation").status()));
}

// Flags stand before the command too, so every example is one of the command that it names.
TEST(HelpTest, ShowsExamplesThatTheCommandTakes) {
  for (const CommandSpec& command : AllCommands()) {
    std::vector<std::string_view> words;
    std::string_view rest = command.example.substr(0, command.example.find('>'));
    while (!rest.empty()) {
      // A quoted word is the one that has spaces.
      const bool quoted = rest[0] == '\'';
      if (quoted) rest.remove_prefix(1);
      const std::size_t end = std::min(rest.find(quoted ? '\'' : ' '), rest.size());
      words.push_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + (quoted ? 2 : 1), rest.size()));
    }
    const auto args = Parse(words);
    ASSERT_TRUE(args.ok()) << args.status();
    EXPECT_EQ((*FindCommand(*args))->name, command.name);
  }
}

// The list is written by hand.
TEST(HelpTest, ListsEveryOperationAndItsFields) {
  const auto run = std::find_if(AllCommands().begin(), AllCommands().end(),
                                [](const CommandSpec& command) { return command.name == "run"; });
  const std::string help = HelpText(&*run);
  const auto& operations = *v1::Step::descriptor()->FindOneofByName("operation");
  for (int i = 0; i < operations.field_count(); ++i) {
    const std::string name = operations.field(i)->name();
    const std::size_t start = help.find("\n  " + name + "(");
    ASSERT_NE(start, std::string::npos) << name;
    // Lines of one operation stand deeper than its name; the last one ends with an empty line.
    std::size_t end = help.find('\n', start + 1);
    while (help.compare(end, 5, "\n    ") == 0) end = help.find('\n', end + 1);
    const std::string lines = help.substr(start, end - start);
    const auto& type = *operations.field(i)->message_type();
    for (int j = 0; j < type.field_count(); ++j) {
      std::string field = type.field(j)->name();
      if (field == "has_bias") field = "bias";
      if (field == "data_type") field = "dtype";
      if (field == "out_data_type") field = "out_dtype";
      EXPECT_TRUE(lines.find(field + " = ") != std::string::npos ||
                  lines.find(field + ":") != std::string::npos)
          << name << " " << field;
    }
  }
  EXPECT_NE(help.find("logsumexp"), std::string::npos);
  EXPECT_NE(help.find("f8e5m2"), std::string::npos);
}

TEST(HelpTest, MentionsEveryCommandAndItsFlags) {
  for (const CommandSpec& command : AllCommands()) {
    EXPECT_NE(HelpText(nullptr).find(std::string(command.name)), std::string::npos);
    EXPECT_NE(HelpText(&command).find("--server"), std::string::npos);
    EXPECT_NE(HelpText(&command).find("example: warpline " + std::string(command.name)), std::string::npos);
  }
}

}  // namespace
}  // namespace warpline::client
