// SIGHUP reads settings and files again, and the log in JSON; a port that is taken is reported before
// devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"
#include "tests/testing/patience.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ReloadTest : public ::testing::Test {
 protected:
  ~ReloadTest() override {
    for (const std::string& path : {config_, access_log_, access_log_ + ".1"}) std::remove(path.c_str());
  }

  void Write(const std::string& settings) const {
    std::ofstream(config_) << "access-log = \"" << access_log_ << "\"\n" << settings;
  }
  static v1::Limits LimitsOf(const Daemon& daemon) {
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    v1::GetInfoResponse info;
    EXPECT_TRUE(v1::InfoService::NewStub(daemon.Channel())->GetInfo(&context, {}, &info).ok());
    return info.limits();
  }
  static grpc::Status Transpose(const Daemon& daemon) {
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    v1::TransposeResponse response;
    return v1::KernelService::NewStub(daemon.Channel())
        ->Transpose(&context, IotaTranspose(64, 64), &response);
  }

  const std::string config_ = absl::StrCat(::testing::TempDir(), "/warpline_reload_", ::getpid(), ".toml");
  const std::string access_log_ = absl::StrCat(::testing::TempDir(), "/warpline_reload_", ::getpid(), ".log");
};

TEST_F(ReloadTest, LimitsChangeAndTheRestIsNamed) {
  ::testing::internal::CaptureStderr();
  {
    Write("max-jobs = 100\n");
    Daemon daemon({"--config=" + config_});
    EXPECT_EQ(LimitsOf(daemon).max_jobs(), 100);
    EXPECT_TRUE(Transpose(daemon).ok());

    // The plan of this request is known, and is refused all the same.
    Write("max-jobs = 50\nmax-ttl = \"1h\"\nlanes = 3\nmax-device-seconds = 0.000000001\n");
    daemon.Signal(SIGHUP);
    AwaitThat("the new limits", [&] { return LimitsOf(daemon).max_jobs() == 50; });
    EXPECT_EQ(LimitsOf(daemon).max_ttl_seconds(), 3600);
    const grpc::Status refused = Transpose(daemon);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(refused.error_message(), HasSubstr("--max-device-seconds"));

    // A file that is wrong changes nothing.
    Write("max-jobs = 0\nmax-tl = \"2h\"\n");
    daemon.Signal(SIGHUP);
    // Settings that are no longer in the file have their defaults again.
    Write("max-jobs = 60\n");
    daemon.Signal(SIGHUP);
    AwaitThat("the limits of the third file", [&] { return LimitsOf(daemon).max_jobs() == 60; });
    EXPECT_TRUE(Transpose(daemon).ok());
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(
      log, HasSubstr("level=info msg=\"setting changed\" flag=max-jobs value=50 source=" + config_ + ":2"));
  EXPECT_THAT(log,
              HasSubstr("level=warning msg=\"this setting changes only with a restart\" flag=lanes value=3"));
  EXPECT_THAT(log, HasSubstr("level=info msg=reloaded"));
}

TEST_F(ReloadTest, AnErrorLeavesAllAsItIs) {
  ::testing::internal::CaptureStderr();
  {
    Write("max-jobs = 100\n");
    Daemon daemon({"--config=" + config_});
    Write("max-jobs = 50\ngrace = \"x\"\nno-such-setting = 1\n");
    daemon.Signal(SIGHUP);
    EXPECT_TRUE(Transpose(daemon).ok());
    daemon.Signal(SIGTERM);
    EXPECT_EQ(daemon.Wait(), 0);
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr(config_ + ":3: --grace=x: must be a duration"));
  EXPECT_THAT(log, HasSubstr(config_ + ":4: no-such-setting: unknown setting"));
  EXPECT_THAT(log, Not(HasSubstr("setting changed")));
  EXPECT_THAT(log, Not(HasSubstr("msg=reloaded")));
}

TEST_F(ReloadTest, OpensTheAccessLogAnew) {
  Write("");
  Daemon daemon({"--config=" + config_});
  ASSERT_TRUE(Transpose(daemon).ok());
  AwaitThat("a line", [&] { return Contents(access_log_).find("Transpose") != std::string::npos; });
  ASSERT_EQ(std::rename(access_log_.c_str(), (access_log_ + ".1").c_str()), 0);
  daemon.Signal(SIGHUP);
  AwaitThat("a line in the new file", [&] {
    EXPECT_TRUE(Transpose(daemon).ok());
    return Contents(access_log_).find("Transpose") != std::string::npos;
  });
}

TEST_F(ReloadTest, TheLogIsJsonIfAsked) {
  ::testing::internal::CaptureStderr();
  {
    Write("log-format = \"json\"\n");
    Daemon daemon({"--config=" + config_});
    ASSERT_TRUE(Transpose(daemon).ok());
    AwaitThat("a line", [&] { return Contents(access_log_).find("Transpose") != std::string::npos; });
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("\"level\":\"info\",\"msg\":\"setting\",\"flag\":\"log-format\",\"value\":\"json\""));
  EXPECT_THAT(Contents(access_log_),
              HasSubstr("\"msg\":\"call\",\"method\":\"warpline.v1.KernelService/Transpose\""));
}

TEST(PortsTest, OneThatIsTakenIsReportedBeforeDevicesAreOpened) {
  Daemon daemon;
  ::testing::internal::CaptureStderr();
  const std::string command =
      absl::StrCat("exec ", std::getenv("WARPLINED"), " --listen=", daemon.address(), " --metrics-listen=");
  const int status = std::system(command.c_str());
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_THAT(log, HasSubstr("--listen: cannot listen on " + daemon.address()));
  EXPECT_THAT(log, Not(HasSubstr("msg=device")));
}

}  // namespace
}  // namespace warpline
