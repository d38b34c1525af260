#include "server/settings/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/settings/check_config.h"

namespace warpline {
namespace {

using std::string_literals::operator""s;
using ::testing::HasSubstr;
using ::testing::Not;

class CommandLineTest : public testing::Test {
 protected:
  ~CommandLineTest() override { std::remove(path_.c_str()); }

  absl::StatusOr<CommandLine> Parse(std::vector<const char*> arguments) const {
    arguments.insert(arguments.begin(), "warplined");
    CommandLine line = ParseCommandLine(
        static_cast<int>(arguments.size()), arguments.data(), [this](const char* name) -> const char* {
          const auto variable = environment_.find(name);
          return variable == environment_.end() ? nullptr : variable->second.c_str();
        });
    if (line.errors.empty()) return line;
    return absl::InvalidArgumentError(absl::StrJoin(line.errors, "\n"));
  }

  std::string ErrorOf(const std::vector<const char*>& arguments) const {
    const auto line = Parse(arguments);
    return line.ok() ? "" : std::string(line.status().message());
  }

  void Set(const std::string& name, const std::string& value) { environment_[name] = value; }

  // Written where --config is, which it returns.
  std::string File(const std::string& text) {
    std::ofstream(path_) << text;
    return "--config=" + path_;
  }

  // Tests run beside one another, each in a process of its own.
  const std::string path_ = absl::StrCat(testing::TempDir(), "warplined_", getpid(), ".toml");

 private:
  std::map<std::string, std::string> environment_;
};

TEST_F(CommandLineTest, AFlagBeatsTheEnvironmentAndTheEnvironmentTheFile) {
  const std::string file = File("lanes = 1\nmax-jobs = 1\nmax-connections = 1\n");
  Set("WARPLINED_LANES", "2");
  Set("WARPLINED_MAX_JOBS", "2");
  const auto line = Parse({file.c_str(), "--lanes=3"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.lanes, 3);
  EXPECT_EQ(line->options.max_jobs, 2);
  EXPECT_EQ(line->options.max_connections, 1);
  std::vector<std::string> sources;
  for (const Setting& setting : line->settings) {
    sources.push_back(setting.name + "=" + setting.value + " " + setting.source);
  }
  EXPECT_EQ(sources, (std::vector<std::string>{"config=" + path_ + " --config", "lanes=3 --lanes",
                                               "max-jobs=2 $WARPLINED_MAX_JOBS",
                                               "max-connections=1 " + path_ + ":3"}));
}

TEST_F(CommandLineTest, TheFileHasValuesOfEveryKind) {
  const auto line = Parse({File("# comment\nlisten = [\"127.0.0.1:1\", \"unix:/tmp/w\"]\nlanes = 4\n"
                                "max-inline-bytes = \"64M\"\nmax-device-seconds = 0.5\necho = true\n"
                                "insecure = false\ndevices = [0, 2]\ngrace = \"5s\"\nmetrics-listen = \"\"\n"
                                "device-bytes = \"auto\"\n")
                               .c_str()});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.listen, (std::vector<std::string>{"127.0.0.1:1", "unix:/tmp/w"}));
  EXPECT_EQ(line->options.lanes, 4);
  EXPECT_EQ(line->options.max_inline_bytes, 64 << 20);
  EXPECT_EQ(line->options.max_device_seconds, 0.5);
  EXPECT_TRUE(line->options.echo);
  EXPECT_FALSE(line->options.insecure);
  EXPECT_EQ(line->options.devices, (std::vector<std::string>{"0", "2"}));
  EXPECT_EQ(line->options.grace, absl::Seconds(5));
  EXPECT_EQ(line->options.metrics_listen, "");
}

TEST_F(CommandLineTest, TheEnvironmentMayNameTheFile) {
  File("lanes = 5\n");
  Set("WARPLINED_CONFIG", path_);
  const auto line = Parse({});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.lanes, 5);
}

TEST_F(CommandLineTest, OtherVariablesAndEmptyOnesMeanNothing) {
  Set("WARPLINED_LANES", "");  // as compose makes it of what is not set
  Set("WARPLINED_INSECURE", "");
  // Kubernetes sets such variables for a service of that name.
  Set("WARPLINED_PORT", "tcp://10.0.0.1:50051");
  Set("WARPLINED_SERVICE_HOST", "10.0.0.1");
  Set("WARPLINED_HELP", "true");
  Set("WARPLINED_NEW_TOKEN", "alice");
  const auto line = Parse({});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->action, CommandLine::Action::kServe);
  EXPECT_TRUE(line->settings.empty());
}

TEST_F(CommandLineTest, AnErrorSaysWhereTheValueStands) {
  EXPECT_EQ(ErrorOf({"--lanes=65"}), "--lanes=65: must be a number from 0 to 64");
  EXPECT_EQ(ErrorOf({File("\nlanes = 65\n").c_str()}),
            path_ + ":2: --lanes=65: must be a number from 0 to 64");
  EXPECT_EQ(ErrorOf({File("echo = \"perhaps\"\n").c_str()}),
            path_ + ":1: echo = perhaps: must be true or false");
  EXPECT_EQ(ErrorOf({File("access-log = false\n").c_str()}),
            path_ + ":1: access-log = false: must not be true or false");
  EXPECT_EQ(ErrorOf({"--insecure=1x"}), "--insecure=1x: must be true or false");
  EXPECT_EQ(ErrorOf({File("grace = \"1s\"\ndrain-delay = \"2s\"\n").c_str()}),
            path_ + ":2: --drain-delay=2s: must be at most --grace = 1s");
  Set("WARPLINED_LANES", "many");
  EXPECT_EQ(ErrorOf({}), "$WARPLINED_LANES: --lanes=many: must be a number from 0 to 64");
}

TEST_F(CommandLineTest, AllErrorsAreReportedAtOnce) {
  Set("WARPLINED_LANES", "65");
  const std::string file = File("max-job = 1\nmax-ttl = \"1m\"\nlisten = \"0.0.0.0:1\"\ngrace = \"x\"\n");
  EXPECT_EQ(ErrorOf({"--cpus=-1", "--no-such-flag", file.c_str(), "--tls-client-ca=ca", "--drain-delay=1m"}),
            absl::StrJoin(
                {"--cpus=-1: must be a number from 0 to 1024"s, "--no-such-flag: unknown flag; see --help"s,
                 "$WARPLINED_LANES: --lanes=65: must be a number from 0 to 64"s,
                 path_ + ":1: max-job: unknown setting; did you mean max-jobs?",
                 path_ + ":2: --max-ttl=1m: must be a duration with its unit, from 10m to 8760h",
                 path_ + ":4: --grace=x: must be a duration with its unit, from 0 to 1h",
                 "--tls-client-ca=ca: needs --tls-cert and --tls-key"s,
                 path_ + ":3: --listen=0.0.0.0:1: must be loopback or unix:/path unless TLS is "
                         "configured (--tls-cert, --tls-key); --insecure allows it without"},
                "\n"));
}

TEST_F(CommandLineTest, AnUnknownNameIsAnErrorWithTheNearest) {
  EXPECT_EQ(ErrorOf({"--max-job=3"}), "--max-job: unknown flag; did you mean --max-jobs?; see --help");
  EXPECT_EQ(ErrorOf({"--qqqqqqqq"}), "--qqqqqqqq: unknown flag; see --help");
  EXPECT_EQ(ErrorOf({File("max_inline_bytes = \"1M\"\n").c_str()}),
            path_ + ":1: max_inline_bytes: unknown setting; did you mean max-inline-bytes?");
  // A file names no other one, and asks for nothing.
  EXPECT_THAT(ErrorOf({File("config = \"b\"\n").c_str()}), HasSubstr("config: cannot stand in a file"));
  EXPECT_THAT(ErrorOf({File("help = true\n").c_str()}), HasSubstr("help: cannot stand in a file"));
}

TEST_F(CommandLineTest, TheFileIsTomlWithoutTables) {
  EXPECT_THAT(ErrorOf({File("lanes = \n").c_str()}), HasSubstr(path_ + " is no TOML: line 1"));
  EXPECT_EQ(ErrorOf({File("[owner.anonymous]\njobs = 1\n").c_str()}),
            path_ +
                ":1: owner: must be a string, a number, true, false or an array of these; owners stand in "
                "the file of --tokens");
  EXPECT_THAT(ErrorOf({"--config=/nowhere/a.toml"}), HasSubstr("/nowhere/a.toml: No such file"));
  EXPECT_THAT(ErrorOf({"--config=/"}), HasSubstr("/: is no regular file"));
  // Not that plaintext is refused there: the file may have the certificate.
  EXPECT_THAT(ErrorOf({"--config=/nowhere/a.toml", "--listen=0.0.0.0:1"}), Not(HasSubstr("insecure")));
}

TEST_F(CommandLineTest, AWordBehindAnEmptyValueIsNotTakenForIt) {
  const auto line = Parse({"--metrics-listen=", "--echo"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.metrics_listen, "");
  EXPECT_TRUE(line->options.echo);
  EXPECT_EQ(ErrorOf({"--regions=", "--echo"}), "--regions=: must be a path");
  EXPECT_EQ(ErrorOf({"--lanes"}), "--lanes=: must be a number from 0 to 64");
}

TEST_F(CommandLineTest, TheLastOfTwoCounts) {
  const auto line = Parse({"--lanes=2", "--echo", "--lanes", "3", "--echo=false", "--listen=127.0.0.1:1",
                           "--listen=127.0.0.1:2"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.lanes, 3);
  EXPECT_FALSE(line->options.echo);
  EXPECT_EQ(line->options.listen, std::vector<std::string>{"127.0.0.1:2"});
}

TEST_F(CommandLineTest, WhatIsAskedOnceNeedsNoFile) {
  Set("WARPLINED_CONFIG", "/nowhere/a.toml");
  using Action = CommandLine::Action;
  EXPECT_EQ(Parse({"--help", "--max-inline-bytes=4M"})->action, Action::kHelp);
  EXPECT_EQ(Parse({"-h"})->action, Action::kHelp);
  EXPECT_EQ(Parse({"--version"})->action, Action::kVersion);
  const auto token = Parse({"--new-token", "alice"});
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->action, Action::kNewToken);
  EXPECT_EQ(token->new_token, "alice");
  EXPECT_THAT(ErrorOf({"--new-token=al ice"}), HasSubstr("--new-token=al ice: must be a name"));
  EXPECT_THAT(ErrorOf({"--new-token"}), HasSubstr("--new-token=: must be a name"));
}

TEST_F(CommandLineTest, AFlagThatWentIsAnErrorThatSaysWhatToDoWithoutIt) {
  EXPECT_EQ(ErrorOf({"--tuning=read"}),
            "--tuning: there is no such flag any more; not needed: the server chooses kernels by rules");
  EXPECT_THAT(ErrorOf({File("tuning-file = \"tuned.toml\"\n").c_str()}),
              HasSubstr(":1: tuning-file: there is no such flag any more; "));
  Set("WARPLINED_TUNING", "off");
  EXPECT_THAT(ErrorOf({}), HasSubstr("$WARPLINED_TUNING: there is no such flag any more; "));
}

TEST_F(CommandLineTest, WhatItPrintsOfItsSettingsIsAFileThatItReads) {
  Set("WARPLINED_ECHO", "true");
  const auto line = Parse({"--check-config", "--insecure", "--lanes=003",
                           "--listen=127.0.0.1:1,unix:/tmp/a \"b\"", "--max-inline-bytes=4M"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->action, CommandLine::Action::kCheckConfig);
  const std::string text = SettingsText(*line);
  EXPECT_EQ(text,
            "listen = \"127.0.0.1:1,unix:/tmp/a \\\"b\\\"\"  # --listen\n"
            "insecure = true  # --insecure\n"
            "lanes = 3  # --lanes\n"
            "max-inline-bytes = \"4M\"  # --max-inline-bytes\n"
            "echo = true  # $WARPLINED_ECHO\n");
  Set("WARPLINED_ECHO", "true");
  const auto again = Parse({File(text).c_str()});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->options.listen, line->options.listen);
  EXPECT_EQ(again->options.lanes, 3);
}

TEST_F(CommandLineTest, TheHelpHasEveryFlagInLinesThatFit) {
  const std::string help = HelpText({});
  for (const char* flag : {"--config=FILE", "--check-config", "--new-token=NAME", "--listen=ADDR[,ADDR]",
                           "--insecure\n", "-h,--help"}) {
    EXPECT_THAT(help, HasSubstr(flag));
  }
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 110u) << line;
}

}  // namespace
}  // namespace warpline
