#include "client/cli/args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/flags.h"

namespace warpline::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A command line with options of each kind.
struct Line {
  Line() {
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app.add_option("files", files);
    app.add_option("-o,--output", output);
    app.add_option("--each", each)->allow_extra_args(false);
    app.add_flag("--json", json);
    app.add_option("--retries", retries)->check(CLI::Range(0, 8));
    AddNumber(app, "--alpha", alpha, "");
    AddIntegers(app, "--axes", axes, "");
    AddTime(app, "--ttl", ttl, "");
    AddTime(app, "--warmup", warmup, "", Least::kZero);
    AddChoice(app, "--dtype", dtype, DTypes(), "");
  }

  std::string Error(const std::vector<std::string>& words) {
    const absl::Status status = Parse(app, words).status();
    EXPECT_TRUE(IsUsageError(status)) << status;
    return std::string(status.message());
  }

  CLI::App app;
  std::vector<std::string> files, each;
  std::string output;
  bool json = false;
  int retries = 0;
  std::optional<double> alpha;
  std::vector<int> axes;
  absl::Duration ttl, warmup = absl::Seconds(1);
  std::optional<DType> dtype;
};

TEST(ArgsTest, TakesFlagsAnywhereInBothForms) {
  Line line;
  const auto text =
      Parse(line.app, {"--ttl", "1.5s", "A.npy", "--alpha", "-2.5", "-o", "-", "B.npy", "--axes", "-1,0", "-",
                       "--json", "--dtype=bf16", "--each=a=1", "--each", "b", "c"});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "");
  EXPECT_EQ(line.files, (std::vector<std::string>{"A.npy", "B.npy", "-", "c"}));
  EXPECT_EQ(line.each, (std::vector<std::string>{"a=1", "b"}));
  EXPECT_EQ(line.output, "-");
  EXPECT_EQ(line.alpha, -2.5);
  EXPECT_EQ(line.axes, (std::vector<int>{-1, 0}));
  EXPECT_EQ(line.ttl, absl::Milliseconds(1500));
  EXPECT_EQ(line.dtype, DType::kBF16);
  EXPECT_TRUE(line.json);
}

TEST(ArgsTest, TakesShortFlagsInThreeForms) {
  for (const auto& words : std::vector<std::vector<std::string>>{{"-oX"}, {"-o=X"}, {"-o", "X"}}) {
    Line line;
    EXPECT_TRUE(Parse(line.app, words).ok());
    EXPECT_EQ(line.output, "X");
  }
}

TEST(ArgsTest, KeepsTheLastOfRepeatedFlags) {
  Line line;
  EXPECT_TRUE(
      Parse(line.app, {"--axes", "0,1", "--axes=1,0", "--alpha=1", "--alpha=2", "--json", "--json"}).ok());
  EXPECT_EQ(line.axes, (std::vector<int>{1, 0}));
  EXPECT_EQ(line.alpha, 2);
}

TEST(ArgsTest, EndsFlagsAtTwoDashes) {
  Line line;
  EXPECT_TRUE(Parse(line.app, {"--", "-o", "--axes=", "-o=x"}).ok());
  EXPECT_EQ(line.files, (std::vector<std::string>{"-o", "--axes=", "-o=x"}));
}

TEST(ArgsTest, TakesAnEmptyValueForWhatItIs) {
  Line line;
  line.output = "before";
  EXPECT_TRUE(Parse(line.app, {"--output=", "x"}).ok());
  EXPECT_EQ(line.output, "");
  EXPECT_EQ(line.files, std::vector<std::string>{"x"});
}

TEST(ArgsTest, NamesFlagValueAndLimitInErrors) {
  // The library's words; another version of it may have others.
  EXPECT_THAT(Line().Error({"--retries=9"}),
              AllOf(HasSubstr("--retries: "), HasSubstr("9 "), HasSubstr("8")));
  EXPECT_EQ(Line().Error({"--ttl", "5"}),
            "--ttl: 5 is not a time above zero with a unit, such as 5s or 200ms");
  EXPECT_EQ(Line().Error({"--alpha=1e400"}), "--alpha: 1e400 is not between -1.8e308 and 1.8e308");
  EXPECT_EQ(Line().Error({"--axes=1;2"}), "--axes: 1;2 is not a list of whole numbers, such as 1,0");
  EXPECT_EQ(Line().Error({"--dtype=bfloat16"}).substr(0, 37), "--dtype: bfloat16 not in {bool,u8,u16");
  for (const char* wrong :
       {"--retries=", "--retries=4.0", "--retries=-1", "--alpha=", "--alpha=x", "--dtype=", "--json=maybe",
        "--ttl=", "--ttl=0s", "--ttl=-1s", "--ttl=inf", "--warmup=-1s", "--axes=", "--axes=1,", "--axes=,1",
        "--axes=a", "--axes=3000000000", "--axes"}) {
    const std::string word(wrong);
    EXPECT_NE(Line().Error({word}).find(word.substr(0, word.find('='))), std::string::npos) << word;
  }
  Line line;
  EXPECT_TRUE(Parse(line.app, {"--warmup=0s"}).ok());
  EXPECT_EQ(line.warmup, absl::ZeroDuration());
  EXPECT_TRUE(Parse(line.app, {"--alpha=inf"}).ok());
  EXPECT_EQ(line.alpha, std::numeric_limits<double>::infinity());
}

TEST(ArgsTest, ParsesIntegers) {
  EXPECT_EQ(ParseIntegers("32x64", 'x'), (std::vector<std::int64_t>{32, 64}));
  EXPECT_EQ(ParseIntegers("32xx", 'x'), std::nullopt);
}

TEST(CommandLineTest, NamesWhatNobodyExpects) {
  const auto error = [](const std::vector<std::string>& words) {
    const absl::Status status = CommandLine().Parse(words).status();
    EXPECT_TRUE(IsUsageError(status)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(error({}), "a command is missing");
  EXPECT_EQ(error({"invert", "x.npy"}), "unknown command invert");
  EXPECT_EQ(error({"transpsoe", "x.npy"}), "unknown command transpsoe: did you mean transpose?");
  EXPECT_EQ(error({"--nonsense=1"}), "unknown flag --nonsense=1");
  EXPECT_EQ(error({"-z"}), "unknown flag -z");
  EXPECT_EQ(error({"transpose", "x.npy", "-o", "y.npy", "--alpha=1"}),
            "--alpha=1 is not a flag of transpose");
  // Not that --output is missing.
  EXPECT_EQ(error({"transpose", "x.npy", "--outptu", "y.npy"}),
            "--outptu is not a flag of transpose: did you mean --output?");
  EXPECT_EQ(error({"info", "--sever=x"}), "--sever=x is not a flag of info: did you mean --server?");
  EXPECT_EQ(error({"--perm=1,0", "transpose", "x.npy", "-o", "y.npy"}),
            "--perm=1,0: flags of transpose must stand after it and before --");
  EXPECT_EQ(error({"info", "x.npy"}), "info takes no further argument: x.npy");
  EXPECT_EQ(error({"transpose", "-o", "y.npy"}), "IN.npy is required");
}

TEST(CommandLineTest, AnOptionIsNotTakenForAFile) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"transpose", "x.npy", "-o", "--timings"}, {"get", "1", "-o", "-v"}, {"run", "-o", "--timings"}}) {
    CommandLine line;
    const absl::Status status = line.Parse(words).status();
    EXPECT_TRUE(IsUsageError(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("--output"), HasSubstr(words.back() + " is an option")));
  }
  CommandLine line;
  EXPECT_TRUE(line.Parse({"transpose", "x.npy", "-o", "./--timings"}).ok());
  EXPECT_TRUE(line.Parse({"transpose", "x.npy", "-o", "-"}).ok());
}

TEST(CommandLineTest, TakesCommonFlagsOnBothSidesOfTheCommand) {
  CommandLine line;
  EXPECT_TRUE(line.Parse({"--server", "a:1", "transpose", "gemm", "-o", "y.npy", "--deadline=5s"}).ok());
  EXPECT_EQ(line.common.server, "a:1");
  EXPECT_EQ(line.common.deadline, absl::Seconds(5));
}

// Returns the flags as they are once the command line is completed.
absl::StatusOr<CommonFlags> Common(const std::vector<std::string>& words) {
  CLI::App app;
  CommonFlags common;
  common.AddTo(app);
  RETURN_IF_ERROR(Parse(app, words).status());
  RETURN_IF_ERROR(common.Complete(app));
  return common;
}

TEST(CommonFlagsTest, TakesAHostWithoutItsPort) {
  for (const auto& [given, address] :
       std::vector<std::pair<std::string, std::string>>{{"localhost", "localhost:50051"},
                                                        {"10.0.0.1", "10.0.0.1:50051"},
                                                        {"gpu:1", "gpu:1"},
                                                        {"unix:./socket", "unix:./socket"},
                                                        {"[::1]:1", "[::1]:1"},
                                                        {"dns:///gpu:1", "dns:///gpu:1"}}) {
    EXPECT_EQ(Common({"--server", given})->server, address);
  }
  const auto error = [](const std::string& address) {
    return std::string(Common({"--server", address}).status().message());
  };
  EXPECT_EQ(error("http://gpu:1"), "--server=http://gpu:1: expected host:port: leave http:// out");
  for (const char* address : {"gpu:65536", "gpu:0", "gpu:", "gpu:x", ":50051"}) {
    EXPECT_EQ(error(address), std::string("--server=") + address +
                                  ": expected host[:port] with a port from 1 to 65535, or unix:/path");
  }
  EXPECT_EQ(error("HTTPS://gpu"), "--server=HTTPS://gpu: expected host:port: leave https:// out");
  EXPECT_EQ(error("/run/s"), "--server=/run/s: expected unix:/run/s for a socket");
  EXPECT_EQ(error(""), "--server is empty");
}

TEST(CommonFlagsTest, TakesTheServerOfTheEnvironment) {
  const char* before = std::getenv("WARPLINE_SERVER");
  const std::string saved = before != nullptr ? before : "";
  ::setenv("WARPLINE_SERVER", "gpu", 1);
  EXPECT_EQ(Common({})->server, "gpu:50051");
  EXPECT_EQ(Common({"--server=a:1"})->server, "a:1");
  ::setenv("WARPLINE_SERVER", "http://gpu", 1);
  EXPECT_EQ(Common({}).status().message(),
            "$WARPLINE_SERVER=http://gpu: expected host:port: leave http:// out");
  ::setenv("WARPLINE_SERVER", "", 1);
  EXPECT_EQ(Common({})->server, "127.0.0.1:50051");
  before != nullptr ? ::setenv("WARPLINE_SERVER", saved.c_str(), 1) : ::unsetenv("WARPLINE_SERVER");
}

TEST(CommonFlagsTest, KnowsTheNamesOfValues) {
  v1::ReduceOp op = v1::REDUCE_OP_SUM;
  v1::Activation activation = v1::ACTIVATION_NONE;
  CLI::App app;
  AddChoice(app, "--op", op, ReduceOps(), "");
  AddChoice(app, "--activation", activation, Activations(), "");
  EXPECT_TRUE(Parse(app, {"--op=COUNT_NONZERO", "--activation=gelu"}).ok());
  EXPECT_EQ(op, v1::REDUCE_OP_COUNT_NONZERO);
  EXPECT_EQ(activation, v1::ACTIVATION_GELU);
  EXPECT_EQ(
      Parse(app, {"--op=median"}).status().message(),
      "--op: median not in {sum,prod,min,max,mean,argmin,argmax,any,all,count_nonzero,norm1,norm2,norminf,"
      "sumsq,var,std,logsumexp}");
}

}  // namespace
}  // namespace warpline::client
