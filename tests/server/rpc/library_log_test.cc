#include "server/rpc/library_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Newer gRPC writes to the log of Abseil.
#if __has_include("absl/log/log.h")
#include "absl/log/log.h"
#else
#include <grpc/support/log.h>
#endif

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

void LogAsGrpc(const char* text) {
#ifdef LOG
  LOG(ERROR) << text;
#else
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  gpr_log(GPR_ERROR, "%s", text);
#endif
}

template <typename Action>
std::vector<std::string> LinesOf(const Action& action) {
  TakeOverLibraryLogs();
  ::testing::internal::CaptureStderr();
  action();
  return absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
}

TEST(LibraryLogTest, MessagesThatAreNoUtf8FillNoDisk) {
  v1::GemmRequest request;
  request.set_variant("\xff\xfe");
  const std::string bytes = request.SerializePartialAsString();
  const std::vector<std::string> lines = LinesOf([&] {
    for (int i = 0; i < 2000; ++i) static_cast<void>(v1::GemmRequest().ParseFromString(bytes));
  });
  EXPECT_THAT(lines, Not(IsEmpty()));
  EXPECT_THAT(lines.size(), ::testing::Lt(1000u));
  EXPECT_THAT(lines, Each(AllOf(StartsWith("time="), HasSubstr(" level=warning msg=protobuf reason="))));
}

TEST(LibraryLogTest, WhatGrpcQuotesForgesNoLine) {
  const std::vector<std::string> lines =
      LinesOf([] { LogAsGrpc("bad scheme: x\ntime=now level=info msg=forged"); });
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines.front(), HasSubstr("msg=gRPC reason=\"bad scheme: x\\ntime=now level=info msg=forged\""));
}

}  // namespace
}  // namespace warpline
