#include "server/options.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/command_line.h"

namespace warpline {
namespace {

absl::StatusOr<CommandLine> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "warplined");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data(),
                          [](const char*) -> const char* { return nullptr; });
}

TEST(OptionsTest, ReadsFlagsInBothForms) {
  const auto line =
      Parse({"--listen=unix:/tmp/w,127.0.0.1:0", "--lanes", "3", "--max-inline-bytes=64M", "--grace=1500ms",
             "--echo", "--devices=0,2", "--max-device-seconds=0.5", "--device-timeout=0s",
             "--device-bytes=2G", "--drain-delay=1500ms", "--max-connection-age=1h"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.listen, (std::vector<std::string>{"unix:/tmp/w", "127.0.0.1:0"}));
  EXPECT_EQ(line->options.lanes, 3);
  EXPECT_EQ(line->options.max_inline_bytes, 64 << 20);
  EXPECT_EQ(line->options.grace, absl::Milliseconds(1500));
  EXPECT_EQ(line->options.drain_delay, absl::Milliseconds(1500));
  EXPECT_EQ(line->options.max_connection_age, absl::Hours(1));
  EXPECT_TRUE(line->options.echo);
  EXPECT_EQ(line->options.max_device_seconds, 0.5);
  EXPECT_EQ(line->options.device_bytes, std::int64_t{2} << 30);
  EXPECT_EQ(line->options.device_timeout, absl::ZeroDuration());
  EXPECT_EQ(line->options.devices, (std::vector<int>{0, 2}));
}

TEST(OptionsTest, NamesFlagValueAndLimitOfABadOne) {
  for (const char* argument : {"--lanes=65",
                               "--lanes=x",
                               "--max-inline-bytes=2G",
                               "--max-inline-bytes=5Q",
                               "--grace=2h",
                               "--backend=tpu",
                               "--listen=nowhere",
                               "--devices=-1",
                               "--no-such-flag",
                               "stray",
                               "--max-inline-bytes=0",
                               "--devices=0,0",
                               "--listen=127.0.0.1:80000",
                               "--listen=:0",
                               "--listen=127.0.0.1:9400",
                               "--metrics-listen=127.0.0.1:65536",
                               "--grace=10",
                               "--drain-delay=31s",
                               "--max-connection-age=999ms",
                               "--max-connection-age=241h",
                               "--max-job-bytes=1M",
                               "--metrics-listen=9400",
                               "--max-device-seconds=-1",
                               "--max-device-seconds=nan",
                               "--max-device-seconds=1m",
                               "--device-timeout=10",
                               "--device-timeout=2h",
                               "--poll=always",
                               "--device-bytes=0",
                               "--device-bytes=63M",
                               "--device-bytes=most",
                               "--max-connections=-1",
                               "--max-connections=many",
                               "--listen=0.0.0.0:0",
                               "--listen=127.0.0.1:0,[::]:0",
                               "--listen=127.0.0.1.example.org:0",
                               "--listen=localhost.example.org:0",
                               "--metrics-listen=0.0.0.0:9400",
                               "--metrics-listen=127.0.0.1:9400,0.0.0.0:9401",
                               "--tls-cert=a",
                               "--tls-key=a",
                               "--tls-client-ca=a",
                               "--insecure=perhaps",
                               "--listen=unix:"}) {
    const auto line = Parse({argument});
    ASSERT_FALSE(line.ok()) << argument;
    const std::string flag = std::string(argument).substr(0, std::string(argument).find('='));
    EXPECT_NE(line.status().message().find(flag), absl::string_view::npos) << line.status();
  }
}

TEST(OptionsTest, BeyondLoopbackNeedsTlsOrAWord) {
  const auto loopback =
      Parse({"--listen=127.0.0.1:0,127.1.2.3:0,localhost:0,[::1]:0,unix:/tmp/w", "--metrics-listen="});
  ASSERT_TRUE(loopback.ok()) << loopback.status();
  EXPECT_EQ(loopback->options.AddressesBeyondLoopback(), std::vector<std::string>());

  const auto insecure =
      Parse({"--listen=[::]:1,127.0.0.1:2,gpu-node:3", "--metrics-listen=0.0.0.0:4", "--insecure"});
  ASSERT_TRUE(insecure.ok()) << insecure.status();
  EXPECT_EQ(
      insecure->options.AddressesBeyondLoopback(),
      (std::vector<std::string>{"--listen=[::]:1", "--listen=gpu-node:3", "--metrics-listen=0.0.0.0:4"}));

  const auto tls = Parse({"--listen=0.0.0.0:1", "--tls-cert=c", "--tls-key=k"});
  EXPECT_TRUE(tls.ok()) << tls.status();

  const auto refused = Parse({"--listen=127.0.0.1:1,0.0.0.0:2"});
  EXPECT_EQ(refused.status().message(),
            "--listen=0.0.0.0:2: must be loopback or unix:/path unless TLS is configured (--tls-cert, "
            "--tls-key); --insecure allows it without");
}

TEST(OptionsTest, DeviceMemoryFollowsFromLanesAndTheLargestRequestUnlessItIsNamed) {
  const auto automatic = Parse({"--device-bytes=auto", "--lanes=3", "--max-inline-bytes=100M"});
  ASSERT_TRUE(automatic.ok()) << automatic.status();
  EXPECT_EQ(automatic->options.DeviceBytes(/*cuda=*/true), std::int64_t{3 * (264 + 48)} << 20);
  EXPECT_EQ(automatic->options.DeviceBytes(/*cuda=*/false), std::int64_t{2 * 264} << 20);
  const auto named = Parse({"--device-bytes=1G"});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->options.DeviceBytes(/*cuda=*/true), std::int64_t{1} << 30);
  EXPECT_EQ(named->options.DeviceBytes(/*cuda=*/false), std::int64_t{1} << 30);
}

TEST(OptionsTest, HelpNamesEveryLimitAndTheWorstCase) {
  const std::string help = HelpText({});
  for (const char* text : {"--max-inline-bytes", "--send-timeout", "--pinned-bytes", "--device-bytes",
                           "--max-connections", "--poll", "Worst-case host memory"}) {
    EXPECT_NE(help.find(text), std::string::npos) << text;
  }
}

TEST(OptionsTest, OneThreadReceivesAndPollsWhereThereAreCpusForIt) {
  const ServerOptions defaults;
  EXPECT_EQ(defaults.RpcThreads(7), 1);
  EXPECT_EQ(defaults.RpcThreads(64), 2);
  EXPECT_EQ(defaults.Look(3), absl::ZeroDuration());
  EXPECT_GT(defaults.Look(4), absl::ZeroDuration());
  const auto on = Parse({"--poll=on", "--rpc-threads=5"}), off = Parse({"--poll=off"});
  ASSERT_TRUE(on.ok() && off.ok());
  EXPECT_EQ(on->options.RpcThreads(1), 5);
  EXPECT_GT(on->options.Look(1), absl::ZeroDuration());
  EXPECT_EQ(off->options.Look(64), absl::ZeroDuration());
  EXPECT_EQ(off->options.RpcThreads(64), 1);
}

TEST(OptionsTest, ThreadsOfTransfersLeaveHalfOfTheCpusToTheOthers) {
  const ServerOptions defaults;
  EXPECT_EQ(defaults.TransferThreads(2), 0);
  EXPECT_EQ(defaults.TransferThreads(8), 3);
  EXPECT_EQ(defaults.TransferThreads(64), 7);
  const auto four = Parse({"--transfer-threads=4"});
  ASSERT_TRUE(four.ok());
  EXPECT_EQ(four->options.TransferThreads(2), 4);
}

TEST(OptionsTest, ACrewIsThereWhereThreadsMayPoll) {
  const ServerOptions defaults;
  EXPECT_EQ(defaults.Crew(2), 0);
  EXPECT_EQ(defaults.Crew(4), 1);
  EXPECT_EQ(defaults.Crew(16), 4);
  EXPECT_EQ(defaults.Crew(128), 4);
}

TEST(OptionsTest, ConnectionsFollowTheLimitOfDescriptors) {
  const ServerOptions defaults;
  EXPECT_EQ(defaults.MaxConnections(1024), 400);  // two descriptors each, and some for the rest
  EXPECT_EQ(defaults.MaxConnections(1048576), 10000);
  EXPECT_EQ(defaults.MaxConnections(64), 16);
  const auto line = Parse({"--max-connections=20000"});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->options.MaxConnections(1024), 20000);
}

TEST(OptionsTest, TheWorstCaseHoldsScratchMemoryOnTheCpuOnly) {
  const auto small = Parse({"--device-bytes=1G"}), large = Parse({"--device-bytes=3G"});
  ASSERT_TRUE(small.ok() && large.ok());
  EXPECT_EQ(large->options.WorstCaseMemoryBytes(/*cuda=*/false) -
                small->options.WorstCaseMemoryBytes(/*cuda=*/false),
            std::int64_t{2} << 30);
  EXPECT_EQ(large->options.WorstCaseMemoryBytes(/*cuda=*/true),
            small->options.WorstCaseMemoryBytes(/*cuda=*/true));
}

TEST(OptionsTest, DefaultsSuitASmallLaptop) {
  EXPECT_LT(ServerOptions().WorstCaseMemoryBytes(false), std::int64_t{5} << 30);
}

}  // namespace
}  // namespace warpline
