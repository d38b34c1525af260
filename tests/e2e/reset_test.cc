// Streams that are opened and reset at once (CVE-2023-44487), in numbers that only an attacker sends.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "tests/e2e/daemon.h"
#include "tests/e2e/http2.h"
#include "tests/e2e/requests.h"

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
  std::atomic<bool> ended = false;
  std::thread attacker([&] {
    *sent = OpenAndReset(address);
    ended = true;
  });
  auto stub = v1::KernelService::NewStub(daemon.Channel());
  do {
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    v1::TransposeResponse response;
    const grpc::Status status = stub->Transpose(&context, IotaTranspose(2, 2), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  } while (!ended);
  attacker.join();
  EXPECT_TRUE(daemon.AwaitMetric("warpline_requests_in_flight", "", 0));
}

TEST(ResetTest, AHundredThousandOnOneConnectionAreCutOffAndHarmNobody) {
  Daemon daemon;
  const double before = daemon.ResidentBytes();
  int sent = 0;
  ExpectHarmless(daemon, daemon.address(), &sent);
  EXPECT_LT(sent, kStreams) << "the connection was not cut";
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(daemon.ResidentBytes() - before, 256 << 20);
#else
  static_cast<void>(before);
#endif
}

// Clients of a unix socket have no names, so none of them is cut: who may connect is trusted.
TEST(ResetTest, AHundredThousandOnAUnixSocketHarmNobody) {
  const std::string path = "/tmp/warpline-reset-" + std::to_string(getpid());
  Daemon daemon({"--listen=unix:" + path});
  int sent = 0;
  ExpectHarmless(daemon, daemon.address(), &sent);
  EXPECT_EQ(sent, kStreams);
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
