// How a daemon stops: what was accepted is finished, and no call is lost on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "tests/e2e/announced.h"
#include "tests/e2e/daemon.h"
#include "tests/e2e/http2.h"
#include "tests/e2e/requests.h"
#include "tests/e2e/slow_call.h"
#include "tests/e2e/tensors.h"
#include "tests/testing/patience.h"

namespace warpline {
namespace {

grpc::Status Transpose(const std::shared_ptr<grpc::Channel>& channel, std::int64_t side = 2) {
  return RawCall(channel, Bytes(IotaTranspose(side, side).SerializeAsString()));
}

bool AwaitNotReady(const Daemon& daemon) {
  for (int i = 0; i < 3000; ++i) {
    int status = 0;
    daemon.Get("/readyz", &status);
    if (status == 503) return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return false;
}

// A signal that comes at once would be taken for a part of the request before.
void SignalOnceMore(const Daemon& daemon, int number) {
  absl::SleepFor(absl::Seconds(1));
  daemon.Signal(number);
}

// A call that the server has not taken is made again by gRPC itself if its request has less than 256 KiB, and
// otherwise ends like this.
bool WasNotTaken(const grpc::Status& status) {
  // Newer clients say "Stream removed" first.
  return status.error_code() == grpc::StatusCode::UNAVAILABLE &&
         absl::StrContains(status.error_message(), "GOAWAY received");
}

// Clients that make one call after the other, on one channel, and make it again if it was not taken.
class ClosedLoop {
 public:
  ClosedLoop(const std::shared_ptr<grpc::Channel>& channel, int clients, std::int64_t side = 2) {
    for (int i = 0; i < clients; ++i) {
      clients_.push_back(std::async(std::launch::async, [this, channel, side] {
        grpc::Status status;
        do {
          status = Transpose(channel, side);
          ++done_;
        } while (WasNotTaken(status) || (status.ok() && !stopping_));
        return status;
      }));
    }
  }
  void AwaitDone(int calls) const {
    AwaitThat("calls", [&] { return done_ >= calls; });
  }
  void Stop() { stopping_ = true; }
  // How each client's last call ended.
  std::vector<grpc::Status> LastStatuses() {
    std::vector<grpc::Status> statuses;
    for (auto& client : clients_) statuses.push_back(client.get());
    return statuses;
  }

 private:
  std::atomic<bool> stopping_ = false;
  std::atomic<int> done_ = 0;
  std::vector<std::future<grpc::Status>> clients_;
};

TEST(DrainTest, FinishesWhatWasAcceptedAndExitsWithZero) {
  // A second's work takes a sanitizer on a loaded machine longer than the default grace.
  Daemon daemon({"--lanes=1", "--devices=0", "--grace=5m"});
  auto channel = daemon.Channel();
  ASSERT_TRUE(Transpose(channel).ok());
  SlowCall busy(daemon);
  ASSERT_TRUE(daemon.AwaitMetric("warpline_lane_busy", "", 1));
  daemon.Signal(SIGTERM);
  int ready = 200;
  for (int i = 0; i < 1000 && ready == 200 && !busy.Ended(); ++i) {
    daemon.Get("/readyz", &ready);
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(ready, 503);
  grpc::Status late;
  AwaitThat("the drain", [&] { return !(late = Transpose(channel)).ok(); });
  EXPECT_EQ(late.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(busy.Status().ok());
  EXPECT_EQ(daemon.Wait(), 0);
}

TEST(DrainTest, GivesUpAfterTheGraceWithAFullQueue) {
  Daemon daemon({"--lanes=1", "--devices=0", "--grace=100ms"});
  SlowCall busy(daemon);
  ASSERT_TRUE(daemon.AwaitMetric("warpline_lane_busy", "", 1));
  constexpr int kQueued = 8;
  std::vector<std::unique_ptr<SlowCall>> queued;
  for (int i = 0; i < kQueued; ++i) queued.push_back(std::make_unique<SlowCall>(daemon));
  ASSERT_TRUE(daemon.AwaitMetric("warpline_queue_depth", "", kQueued));
  daemon.Signal(SIGTERM);
  // 1 if the job on the lane has not looked in time whether its caller is still there.
  EXPECT_THAT(daemon.Wait(), testing::AnyOf(0, 1));
  EXPECT_EQ(busy.Status().error_code(), grpc::StatusCode::UNAVAILABLE);
  for (auto& call : queued) EXPECT_EQ(call->Status().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// More of its uploads would come, but not before the end.
TEST(DrainTest, ARequestThatWaitsForItsUploadsDoesNotFailIt) {
  Daemon daemon({"--grace=4s", "--upload-bytes=64M"});
  Announced call(daemon.Channel(), StreamedTranspose(4096, 4096));
  const auto uploads = call.Accepted();
  ASSERT_TRUE(uploads.has_value());
  std::atomic<bool> stop = false;
  std::thread sender([&] {
    Tensors tensors(daemon.Channel());
    for (std::size_t at = 0; at < 4096 * 4096 && !stop; at += 64 << 10) {
      if (!tensors.Put(uploads->ids(0), at, Pattern(64 << 10)).status.ok()) return;
      absl::SleepFor(absl::Milliseconds(100));
    }
  });
  daemon.Signal(SIGTERM);
  const grpc::Status status = call.Finish().status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  EXPECT_THAT(status.error_message(), testing::HasSubstr("draining"));
  stop = true;
  sender.join();
  EXPECT_EQ(daemon.Wait(), 0);
}

TEST(DrainTest, AResultThatNobodyReadsDoesNotFailIt) {
  // Half of the grace is over before the send timeout.
  Daemon daemon({"--grace=6s", "--send-timeout=30s"});
  Http2Client client(daemon.address());  // opens no window, so that 64 KiB of the response get through
  // Few operands, for which no window need be opened, and 4 MiB of results.
  v1::GemmRequest product;
  for (v1::Tensor* operand : {product.mutable_a(), product.mutable_b()}) {
    operand->set_data_type(v1::DATA_TYPE_F32);
    operand->add_shape(1024);
    operand->add_shape(1);
    operand->set_inline_(std::string(4096, '\1'));
  }
  product.set_trans_b(true);
  client.Headers(1, "/warpline.v1.KernelService/Gemm");
  const std::string request = product.SerializeAsString();
  std::string message(5, '\0');
  for (int i = 0; i < 4; ++i)
    message[static_cast<std::size_t>(1 + i)] = static_cast<char>(request.size() >> (24 - 8 * i));
  message += request;
  constexpr std::uint8_t kData = 0, kEndStream = 1;
  client.Frame(kData, kEndStream, 1, message);
  ASSERT_TRUE(client.Flush());
  // The job has ended, and its result is left.
  ASSERT_TRUE(daemon.AwaitMetric("warpline_pinned_bytes", R"(state="used")", 4 << 20));
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait(), 0);
}

// Twelve messages of 1 MiB, for which the client takes its time. They are more than the windows of a
// connection take.
TEST(DrainTest, AResultThatIsReadSlowlyIsReadToItsEnd) {
  constexpr std::int64_t kBytes = 12 << 20;
  Daemon daemon({"--grace=20s", "--send-timeout=15s"});
  Tensors tensors(daemon.Channel());
  const auto created = tensors.Create(v1::DATA_TYPE_U8, {kBytes});
  ASSERT_TRUE(created.status.ok()) << created.status.error_message();
  const std::string id = created.response.tensor().resident().id();
  const std::string data = Pattern(kBytes);
  ASSERT_TRUE(tensors.Put(id, 0, data).status.ok());
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(120));
  v1::GetRequest request;
  request.set_id(id);
  const auto reader = tensors.stub().Get(&context, request);
  v1::GetResponse response;
  std::string got;
  while (reader->Read(&response)) {
    if (got.empty()) daemon.Signal(SIGTERM);
    got += response.data();
    // So long that half of the grace is over before the end.
    absl::SleepFor(absl::Milliseconds(1500));
  }
  const grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(got == data) << got.size();
  EXPECT_EQ(daemon.Wait(), 0);
}

// Until the end, each call is answered, or gRPC itself makes it again because it knows that the server has
// not taken it. The repeated call finds that nobody listens.
TEST(DrainTest, CallsOnTheirWayAreNotLost) {
  // Clients still read some of the larger responses when the server has sent all of them.
  for (const std::int64_t side : {2, 1024}) {
    Daemon daemon({"--grace=5m"});
    ClosedLoop clients(daemon.Channel(), 8, side);
    clients.AwaitDone(50);
    daemon.Signal(SIGTERM);
    // A call that is not served was not begun. It finds nobody, or comes so late that the server refuses it
    // with an explicit message.
    for (const grpc::Status& status : clients.LastStatuses()) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
      EXPECT_THAT(status.error_message(),
                  testing::AnyOf(testing::HasSubstr("failed to connect to all addresses"),
                                 testing::HasSubstr("the server is draining")));
    }
    EXPECT_EQ(daemon.Wait(), 0);
  }
}

// The client's library does not look at its socket while it has no call, and must find there that its next
// call was not taken.
TEST(DrainTest, TheNextCallOfAnIdleClientIsNotLost) {
  Daemon daemon;
  auto channel = daemon.Channel();
  ASSERT_TRUE(Transpose(channel).ok());
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait(), 0);
  const grpc::Status status = Transpose(channel);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_NE(status.error_message().find("failed to connect to all addresses"), std::string::npos)
      << status.error_message();
}

TEST(DrainTest, ACallInProgressKeepsNoOtherClientThere) {
  Daemon daemon({"--lanes=1", "--devices=0", "--grace=5m"});
  SlowCall busy(daemon);
  ASSERT_TRUE(daemon.AwaitMetric("warpline_lane_busy", "", 1));
  auto channel = daemon.Channel();
  ASSERT_TRUE(channel->WaitForConnected(absl::ToChronoTime(absl::Now() + absl::Seconds(60))));
  daemon.Signal(SIGTERM);
  EXPECT_TRUE(
      channel->WaitForStateChange(GRPC_CHANNEL_READY, absl::ToChronoTime(absl::Now() + absl::Seconds(60))));
  EXPECT_TRUE(busy.Status().ok());
  EXPECT_EQ(daemon.Wait(), 0);
}

TEST(DrainDelayTest, ServesOnWhileItsHealthIsNotServing) {
  Daemon daemon({"--grace=1h", "--drain-delay=1h"});
  auto channel = daemon.Channel();
  StreamCall watch(channel, "/grpc.health.v1.Health/Watch");
  ASSERT_TRUE(watch.Write(""));
  ASSERT_EQ(watch.Read(), "\x08\x01");
  daemon.Signal(SIGTERM);
  ASSERT_EQ(watch.Read(), "\x08\x02");
  EXPECT_TRUE(AwaitNotReady(daemon));
  EXPECT_TRUE(Transpose(channel).ok());
  EXPECT_TRUE(Transpose(daemon.Channel()).ok());
  SignalOnceMore(daemon, SIGTERM);
  EXPECT_EQ(daemon.Wait(), 1);
}

TEST(DrainDelayTest, SigintSkipsIt) {
  Daemon daemon({"--grace=1h", "--drain-delay=1h"});
  daemon.Signal(SIGINT);
  EXPECT_EQ(daemon.Wait(), 0);
}

TEST(FurtherSignalTest, EndsADaemonThatIsBusy) {
  Daemon daemon({"--grace=1h"});
  StreamCall upload(daemon.Channel(), kTransposeMethod);
  ASSERT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", 1));
  daemon.Signal(SIGTERM);
  ASSERT_TRUE(AwaitNotReady(daemon));
  SignalOnceMore(daemon, SIGINT);
  EXPECT_EQ(daemon.Wait(), 1);
}

TEST(ConnectionAgeTest, ClientsMoveOnAndNoCallIsLost) {
  Daemon daemon({"--max-connection-age=1s"});
  Tensors tensors(daemon.Channel());
  const std::string half(1 << 20, 'x');
  const auto created = tensors.Create(v1::DATA_TYPE_U8, {2 << 20});
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(120));
  v1::PutResponse response;
  const auto put = tensors.stub().Put(&context, &response);
  v1::PutRequest request;
  request.set_id(created.response.tensor().resident().id());
  request.set_data(half);
  ASSERT_TRUE(put->Write(request));
  SlowCall slow(daemon);

  auto channel = daemon.Channel();
  ClosedLoop small(channel, 4);
  ClosedLoop large(channel, 2, 1024);
  for (int moves = 0; moves < 3; ++moves) {
    const auto patience = absl::ToChronoTime(absl::Now() + absl::Seconds(60));
    ASSERT_TRUE(channel->WaitForConnected(patience));
    ASSERT_TRUE(channel->WaitForStateChange(GRPC_CHANNEL_READY, patience));
  }
  for (ClosedLoop* loop : {&small, &large}) {
    loop->Stop();
    for (const grpc::Status& status : loop->LastStatuses()) {
      EXPECT_TRUE(status.ok()) << status.error_message();
    }
  }

  request.set_offset(1 << 20);
  ASSERT_TRUE(put->Write(request));
  put->WritesDone();
  EXPECT_TRUE(put->Finish().ok());
  EXPECT_EQ(response.missing_bytes(), 0);
  EXPECT_TRUE(slow.Status().ok());
}

}  // namespace
}  // namespace warpline
