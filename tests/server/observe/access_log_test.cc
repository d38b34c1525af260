#include "server/observe/access_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tests/testing/patience.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

class AccessLogTest : public ::testing::Test {
 protected:
  ~AccessLogTest() override { std::remove(path_.c_str()); }

  std::vector<std::string> Lines() const {
    std::ifstream file(path_);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return absl::StrSplit(text, '\n', absl::SkipEmpty());
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "/warpline_access_", ::getpid());
  Metrics metrics_;
};

TEST_F(AccessLogTest, ALineTellsWhatIsKnownOfACall) {
  {
    auto log = AccessLog::Open(path_, metrics_);
    ASSERT_THAT(log, IsOk());
    (*log)->Add({.ended = absl::FromUnixSeconds(0),
                 .method = "warpline.v1.KernelService/Gemm",
                 .code = "OK",
                 .owner = "token:alice",
                 .client = "ipv4:10.0.0.1:1",
                 .request_id = "r1",
                 .seconds = 0.25,
                 .request_bytes = 3,
                 .response_bytes = 4});
  }
  ASSERT_THAT(Lines(), SizeIs(1));
  EXPECT_EQ(Lines().front(),
            "time=1970-01-01T00:00:00.000Z level=info msg=call method=warpline.v1.KernelService/Gemm code=OK "
            "owner=token:alice client=ipv4:10.0.0.1:1 request_id=r1 seconds=0.250000 request_bytes=3 "
            "response_bytes=4");
}

TEST_F(AccessLogTest, WhatClientsSendForgesNoLine) {
  {
    auto log = AccessLog::Open(path_, metrics_);
    ASSERT_THAT(log, IsOk());
    (*log)->Add(
        {.method = "x\ntime=now level=info msg=call method=forged", .code = "OK", .reason = "a \"b\" c"});
  }
  ASSERT_THAT(Lines(), SizeIs(1));
  EXPECT_THAT(Lines().front(), HasSubstr("method=\"x\\ntime=now level=info msg=call method=forged\""));
  EXPECT_THAT(Lines().front(), HasSubstr("reason=\"a \\\"b\\\" c\""));
}

TEST_F(AccessLogTest, LinesFollowTheNameAndStayWhereItCannotBeOpened) {
  const std::string renamed = path_ + ".1";
  auto log = AccessLog::Open(path_, metrics_);
  ASSERT_THAT(log, IsOk());
  const auto add = [&](const char* method, std::size_t lines) {
    (*log)->OpenAnew();
    (*log)->OpenAnew();
    (*log)->Add({.method = method, .code = "OK"});
    AwaitThat("the lines", [&] { return Lines().size() >= lines; });
  };
  add("first", 1);
  EXPECT_THAT(Lines(), SizeIs(1));
  ASSERT_EQ(std::rename(path_.c_str(), renamed.c_str()), 0);
  add("second", 1);
  EXPECT_THAT(Lines(), SizeIs(1));
  // A folder of that name cannot be opened.
  ASSERT_EQ(std::rename(path_.c_str(), renamed.c_str()), 0);
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  (*log)->OpenAnew();
  (*log)->Add({.method = "third", .code = "OK"});
  log->reset();
  rmdir(path_.c_str());
  std::ifstream file(renamed);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(text, HasSubstr("second"));
  EXPECT_THAT(text, HasSubstr("third"));
  std::remove(renamed.c_str());
}

TEST_F(AccessLogTest, ManyThreadsLoseNothing) {
  constexpr int kThreads = 4, kEach = 2000;
  {
    auto log = AccessLog::Open(path_, metrics_);
    ASSERT_THAT(log, IsOk());
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < kEach; ++k) (*log)->Add({.method = "m", .code = "OK"});
      });
    }
  }
  EXPECT_THAT(Lines(), SizeIs(kThreads * kEach));
  EXPECT_EQ(metrics_.AccessLogLines("written").Value(), kThreads * kEach);
  EXPECT_EQ(metrics_.AccessLogLines("dropped").Value(), 0);
}

TEST_F(AccessLogTest, LinesForWhichThereIsNoRoomAreCounted) {
  {
    auto log = AccessLog::Open("/dev/full", metrics_);
    ASSERT_THAT(log, IsOk());
    for (int i = 0; i < 10; ++i) (*log)->Add({.method = "m", .code = "OK"});
  }
  EXPECT_EQ(metrics_.AccessLogLines("dropped").Value(), 10);
}

TEST_F(AccessLogTest, APipeThatNobodyReadsHoldsNobodyUp) {
  constexpr int kMany = 2000;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    auto log = AccessLog::Open(absl::StrCat("/proc/self/fd/", ends[1]), metrics_);
    ASSERT_THAT(log, IsOk());
    for (int i = 0; i < kMany; ++i) (*log)->Add({.method = std::string(100, 'm'), .code = "OK"});
  }
  const double written = metrics_.AccessLogLines("written").Value(),
               dropped = metrics_.AccessLogLines("dropped").Value();
  EXPECT_GT(written, 0);
  EXPECT_GT(dropped, 0);
  EXPECT_EQ(written + dropped, kMany);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(AccessLogTest, ANamedPipeMayGetItsReaderLater) {
  signal(SIGPIPE, SIG_IGN);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  auto log = AccessLog::Open(path_, metrics_);
  ASSERT_THAT(log, IsOk());
  const auto add_until_more = [&](const char* state) {
    const double before = metrics_.AccessLogLines(state).Value();
    AwaitThat(
        "a line that is counted",
        [&] {
          if (metrics_.AccessLogLines(state).Value() != before) return true;
          (*log)->Add({.method = "m", .code = "OK"});
          return false;
        },
        std::chrono::milliseconds(10));
  };
  add_until_more("dropped");
  int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  add_until_more("written");
  close(reader);
  add_until_more("dropped");
  reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  add_until_more("written");
  close(reader);
}

TEST_F(AccessLogTest, WhatIsNotPrintableIsQuoted) {
  {
    auto log = AccessLog::Open(path_, metrics_);
    ASSERT_THAT(log, IsOk());
    (*log)->Add({.method = "\x1b[2J\x7f", .code = "OK", .reason = std::string(5000, '\xff')});
  }
  ASSERT_THAT(Lines(), SizeIs(1));
  EXPECT_THAT(Lines().front(), HasSubstr("method=\"\\033[2J\\177\""));
  EXPECT_LT(Lines().front().size(), 4096u);
}

TEST_F(AccessLogTest, AFileThatCannotBeOpenedIsNamed) {
  EXPECT_THAT(AccessLog::Open("/no/such/folder/log", metrics_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/no/such/folder/log: No such file")));
}

}  // namespace
}  // namespace warpline
