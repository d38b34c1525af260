// Calls count from their headers on: uploads in progress are seen, waited for, and given up without a trace.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/e2e/daemon.h"
#include "tests/e2e/http2.h"
#include "tests/e2e/requests.h"
#include "tests/testing/patience.h"

namespace warpline {
namespace {

constexpr std::uint8_t kDataFrame = 0, kEndStream = 1;

// A request of 50 KiB, sent in two parts by hand, so that it stays half sent for as long as a test likes.
class Upload {
 public:
  explicit Upload(const Daemon& daemon) : client_(daemon.address()) {
    const std::string message = IotaTranspose(128, 100).SerializeAsString();
    const auto size = static_cast<std::uint32_t>(message.size());
    body_ = std::string(1, '\0');
    for (int shift = 24; shift >= 0; shift -= 8) body_ += static_cast<char>(size >> shift);
    body_ += message;
  }
  // Each within the flow-control window and a frame's size (16 KiB).
  bool SendFirstPart() {
    client_.Headers(1, kTransposeMethod);
    for (int i = 0; i < 2; ++i) client_.Frame(kDataFrame, 0, 1, body_.substr(i * kFrame, kFrame));
    return client_.Flush();
  }
  bool SendTheRest() {
    client_.Frame(kDataFrame, 0, 1, body_.substr(2 * kFrame, kFrame));
    client_.Frame(kDataFrame, kEndStream, 1, body_.substr(3 * kFrame));
    return client_.Flush();
  }
  bool Cancel() {
    client_.Reset(1);
    return client_.Flush();
  }

 private:
  static constexpr std::size_t kFrame = 16 << 10;
  Http2Client client_;
  std::string body_;
};

TEST(UploadTest, OneThatIsCancelledHalfwayLeavesNothingBehind) {
  Daemon daemon;
  Upload upload(daemon);
  ASSERT_TRUE(upload.SendFirstPart());
  EXPECT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", 1));
  ASSERT_TRUE(upload.Cancel());
  EXPECT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", 0));
  EXPECT_TRUE(daemon.AwaitMetric("grpc_server_handled_total", "grpc_code=\"CANCELLED\"", 1));
  EXPECT_EQ(daemon.Metric("warpline_admission_bytes", "state=\"used\""), 0);
  EXPECT_EQ(daemon.Metric("warpline_pinned_bytes", "state=\"used\""), 0);
}

TEST(UploadTest, TheLossOfItsConnectionIsACancellation) {
  Daemon daemon;
  {
    Upload upload(daemon);
    ASSERT_TRUE(upload.SendFirstPart());
    ASSERT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", 1));
  }
  EXPECT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", 0));
}

TEST(UploadTest, OneThatStandsStillIsCancelledAndIsNotBusyMeanwhile) {
  Daemon daemon({"--send-timeout=2s"});
  Upload upload(daemon);
  ASSERT_TRUE(upload.SendFirstPart());
  ASSERT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", 1));
  EXPECT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", 0));
  EXPECT_TRUE(daemon.AwaitMetric("grpc_server_handled_total", "grpc_code=\"CANCELLED\"", 1));
}

TEST(UploadTest, ADrainDoesNotWaitForOneThatStandsStill) {
  Daemon daemon({"--send-timeout=15s", "--grace=1h"});
  Upload upload(daemon);
  ASSERT_TRUE(upload.SendFirstPart());
  ASSERT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", 1));
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait(), 0);
}

TEST(UploadTest, TheDrainWaitsForIt) {
  const std::string log = absl::StrCat(::testing::TempDir(), "/warpline_upload_", ::getpid());
  Daemon daemon({"--send-timeout=1h", "--access-log=" + log});
  Upload upload(daemon);
  ASSERT_TRUE(upload.SendFirstPart());
  ASSERT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", 1));
  daemon.Signal(SIGTERM);
  // New calls are refused now: the drain has begun.
  auto channel = daemon.Channel();
  const grpc::ByteBuffer call = Bytes(IotaTranspose(2, 2).SerializeAsString());
  AwaitThat("the drain",
            [&] { return RawCall(channel, call).error_code() == grpc::StatusCode::UNAVAILABLE; });
  EXPECT_EQ(daemon.Metric("warpline_requests_in_flight"), 1);
  ASSERT_TRUE(upload.SendTheRest());
  EXPECT_EQ(daemon.Wait(), 0);
  std::ifstream file(log);
  const std::string lines(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(lines.find("KernelService/Transpose code=OK"), std::string::npos) << lines;
  std::remove(log.c_str());
}

TEST(UploadTest, OneThatNeverEndsIsGivenUpAfterTheGrace) {
  Daemon daemon({"--grace=200ms"});
  Upload upload(daemon);
  ASSERT_TRUE(upload.SendFirstPart());
  ASSERT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", 1));
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait(), 0);
}

TEST(UploadTest, ACallWithoutAMessageIsAnInvalidArgument) {
  Daemon daemon;
  grpc::GenericStub stub(daemon.Channel());
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  grpc::CompletionQueue queue;
  auto call = stub.PrepareCall(&context, kTransposeMethod, &queue);
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  call->WritesDone(nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  grpc::Status status;
  call->Finish(&status, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_FALSE(DetailsOf(status).request_id.empty());
}

}  // namespace
}  // namespace warpline
