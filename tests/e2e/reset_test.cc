// Streams that are opened and reset at once (CVE-2023-44487), in numbers that only an attacker sends.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "tests/e2e/daemon.h"
#include "tests/e2e/http2.h"
#include "tests/e2e/requests.h"
#include "tests/testing/grpc_version.h"

namespace warpline {
namespace {

constexpr int kStreams = 100000;

// Returns how many streams were sent before the server cut the connection; all, if it did not.
int OpenAndReset(const std::string& address) {
  Http2Client client(address);
  for (int i = 0; i < kStreams; ++i) {
    const auto stream = static_cast<std::uint32_t>(2 * i + 1);
    client.Headers(stream, kTransposeMethod);
    client.Reset(stream);
    if (i % 100 == 99 && !client.Flush()) return i;
  }
  client.Flush();
  return kStreams;
}

// The others are served while it goes on, and every call is given back.
void ExpectHarmless(const Daemon& daemon, const std::string& address, int* sent) {
  auto stub = v1::KernelService::NewStub(daemon.Channel());
  const auto expect_answer = [&] {
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    v1::TransposeResponse response;
    const grpc::Status status = stub->Transpose(&context, IotaTranspose(2, 2), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  };
  // Both come from one address. A connection that has had an answer is not cut for what others do there. The
  // server notes an answer after the client has it, but before it takes the next call.
  for (int i = 0; i < 3; ++i) expect_answer();
  std::atomic<bool> ended = false;
  std::thread attacker([&] {
    *sent = OpenAndReset(address);
    ended = true;
  });
  do {
    expect_answer();
  } while (!ended);
  attacker.join();
  EXPECT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", 0));
}

// Newer versions end such calls by themselves, before the server hears of them.
void ExpectCut(int sent) {
  if (testing::kIsGrpc151) {
    EXPECT_LT(sent, kStreams) << "the connection was not cut";
  }
}

TEST(ResetTest, AHundredThousandOnOneConnectionAreCutOffAndHarmNobody) {
  Daemon daemon;
  const double before = daemon.ResidentBytes();
  int sent = 0;
  ExpectHarmless(daemon, daemon.address(), &sent);
  ExpectCut(sent);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(daemon.ResidentBytes() - before, 256 << 20);
#else
  static_cast<void>(before);
#endif
}

TEST(ResetTest, AHundredThousandOnAUnixSocketAreCutOffToo) {
  const std::string path = "/tmp/warpline-reset-" + std::to_string(getpid());
  Daemon daemon({"--listen=unix:" + path});
  auto stub = v1::InfoService::NewStub(daemon.Channel());
  const auto answers = [&] {
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    v1::GetInfoResponse response;
    return stub->GetInfo(&context, v1::GetInfoRequest(), &response).ok();
  };
  ASSERT_TRUE(answers());
  ExpectCut(OpenAndReset(daemon.address()));
  EXPECT_TRUE(answers()) << "a connection of the same user that has had an answer goes on";
  EXPECT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", 0));
}

TEST(ResetTest, AClientThatCancelsSomeOfItsCallsIsNotCut) {
  Daemon daemon;
  auto channel = daemon.Channel();
  auto stub = v1::InfoService::NewStub(channel);
  for (int i = 0; i < 3000; ++i) {
    { StreamCall cancelled(channel, kTransposeMethod); }
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    v1::GetInfoResponse response;
    ASSERT_TRUE(stub->GetInfo(&context, v1::GetInfoRequest(), &response).ok()) << i;
  }
  EXPECT_EQ(channel->GetState(false), GRPC_CHANNEL_READY);
}

}  // namespace
}  // namespace warpline
