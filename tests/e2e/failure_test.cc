// Tests for failures: each failure gives the client a clear status, and the daemon stays alive.
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <future>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"
#include "tests/e2e/slow_call.h"
#include "tests/testing/patience.h"

namespace warpline {
namespace {

bool Works(const std::shared_ptr<grpc::Channel>& channel, absl::Duration timeout = absl::Seconds(60)) {
  auto stub = v1::KernelService::NewStub(channel);
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  v1::TransposeResponse response;
  return stub->Transpose(&context, IotaTranspose(2, 2), &response).ok();
}

TEST(BadInputTest, NamesTheFieldAndTheRequest) {
  Daemon daemon;
  auto stub = v1::KernelService::NewStub(daemon.Channel());
  struct Case {
    const char* field;
    std::function<void(v1::TransposeRequest&)> spoil;
  };
  const std::vector<Case> cases = {
      {"x.data_type", [](auto& r) { r.mutable_x()->set_data_type(static_cast<v1::DataType>(-1)); }},
      {"x.inline", [](auto& r) { r.mutable_x()->mutable_inline_()->pop_back(); }},
      {"x.shape", [](auto& r) { r.mutable_x()->set_shape(0, -1); }},
      {"x.shape",
       [](auto& r) {
         r.mutable_x()->set_shape(0, std::int64_t{1} << 62);
         r.mutable_x()->set_shape(1, std::int64_t{1} << 62);
       }},
      {"x.shape",
       [](auto& r) {
         while (r.x().shape_size() < 9) r.mutable_x()->add_shape(1);
       }},
      {"perm",
       [](auto& r) {
         r.add_perm(0);
         r.add_perm(0);
       }},
      {"variant", [](auto& r) { r.set_variant("no-such-variant"); }},
  };
  for (const Case& c : cases) {
    v1::TransposeRequest request = IotaTranspose(2, 3);
    c.spoil(request);
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    context.AddMetadata("x-request-id", "bad-1");
    v1::TransposeResponse response;
    const grpc::Status status = stub->Transpose(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << c.field << ": " << status.error_message();
    const ErrorDetails details = DetailsOf(status);
    EXPECT_EQ(details.request_id, "bad-1");
    ASSERT_EQ(details.fields.size(), 1u) << status.error_message();
    EXPECT_EQ(details.fields[0].substr(0, std::string(c.field).size()), c.field) << status.error_message();
    EXPECT_FALSE(details.has_retry_info);
  }
  EXPECT_TRUE(Works(daemon.Channel()));
}

TEST(BadInputTest, GarbageAndTruncatedBytesAreInvalidArguments) {
  Daemon daemon;
  auto channel = daemon.Channel();
  const std::string good = IotaTranspose(16, 16).SerializeAsString();
  for (const std::string& bytes : {std::string("\xff\xff\xff\xff\xff\xff"), std::string("\x0a\xff\x01zz"),
                                   good.substr(0, good.size() - 1), good.substr(0, 5),
                                   std::string(1000, '\x07'), std::string("\x00", 1)}) {
    EXPECT_EQ(RawCall(channel, Bytes(bytes)).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_EQ(RawCall(channel, Bytes(good)).error_code(), grpc::StatusCode::OK);
}

TEST(SizeLimitTest, OneByteOverTheLimitIsRefusedWithoutRetryInfo) {
  Daemon daemon({"--max-inline-bytes=1M"});
  auto channel = daemon.Channel();
  const grpc::Status status = RawCall(channel, Bytes(std::string((1 << 20) + (1 << 20) + 1, 'x')));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_FALSE(DetailsOf(status).has_retry_info);
  v1::TransposeRequest fits = IotaTranspose(512, 512);
  EXPECT_TRUE(RawCall(channel, Bytes(fits.SerializeAsString())).ok());
  fits = IotaTranspose(512, 513);
  EXPECT_EQ(RawCall(channel, Bytes(fits.SerializeAsString())).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(SizeLimitTest, AMessageOf3GiBIsRefusedAndTheDaemonLives) {
  Daemon daemon({"--max-inline-bytes=64M"});
  const double at_start = daemon.ResidentBytes();
  const std::string piece(64 << 20, 'x');
  const grpc::Slice slice(piece.data(), piece.size(), grpc::Slice::STATIC_SLICE);
  const std::vector<grpc::Slice> slices(48, slice);
  const grpc::Status status =
      RawCall(daemon.Channel(), grpc::ByteBuffer(slices.data(), slices.size()), absl::Seconds(60));
  EXPECT_FALSE(status.ok());
  // gRPC refuses it as too large, or cuts the connection when its memory quota is spent.
  EXPECT_TRUE(status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ||
              status.error_code() == grpc::StatusCode::UNAVAILABLE)
      << status.error_code() << " " << status.error_message();
  // Newer versions refuse calls until memory is free again.
  AwaitThat("another call", [&] { return Works(daemon.Channel()); });
  // The daemon holds only a part of the 3 GiB: at most the quota of gRPC's buffers (6 x 64 MiB) and the data
  // in flight around it.
  EXPECT_LT(daemon.ResidentBytes() - at_start, 1e9);
}

TEST(MemoryTest, OversizedAndMalformedMessagesLeaveNothingBehind) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's allocator keeps freed memory on purpose";
#endif
  Daemon daemon({"--max-inline-bytes=16M"});
  auto channel = daemon.Channel();
  const std::string oversized(24 << 20, 'x');
  std::string malformed = IotaTranspose(1024, 1024).SerializeAsString();
  malformed.resize(malformed.size() - 100);
  double after_second = 0;
  for (int i = 1; i <= 10; ++i) {
    EXPECT_FALSE(RawCall(channel, Bytes(oversized)).ok());
    EXPECT_FALSE(RawCall(channel, Bytes(malformed)).ok());
    if (i == 2) after_second = daemon.ResidentBytes();
  }
  // The allocator keeps what it got until the daemon has been idle for a moment.
  const double allowed = after_second + (16 << 20);
  for (int i = 0; i < 100 && daemon.ResidentBytes() > allowed; ++i) absl::SleepFor(absl::Milliseconds(100));
  EXPECT_LE(daemon.ResidentBytes(), allowed);
  EXPECT_TRUE(Works(channel));
}

TEST(OverloadTest, TheJobPastTheBudgetIsRefusedAtOnceWithARetryDelay) {
  Daemon daemon({"--max-jobs=1", "--lanes=1", "--devices=0"});
  SlowCall busy(daemon);
  ASSERT_TRUE(daemon.AwaitMetric("warpline_lane_busy", "", 1));
  auto stub = v1::KernelService::NewStub(daemon.Channel());
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  v1::TransposeResponse response;
  const grpc::Status status = stub->Transpose(&context, IotaTranspose(2, 2), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(DetailsOf(status).has_retry_info);
  EXPECT_EQ(context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
  EXPECT_EQ(daemon.Metric("warpline_rejected_total", "reason=\"jobs\""), 1);
  EXPECT_TRUE(busy.Status().ok());
  EXPECT_TRUE(Works(daemon.Channel()));
}

TEST(DeadlineTest, AQueuedRequestEndsOnTimeAndGivesItsBudgetBack) {
  Daemon daemon({"--lanes=1", "--devices=0"});
  SlowCall busy(daemon);
  ASSERT_TRUE(daemon.AwaitMetric("warpline_lane_busy", "", 1));
  const double admitted = daemon.Metric("warpline_admission_bytes", "state=\"used\"");
  SlowCall waiting(daemon, absl::Milliseconds(400));
  EXPECT_EQ(waiting.Status().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(daemon.AwaitMetric("warpline_queue_depth", "", 0));
  EXPECT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", busy.Ended() ? 0 : 1));
  if (!busy.Ended()) {
    EXPECT_EQ(daemon.Metric("warpline_admission_bytes", "state=\"used\""), admitted);
  }
  EXPECT_TRUE(busy.Status().ok());
}

TEST(CancelTest, AQueuedRequestLeavesTheQueue) {
  Daemon daemon({"--lanes=1", "--devices=0"});
  SlowCall busy(daemon);
  ASSERT_TRUE(daemon.AwaitMetric("warpline_lane_busy", "", 1));
  SlowCall waiting(daemon);
  ASSERT_TRUE(daemon.AwaitMetric("warpline_queue_depth", "", 1));
  waiting.Cancel();
  EXPECT_EQ(waiting.Status().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(daemon.AwaitMetric("warpline_requests_total", "code=\"CANCELLED\"", 1));
  EXPECT_TRUE(busy.Status().ok());
}

TEST(CancelTest, ACancelledRunningJobFreesEverything) {
  Daemon daemon({"--lanes=1", "--devices=0"});
  SlowCall running(daemon);
  ASSERT_TRUE(daemon.AwaitMetric("warpline_lane_busy", "", 1));
  running.Cancel();
  EXPECT_EQ(running.Status().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(daemon.AwaitMetric("warpline_requests_total", "code=\"CANCELLED\"", 1));
  EXPECT_EQ(daemon.Metric("warpline_requests_total", "code=\"OK\""), 0);
  EXPECT_TRUE(daemon.AwaitMetric("warpline_lane_busy", "", 0));
  EXPECT_TRUE(daemon.AwaitMetric("warpline_pinned_bytes", "state=\"used\"", 0));
  EXPECT_TRUE(daemon.AwaitMetric("warpline_admission_bytes", "state=\"used\"", 0));
  EXPECT_TRUE(Works(daemon.Channel()));
}

TEST(StalledReaderTest, AsManyAsThereAreLanesDoNotStopOthers) {
  Daemon daemon({"--lanes=2"});
  const std::string request = IotaTranspose(2048, 2048).SerializeAsString();
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  std::vector<std::unique_ptr<StalledReader>> stalled;
  for (int i = 0; i < 2; ++i) {
    channels.push_back(daemon.Channel());
    stalled.push_back(std::make_unique<StalledReader>(channels.back(), request));
  }
  ASSERT_TRUE(daemon.AwaitMetric("warpline_requests_total", "code=\"OK\"", 2));
  EXPECT_EQ(daemon.Metric("warpline_pinned_bytes", "state=\"used\""), 2.0 * (16 << 20));
  EXPECT_EQ(daemon.Metric("warpline_lane_busy"), 0);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Works(daemon.Channel(), absl::Seconds(10)));
}

TEST(StalledReaderTest, IsGivenUpAfterTheSendTimeout) {
  Daemon daemon({"--send-timeout=1s"});
  auto channel = daemon.Channel();
  StalledReader stalled(channel, IotaTranspose(2048, 2048).SerializeAsString());
  ASSERT_TRUE(daemon.AwaitMetric("warpline_requests_total", "code=\"OK\"", 1));
  EXPECT_TRUE(daemon.AwaitMetric("warpline_pinned_bytes", "state=\"used\"", 0));
}

// The next one to look at a core dump wants to know whose request it was.
TEST(CrashTest, TheLogHasAStackAndTheRequestsThatWereRunning) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has a report of its own";
#endif
  ::testing::internal::CaptureStderr();
  std::future<grpc::Status> slow;
  {
    Daemon daemon({"--lanes=1", "--devices=0"});
    slow = std::async(std::launch::async, [&daemon, channel = daemon.Channel()] {
      grpc::ClientContext context;
      SetTimeout(context, absl::Seconds(120));
      context.AddMetadata("x-request-id", "slow-7");
      auto stub = v1::KernelService::NewStub(channel);
      if (daemon.backend() == "cuda") {
        v1::ReduceResponse response;
        return stub->Reduce(&context, SlowReduce(), &response);
      }
      v1::GemmResponse response;
      return stub->Gemm(&context, SlowGemm(), &response);
    });
    EXPECT_TRUE(daemon.AwaitMetric("warpline_lane_busy", "", 1));
    daemon.Signal(SIGABRT);
    EXPECT_EQ(daemon.Wait(), -SIGABRT);
    EXPECT_EQ(slow.get().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("SIGABRT received"), std::string::npos) << log;
  EXPECT_NE(log.find("warpline::Signals::Await()"), std::string::npos) << "what the main thread did: " << log;
  EXPECT_NE(log.find("msg=\"running when the process died\" request_id=slow-7\n"), std::string::npos) << log;
}

}  // namespace
}  // namespace warpline
