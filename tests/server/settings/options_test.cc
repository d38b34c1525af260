#include "server/settings/options.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "server/settings/command_line.h"

namespace warpline {
namespace {

constexpr std::int64_t kAvailable = std::int64_t{3} << 30;

absl::StatusOr<CommandLine> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "warplined");
  CommandLine line = ParseCommandLine(static_cast<int>(arguments.size()), arguments.data(),
                                      [](const char*) -> const char* { return nullptr; });
  if (line.errors.empty()) return line;
  return absl::InvalidArgumentError(absl::StrJoin(line.errors, "\n"));
}

TEST(OptionsTest, ReadsFlagsInBothForms) {
  const auto line =
      Parse({"--listen=unix:/tmp/w,127.0.0.1:0", "--lanes", "3", "--max-inline-bytes=64M", "--grace=1500ms",
             "--echo", "--devices=0,GPU-1a2b", "--max-device-seconds=0.5", "--device-timeout=0s",
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
  EXPECT_EQ(line->options.devices, (std::vector<std::string>{"0", "GPU-1a2b"}));
}

// Wrong arguments, by their error message. A text after '=' is the whole message; otherwise it is the part
// that follows the argument.
const std::pair<const char*, std::vector<const char*>> kWrong[] = {
    {"must be a number from 0 to 64", {"--lanes=65", "--lanes=x"}},
    {"must be a number of bytes (suffix K, M or G) from 4096 to 1073741824",
     {"--max-inline-bytes=2G", "--max-inline-bytes=5Q", "--max-inline-bytes=0"}},
    {"must be a duration with its unit, from 0 to 1h",
     {"--grace=2h", "--grace=10", "--device-timeout=10", "--device-timeout=2h"}},
    {"must be auto, cuda, cpu", {"--backend=tpu"}},
    {"must be host:port (port 0 to 65535) or unix:/path",
     {"--listen=nowhere", "--listen=127.0.0.1:80000", "--listen=:0", "--listen=unix:"}},
    {"must be all, or devices like 0,1 or GPU-1a2b", {"--devices=-1", "--devices=H200"}},
    {"must be ordinals or UUIDs of whole GPUs; CUDA_VISIBLE_DEVICES chooses a MIG instance",
     {"--devices=MIG-1a2b"}},
    {"unknown flag; see --help", {"--no-such-flag"}},
    {"unknown argument", {"stray"}},
    {"must be devices of which none is named twice", {"--devices=0,0"}},
    {"=--metrics-listen=127.0.0.1:9400: must not be an address of --listen", {"--listen=127.0.0.1:9400"}},
    {"=--listen=unix:/a: must be given only once", {"--listen=unix:/a,127.0.0.1:0,unix:/a"}},
    {"=--proxy-listen=127.0.0.1:2: must be given only once", {"--proxy-listen=127.0.0.1:2,127.0.0.1:2"}},
    {"must be one host:port (port 0 to 65535) or empty",
     {"--metrics-listen=127.0.0.1:65536", "--metrics-listen=9400",
      "--metrics-listen=127.0.0.1:9400,0.0.0.0:9401"}},
    {"must be at most --grace = 30s", {"--drain-delay=31s"}},
    {"must be 0s or at least 1s", {"--max-connection-age=999ms"}},
    {"must be a duration with its unit, from 0 to 240h", {"--max-connection-age=241h"}},
    {"must be a number from 0 to 86400",
     {"--max-device-seconds=-1", "--max-device-seconds=nan", "--max-device-seconds=1m"}},
    {"must be a number from 0 to 1024", {"--cpus=-1", "--cpus=all"}},
    {"must be auto, or a number of bytes (suffix K, M or G) from 67108864 to 1099511627776",
     {"--device-bytes=0", "--device-bytes=63M", "--device-bytes=most"}},
    {"must be a number from 0 to 1000000", {"--max-connections=-1", "--max-connections=many"}},
    {"must be loopback or unix:/path unless TLS is configured (--tls-cert, --tls-key); --insecure allows it "
     "without",
     {"--listen=0.0.0.0:0", "--listen=127.0.0.1.example.org:0", "--listen=localhost.example.org:0",
      "--metrics-listen=0.0.0.0:9400"}},
    {"=--listen=[::]:0: must be loopback or unix:/path unless TLS is configured (--tls-cert, --tls-key); "
     "--insecure allows it without",
     {"--listen=127.0.0.1:0,[::]:0"}},
    {"needs --tls-key", {"--tls-cert=a"}},
    {"needs --tls-cert", {"--tls-key=a"}},
    {"needs --tls-cert and --tls-key", {"--tls-client-ca=a"}},
    {"must be true or false", {"--insecure=perhaps"}},
};

TEST(OptionsTest, NamesFlagValueAndLimitOfABadOne) {
  for (const auto& [message, arguments] : kWrong) {
    for (const char* argument : arguments) {
      const auto line = Parse({argument});
      ASSERT_FALSE(line.ok()) << argument;
      EXPECT_EQ(line.status().message(),
                *message == '=' ? message + 1 : std::string(argument) + ": " + message);
    }
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

TEST(OptionsTest, HostMemoryFollowsFromTheLargestRequest) {
  const auto small = Parse({"--max-inline-bytes=4K"}), large = Parse({"--max-inline-bytes=1G"});
  ASSERT_TRUE(small.ok() && large.ok());
  EXPECT_EQ(small->options.PinnedBytes(/*cuda=*/false), 1 << 20);
  EXPECT_EQ(small->options.MaxJobBytes(), 16 << 10);
  EXPECT_EQ(small->options.GrpcMemoryBytes(), 4 << 20);
  EXPECT_EQ(large->options.PinnedBytes(/*cuda=*/true), std::int64_t{8} << 30);
  EXPECT_EQ(large->options.PinnedBytes(/*cuda=*/false), std::int64_t{4} << 30);
  EXPECT_EQ(large->options.MaxJobBytes(), std::int64_t{4} << 30);
  EXPECT_EQ(large->options.GrpcMemoryBytes(), std::int64_t{6} << 30);
}

TEST(OptionsTest, HelpNamesEveryLimitAndTheWorstCase) {
  const std::string help = HelpText({});
  for (const char* text : {"--max-inline-bytes", "--send-timeout", "--device-bytes", "--max-connections",
                           "--cpus", "Worst-case host memory"}) {
    EXPECT_NE(help.find(text), std::string::npos) << text;
  }
}

TEST(OptionsTest, OneThreadReceivesAndPollsWhereThereAreCpusForIt) {
  const ServerOptions defaults;
  EXPECT_EQ(defaults.RpcThreads(7), 1);
  EXPECT_EQ(defaults.RpcThreads(64), 2);
  EXPECT_EQ(defaults.Look(3), absl::ZeroDuration());
  EXPECT_GT(defaults.Look(4), absl::ZeroDuration());
  EXPECT_EQ(defaults.Cpus(/*usable=*/3), 3);
  EXPECT_EQ(Parse({"--cpus=5"})->options.Cpus(/*usable=*/3), 5);
}

TEST(OptionsTest, ThreadsOfTransfersLeaveHalfOfTheCpusToTheOthers) {
  const ServerOptions defaults;
  EXPECT_EQ(defaults.TransferThreads(2), 0);
  EXPECT_EQ(defaults.TransferThreads(8), 3);
  EXPECT_EQ(defaults.TransferThreads(64), 7);
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
  EXPECT_EQ(defaults.MaxConnections(1024), 352);  // two descriptors each, and some for the rest
  EXPECT_EQ(defaults.MaxConnections(1048576), 10000);
  EXPECT_EQ(defaults.MaxConnections(64), 16);
  const auto line = Parse({"--max-connections=20000"});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->options.MaxConnections(1024), 20000);
}

TEST(OptionsTest, TheWorstCaseHoldsScratchMemoryOnTheCpuOnly) {
  const auto small = Parse({"--device-bytes=1G", "--resident-bytes=0", "--upload-bytes=0"}),
             large = Parse({"--device-bytes=3G", "--resident-bytes=0", "--upload-bytes=0"});
  ASSERT_TRUE(small.ok() && large.ok());
  EXPECT_EQ(large->options.WorstCaseMemoryBytes(/*cuda=*/false, kAvailable) -
                small->options.WorstCaseMemoryBytes(/*cuda=*/false, kAvailable),
            std::int64_t{2} << 30);
  EXPECT_EQ(large->options.WorstCaseMemoryBytes(/*cuda=*/true, kAvailable),
            small->options.WorstCaseMemoryBytes(/*cuda=*/true, kAvailable));
}

TEST(OptionsTest, TheWorstCaseHoldsRegionsAndOnTheCpuResidentTensors) {
  const auto without = Parse({"--resident-bytes=0", "--region-bytes=0"}),
             with = Parse({"--resident-bytes=3G", "--region-bytes=2G"});
  ASSERT_TRUE(without.ok() && with.ok());
  const auto more = [&](bool cuda) {
    return with->options.WorstCaseMemoryBytes(cuda, kAvailable) -
           without->options.WorstCaseMemoryBytes(cuda, kAvailable);
  };
  EXPECT_EQ(more(/*cuda=*/false), std::int64_t{5} << 30);
  EXPECT_EQ(more(/*cuda=*/true), std::int64_t{2} << 30);
}

TEST(OptionsTest, DefaultsSuitASmallLaptop) {
  EXPECT_LT(ServerOptions().WorstCaseMemoryBytes(false, kAvailable), std::int64_t{25} << 28);
}

}  // namespace
}  // namespace warpline
