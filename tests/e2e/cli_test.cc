// Tests for the behaviour that scripts may rely on: exit codes, output streams, files and pipes.
#include "tests/e2e/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/ndarray.h"
#include "warpline/client.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class CliProgramTest : public CliTest {
 protected:
  CliProgramTest() {
    Put("x.npy", ToNpy(x_));
    Put("b.npy", ToNpy(b_));
    Put("both.npy", ToNpy(x_) + ToNpy(b_));
  }

  const Ndarray<float> x_{{2, 3}, {1, 2, 3, 4, 5, 6}};
  const Ndarray<float> xt_{{3, 2}, {1, 4, 2, 5, 3, 6}};
  const Ndarray<float> b_{{3, 1}, {1, 10, 100}};
  const Ndarray<float> xb_{{2, 1}, {321, 654}};
};

// A socket that takes connections and never says a word.
class SilentServer {
 public:
  SilentServer() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd_, 16), 0);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~SilentServer() { ::close(fd_); }
  const std::string& address() const { return address_; }

 private:
  int fd_;
  std::string address_;
};

TEST_F(CliProgramTest, EndsWith0AndSaysNothingWhenAllIsWell) {
  const Finished finished = Run("warpline transpose x.npy -o y.npy");
  EXPECT_EQ(finished.code, 0);
  EXPECT_THAT(finished.out, IsEmpty());
  EXPECT_THAT(finished.err, IsEmpty());
  EXPECT_EQ(FromNpy<float>(Get("y.npy")), xt_);
}

TEST_F(CliProgramTest, EndsWith1AndTheCodeWhenTheServerRefuses) {
  const Finished finished = Run("warpline gemm x.npy x.npy -o y.npy");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.out, IsEmpty());
  EXPECT_THAT(finished.err, StartsWith("warpline: INVALID_ARGUMENT: "));
  EXPECT_THAT(finished.err, Not(HasSubstr("--help")));
  EXPECT_FALSE(std::filesystem::exists(Path("y.npy")));
}

TEST_F(CliProgramTest, EndsWith1WhenNoServerIsThere) {
  const Finished finished = Run("warpline --server unix:./nothing transpose x.npy -o y.npy");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, StartsWith("warpline: UNAVAILABLE: "));
}

TEST_F(CliProgramTest, EndsWith2WhenItIsCalledWrongly) {
  Put("bad.npy", "this is no array");
  Put("int.npy", ToNpy(Ndarray<std::int32_t>{{1}, {1}}));
  for (const char* words : {"",
                            "invert x.npy -o y.npy",
                            "transpose x.npy",
                            "transpose -o y.npy",
                            "transpose x.npy -o y.npy --alpha 1",
                            "transpose x.npy -o y.npy --nonsense",
                            "transpose x.npy -o y.npy -o z.npy",
                            "transpose x.npy -o y.npy --perm 0,0",
                            "transpose x.npy -o y.npy --deadline 5",
                            "transpose missing.npy -o y.npy",
                            "transpose . -o y.npy",
                            "transpose bad.npy -o y.npy",
                            "transpose int.npy --dtype f32 -o y.npy",
                            "transpose x.npy -o missing/y.npy",
                            "transpose x.npy -o .",
                            "reduce x.npy -o y.npy",
                            "reduce x.npy -o y.npy --op median",
                            "reduce x.npy -o y.npy --op sum --axes 2",
                            "gemm x.npy -o y.npy",
                            "info x.npy",
                            "info --server http://127.0.0.1:50051",
                            "info --server /run/warpline.sock",
                            "bench --op cook",
                            "bench --shape 8192x8192 --rate 10"}) {
    const Finished finished = Run(std::string("warpline ") + words);
    EXPECT_EQ(finished.code, 2) << words << "\n" << finished.err;
    const std::string command(words, std::strcspn(words, " "));
    const bool is_known = !command.empty() && command != "invert";
    EXPECT_THAT(finished.err,
                AllOf(StartsWith("warpline: "),
                      HasSubstr("`warpline " + (is_known ? command + " " : "") + "--help` tells more")))
        << words;
    EXPECT_FALSE(std::filesystem::exists(Path("y.npy"))) << words;
  }
}

TEST_F(CliProgramTest, RefusesAsUsageWhatNoRequestCanCarry) {
  Put("huge.npy", ToNpy(Ndarray<float>{{1 << 15, 1 << 14}, {}}));  // 2 GiB
  Finished finished = Run("truncate -s 3G huge.npy; warpline transpose huge.npy -o y.npy --transport inline");
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("huge.npy"), HasSubstr("2147483648"), Not(HasSubstr("INVALID"))));
}

TEST_F(CliProgramTest, EndsWith1WhenWritingFails) {
  Finished finished = Run("warpline transpose x.npy -o - >/dev/full");
  EXPECT_EQ(finished.code, 1);
  EXPECT_EQ(finished.err, "warpline: standard output: cannot write: No space left on device\n");
  finished = Run("warpline info >/dev/full");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, StartsWith("warpline: standard output: cannot write"));
  // More than a pipe holds, and nobody who reads it.
  Put("large.npy", ToNpy(Zeros<float>({512, 512})));
  finished = Run("{ warpline transpose large.npy -o -; echo $? >code.txt; } | true");
  EXPECT_EQ(Get("code.txt"), "1\n");
  EXPECT_EQ(finished.err, "warpline: standard output: cannot write: Broken pipe\n");
}

TEST_F(CliProgramTest, ReadsStandardInput) {
  EXPECT_EQ(Run("warpline transpose - -o y.npy <x.npy").code, 0);
  EXPECT_EQ(FromNpy<float>(Get("y.npy")), xt_);
  EXPECT_EQ(Run("cat x.npy | warpline transpose - -o y2.npy").code, 0);
  EXPECT_EQ(Get("y2.npy"), Get("y.npy"));
  // Two arrays one after the other, from a pipe and from a file.
  EXPECT_EQ(Run("cat both.npy | warpline gemm - - -o d.npy").code, 0);
  EXPECT_EQ(FromNpy<float>(Get("d.npy")), xb_);
  EXPECT_EQ(Run("warpline gemm - - -o d2.npy <both.npy").code, 0);
  EXPECT_EQ(FromNpy<float>(Get("d2.npy")), xb_);
  EXPECT_EQ(Run("warpline transpose - -o y3.npy").code, 2);  // nothing comes
}

TEST_F(CliProgramTest, WritesStandardOutput) {
  // The link is like /dev/stdout. No test names the machine's own /dev/stdout: run as root, a mistake would
  // replace it.
  std::filesystem::create_symlink("/proc/self/fd/1", Path("stdout"));
  for (const char* output : {"-", "stdout"}) {
    Finished finished = Run(std::string("warpline transpose x.npy --timings -o ") + output);
    EXPECT_EQ(finished.code, 0);
    EXPECT_EQ(FromNpy<float>(finished.out), xt_);
    EXPECT_THAT(finished.err, StartsWith("transpose f32[3,2] "));
    finished = Run(std::string("warpline transpose x.npy -o ") + output + " | cat >y.npy");
    EXPECT_EQ(FromNpy<float>(Get("y.npy")), xt_);
    EXPECT_THAT(finished.err, IsEmpty());
  }
}

TEST_F(CliProgramTest, ReplacesWhatALinkLeadsTo) {
  EXPECT_EQ(Run("ln -s real.npy link.npy; echo old >real.npy; chmod 604 real.npy;"
                "warpline transpose x.npy -o link.npy")
                .code,
            0);
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link.npy")));
  EXPECT_EQ(FromNpy<float>(Get("real.npy")), xt_);
  EXPECT_EQ(std::filesystem::status(Path("real.npy")).permissions(), std::filesystem::perms{0604});
}

TEST_F(CliProgramTest, TellsWhatRan) {
  Finished finished = Run("warpline transpose x.npy -o y.npy --timings --json");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, AllOf(HasSubstr("\"shape\":[3,2]"), HasSubstr("\"request_id\":")));
  // Two requests, as the server puts a Fortran batch into row-major order first.
  Put("f.npy", ToNpy(Numbers<float>({2, 3, 3}, 1), true));
  finished = Run("warpline gemm f.npy f.npy -o y.npy --timings");
  EXPECT_THAT(finished.out, AllOf(StartsWith("transpose f32"), HasSubstr("\ngemm f32[2,3,3]")))
      << finished.err;
}

TEST_F(CliProgramTest, TakesTheVariantsThatInfoLists) {
  const v1::GetInfoResponse info = *client::Client(daemon_.address(), {}).GetInfo(absl::Seconds(60));
  Finished finished = Run("warpline info --json");
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto json = nlohmann::json::parse(finished.out);
  EXPECT_EQ(json["backend"], daemon_.backend());
  EXPECT_EQ(json["limits"]["max_steps"], info.limits().max_steps());
  EXPECT_TRUE(json["devices"][0]["memory_bytes"].is_number_integer()) << finished.out;
  EXPECT_EQ(json["operations"].size(), static_cast<std::size_t>(info.operations_size()));
  EXPECT_THAT(json["operations"][0]["data_types"].get<std::vector<std::string>>(), testing::Contains("f32"));
  int tried = 0;
  for (const v1::Operation& operation : info.operations()) {
    if (operation.name() != "transpose") continue;
    for (const v1::Variant& variant : operation.variants()) {
      finished = Run("warpline transpose x.npy -o y.npy --timings --variant " + variant.name());
      // Not every variant does every shape; then the server says so.
      if (finished.code == 0) {
        EXPECT_THAT(finished.out, HasSubstr(" " + variant.name() + " "));
        EXPECT_EQ(FromNpy<float>(Get("y.npy")), xt_);
        ++tried;
      } else {
        EXPECT_THAT(finished.err, StartsWith("warpline: INVALID_ARGUMENT: "));
      }
    }
  }
  EXPECT_GT(tried, 1);
  finished = Run("warpline transpose x.npy -o y.npy --variant no-such-one");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, AllOf(StartsWith("warpline: INVALID_ARGUMENT: "), HasSubstr("no-such-one")));
}

TEST_F(CliProgramTest, ObeysTheDeadline) {
  const SilentServer silent;
  const Finished finished =
      Run("warpline transpose x.npy -o y.npy --deadline 200ms --server " + silent.address());
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, AllOf(StartsWith("warpline: DEADLINE_EXCEEDED: "), HasSubstr("(request cli-")));
}

TEST_F(CliProgramTest, CountsTheDeadlineFromTheRequestAndNotFromTheStart) {
  const Finished finished = Run("{ sleep 2.5; cat x.npy; } | warpline transpose - -o y.npy --deadline 2s");
  EXPECT_EQ(finished.code, 0) << finished.err;
}

TEST_F(CliProgramTest, TellsHealth) {
  Finished finished = Run("warpline health");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.out, "SERVING\n");
  EXPECT_EQ(Run("warpline health --service warpline.v1.KernelService").code, 0);
  finished = Run("warpline health --service no.such.service");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, StartsWith("warpline: NOT_FOUND: "));
  EXPECT_EQ(Run("warpline health --server unix:./nothing").code, 1);
}

TEST_F(CliProgramTest, TellsAboutTheServerAndItself) {
  const Finished finished = Run("warpline info");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, AllOf(HasSubstr("backend    " + daemon_.backend()), HasSubstr("transpose (")));
  EXPECT_THAT(Run("warpline --version").out, StartsWith("warpline "));
  EXPECT_THAT(Run("warpline --help").out, HasSubstr("Exit codes: 0 done"));
  EXPECT_THAT(Run("warpline gemm --help").out, HasSubstr("--trans-a"));
}

}  // namespace
}  // namespace warpline
