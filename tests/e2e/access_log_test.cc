// The line that each call leaves behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"
#include "tests/e2e/tensors.h"

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTraceParent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

class AccessLogE2eTest : public ::testing::Test {
 protected:
  ~AccessLogE2eTest() override { std::remove(path_.c_str()); }

  // The line of the call with this id, which comes a moment after its answer.
  std::string LineOf(const std::string& request_id) const {
    const absl::Time patience = absl::Now() + absl::Minutes(1);
    while (absl::Now() < patience) {
      std::ifstream file(path_);
      const std::string text(std::istreambuf_iterator<char>(file), {});
      for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
        if (absl::StrContains(line, absl::StrCat("request_id=", request_id, " "))) return line;
      }
      absl::SleepFor(absl::Milliseconds(10));
    }
    return "";
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "/warpline_access_e2e_", ::getpid());
  const Daemon daemon_{{"--access-log=" + path_}};
};

TEST_F(AccessLogE2eTest, TellsOfASuccessAndEchoesTheTrace) {
  const auto stub = v1::KernelService::NewStub(daemon_.Channel());
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  context.AddMetadata("x-request-id", "first");
  context.AddMetadata("traceparent", kTraceParent);
  v1::TransposeResponse response;
  ASSERT_TRUE(stub->Transpose(&context, IotaTranspose(2, 3), &response).ok());
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto echoed = trailers.find("traceparent");
  ASSERT_NE(echoed, trailers.end());
  EXPECT_EQ(std::string(echoed->second.data(), echoed->second.size()), kTraceParent);
  EXPECT_THAT(
      LineOf("first"),
      AllOf(HasSubstr("msg=call method=warpline.v1.KernelService/Transpose code=OK client=ipv4:127."),
            HasSubstr(absl::StrCat("traceparent=", kTraceParent, " ")),
            ContainsRegex("seconds=0\\.[0-9]{6} request_bytes=[1-9][0-9]* response_bytes=[1-9][0-9]*$"),
            Not(HasSubstr("owner="))));
}

TEST_F(AccessLogE2eTest, TellsWhyACallWasRefused) {
  const auto stub = v1::KernelService::NewStub(daemon_.Channel());
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  context.AddMetadata("x-request-id", "refused");
  context.AddMetadata("traceparent", "00-nonsense level=error");
  v1::TransposeRequest request = IotaTranspose(2, 3);
  request.set_variant("none");
  v1::TransposeResponse response;
  EXPECT_EQ(stub->Transpose(&context, request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(context.GetServerTrailingMetadata().count("traceparent"), 0u);
  EXPECT_THAT(LineOf("refused"),
              AllOf(HasSubstr("code=INVALID_ARGUMENT"), HasSubstr("reason=\""), Not(HasSubstr("nonsense"))));
}

TEST_F(AccessLogE2eTest, TellsOfStreamsAndOfThoseThatWereCancelled) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;  // more than may be on its way
  Tensors tensors(daemon_.Channel());
  const std::string id = tensors.Made(v1::DATA_TYPE_U8, {kBytes}, Pattern(kBytes));
  v1::GetRequest request;
  request.set_id(id);
  for (const bool cancelled : {false, true}) {
    grpc::ClientContext context;
    const std::string name = cancelled ? "cancelled" : "whole";
    context.AddMetadata("x-request-id", name);
    const auto reader = tensors.stub().Get(&context, request);
    v1::GetResponse response;
    std::size_t bytes = 0;
    while (!(cancelled && bytes > 0) && reader->Read(&response)) bytes += response.data().size();
    if (cancelled) context.TryCancel();
    EXPECT_EQ(reader->Finish().ok(), !cancelled);
    const std::string line = LineOf(name);
    EXPECT_THAT(line, HasSubstr("method=warpline.v1.TensorService/Get"));
    if (cancelled) {
      EXPECT_THAT(line, HasSubstr("code=CANCELLED"));
    } else {
      EXPECT_THAT(line, AllOf(HasSubstr("code=OK"), ContainsRegex("response_bytes=6710[0-9]{4}")));
    }
  }
}

TEST_F(AccessLogE2eTest, TellsOfMethodsThatThereAreNot) {
  RawCall(daemon_.Channel(), Bytes("x"), absl::Seconds(60), "/warpline.v1.KernelService/None");
  const absl::Time patience = absl::Now() + absl::Minutes(1);
  std::string text;
  while (!absl::StrContains(text, "code=UNIMPLEMENTED") && absl::Now() < patience) {
    std::ifstream file(path_);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  EXPECT_THAT(text, HasSubstr("method=warpline.v1.KernelService/None code=UNIMPLEMENTED"));
}

}  // namespace
}  // namespace warpline
