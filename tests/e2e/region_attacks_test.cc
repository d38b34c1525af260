// Tests for clients that are careless, hostile or dead, and use regions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/daemon.h"
#include "tests/e2e/regions.h"
#include "tests/testing/patience.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;

// The side of a product that takes the CPU a second or a few. Under TSan the plainest loops are fifty times
// as slow, and a machine with other work has no end to wait for.
#if defined(__SANITIZE_THREAD__)
constexpr std::int64_t kSlowSide = 500;
#else
constexpr std::int64_t kSlowSide = 1100;
#endif

class RegionAttacksTest : public ::testing::Test {
 protected:
  std::string Ticket(std::size_t bytes = kMiB) {
    const auto answer = OpenTicket(channel_, static_cast<std::int64_t>(bytes));
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    return answer.response.ticket();
  }
  std::unique_ptr<SharedRegion> Region(std::size_t bytes = kMiB) {
    return std::make_unique<SharedRegion>(channel_, socket_, bytes);
  }
  // Expects that the daemon holds nothing for regions. Call it once all of them should be gone.
  void ExpectNothingLeft() {
    EXPECT_TRUE(daemon_.AwaitMetric("warpline_regions", "", 0));
    EXPECT_TRUE(daemon_.AwaitMetric("warpline_region_bytes", "", 0));
  }
  void ExpectServes() {
    const auto region = Region();
    region->Write(0, std::vector<float>{1, 2});
    v1::TransposeRequest request;
    region->Fill(request.mutable_x(), v1::DATA_TYPE_F32, {1, 2}, 0);
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    v1::TransposeResponse response;
    const grpc::Status status = stub_->Transpose(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(F32Values(response.y()), std::vector<float>({1, 2}));
  }
  // Slow on either backend, from a region and into it.
  v1::GemmRequest SlowProduct(const SharedRegion& region, std::int64_t call) const {
    v1::GemmRequest request;
    for (v1::Tensor* tensor : {request.mutable_a(), request.mutable_b()}) {
      region.Fill(tensor, v1::DATA_TYPE_F32, {side_, side_}, 0, call);
    }
    region.Name(request.mutable_options()->add_sinks()->mutable_region(), product_at_, call);
    request.set_variant(cpu_ ? "reference" : "naive");
    return request;
  }

  const std::string path_ = ::testing::TempDir() + "/warpline_attacks_" + std::to_string(getpid());
  const std::string socket_ = path_ + ".regions";
  Daemon daemon_{{"--listen=unix:" + path_, "--region-bytes=256M"}};
  // The parameters of SlowProduct: its matrices, the place of its result, and the region.
  const bool cpu_ = daemon_.backend() == "cpu";
  const std::int64_t side_ = cpu_ ? kSlowSide : 4096, product_at_ = cpu_ ? 8 << 20 : 64 << 20;
  const std::size_t product_bytes_ = static_cast<std::size_t>(cpu_ ? 16 : 128) * kMiB;
  const std::shared_ptr<grpc::Channel> channel_ =
      grpc::CreateChannel("unix:" + path_, grpc::InsecureChannelCredentials());
  std::unique_ptr<v1::KernelService::Stub> stub_ = v1::KernelService::NewStub(channel_);
};

TEST_F(RegionAttacksTest, ATicketIsGoodOnceAndCannotBeGuessed) {
  const std::string ticket = Ticket();
  const UniqueFd memory = Memfd(kMiB);
  RegionSocket first(socket_), second(socket_), third(socket_);
  EXPECT_TRUE(first.HandOver(ticket, {memory.get()}));
  EXPECT_TRUE(first.Receive()->has_ready());
  EXPECT_TRUE(second.HandOver(ticket, {memory.get()}));
  EXPECT_EQ(second.ReceiveError().code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(third.HandOver(std::string(41, 'a'), {memory.get()}));
  EXPECT_EQ(third.ReceiveError().code(), grpc::StatusCode::NOT_FOUND);
  first.Close();
  ExpectNothingLeft();
}

TEST_F(RegionAttacksTest, WhatIsHandedOverMustBeWhatWasAskedFor) {
  const auto refusal = [&](int descriptor, const std::string& ticket) {
    RegionSocket socket(socket_);
    EXPECT_TRUE(socket.HandOver(ticket, {descriptor}));
    const v1::RegionError error = socket.ReceiveError();
    EXPECT_EQ(error.code(), grpc::StatusCode::INVALID_ARGUMENT);
    return error.message();
  };
  EXPECT_THAT(refusal(Memfd(kMiB, 0).get(), Ticket()), HasSubstr("F_SEAL_SHRINK"));
  EXPECT_THAT(refusal(Memfd(kMiB, F_SEAL_SHRINK).get(), Ticket()), HasSubstr("F_SEAL_GROW"));
  EXPECT_THAT(refusal(Memfd(kMiB, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE).get(), Ticket()),
              HasSubstr("F_SEAL_WRITE"));
  EXPECT_THAT(refusal(Memfd(2 * kMiB).get(), Ticket()), HasSubstr("2097152 bytes; Open was told 1048576"));
  UniqueFd sparse(memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(sparse.get(), kMiB), 0);
  ASSERT_EQ(fcntl(sparse.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_THAT(refusal(sparse.get(), Ticket()), HasSubstr("holes"));
  EXPECT_THAT(refusal(UniqueFd(open("/dev/zero", O_RDWR)).get(), "none"), HasSubstr("no memfd"));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_THAT(refusal(ends[0], "none"), HasSubstr("no memfd"));
  close(ends[0]);
  close(ends[1]);
  ExpectNothingLeft();
  ExpectServes();
}

TEST_F(RegionAttacksTest, PacketsThatMakeNoSenseEndTheConnection) {
  const UniqueFd memory = Memfd(kMiB);
  ExpectServes();  // the channel is there from here on
  ExpectNothingLeft();
  const int before = daemon_.Descriptors();
  const auto error_of = [&](auto send) {
    RegionSocket socket(socket_);
    send(socket);
    return socket.ReceiveError().message();
  };
  EXPECT_THAT(error_of([](RegionSocket& s) { s.Send("\xff\xff\xff"); }), HasSubstr("no RegionRequest"));
  EXPECT_THAT(error_of([](RegionSocket& s) { s.Send(std::string(5000, 'x')); }), HasSubstr("4096"));
  EXPECT_THAT(error_of([](RegionSocket& s) { s.Withdraw(1); }), HasSubstr("first packet must be a handover"));
  EXPECT_THAT(error_of([&](RegionSocket& s) { s.HandOver(Ticket(), {}); }),
              HasSubstr("came with 0 descriptors"));
  EXPECT_THAT(error_of([&](RegionSocket& s) {
                s.HandOver(Ticket(), {memory.get(), memory.get()});
              }),
              HasSubstr("came with 2 descriptors"));
  EXPECT_THAT(error_of([&](RegionSocket& s) { s.HandOver("none", std::vector<int>(100, memory.get())); }),
              HasSubstr("did not arrive"));
  const auto region = Region();
  EXPECT_TRUE(region->socket().Withdraw(0));
  EXPECT_THAT(region->socket().ReceiveError().message(), HasSubstr("0 is not above 0"));
  const auto another = Region();
  EXPECT_TRUE(another->socket().HandOver("none", {memory.get()}));
  EXPECT_THAT(another->socket().ReceiveError().message(), HasSubstr("has had one already"));
  ExpectServes();
  ExpectNothingLeft();
  EXPECT_TRUE(daemon_.AwaitDescriptors(before)) << "not all that were sent are closed";
}

TEST_F(RegionAttacksTest, WhoHoldsAllThatThereIsDoesNotStopOthersFromComputing) {
  std::vector<std::unique_ptr<SharedRegion>> held;
  // All that one client may have.
  for (int i = 0; i < 9; ++i) held.push_back(Region(16 * kMiB));
  const auto refused = OpenTicket(channel_, kMiB);
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.status.error_message(), HasSubstr("shared regions 150994944 are in use"));
  EXPECT_TRUE(DetailsOf(refused.status).has_retry_info);
  const auto never = OpenTicket(channel_, 512 * kMiB);
  EXPECT_EQ(never.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_FALSE(DetailsOf(never.status).has_retry_info);
  EXPECT_EQ(OpenTicket(channel_, INT64_MAX).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(OpenTicket(channel_, -4096).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  grpc::ClientContext context;
  v1::TransposeResponse response;
  EXPECT_TRUE(stub_->Transpose(&context, IotaTranspose(2, 3), &response).ok());
  held.pop_back();
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_regions", "", 8));
  EXPECT_TRUE(OpenTicket(channel_, kMiB).status.ok());
}

TEST_F(RegionAttacksTest, AThousandRegionsComeAndGo) {
  for (int i = 0; i < 8; ++i) Region();  // what is taken once
  ExpectNothingLeft();
  const int descriptors = daemon_.Descriptors();
  const double resident = daemon_.ResidentBytes();
  for (int i = 0; i < 1000; ++i) {
    // The one before may still be on its way out.
    AwaitThat(
        "the end of a region", [&] { return daemon_.Metric("warpline_regions") <= 6; },
        std::chrono::microseconds(0));
    const auto region = Region();
    ASSERT_FALSE(region->id().empty());
  }
  ExpectNothingLeft();
  EXPECT_TRUE(daemon_.AwaitDescriptors(descriptors)) << daemon_.Descriptors() << " after " << descriptors;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static_cast<void>(resident);  // a sanitizer keeps what was given back
#else
  EXPECT_LE(daemon_.ResidentBytes(), resident + 16 * kMiB);
#endif
}

TEST_F(RegionAttacksTest, AClientThatIsGoneInMidJobLeavesNothing) {
  auto region = Region(product_bytes_);
  region->Write(0, std::vector<float>(static_cast<std::size_t>(side_ * side_), 1.0F));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  v1::GemmResponse response;
  grpc::Status status;
  const auto call = stub_->AsyncGemm(&context, SlowProduct(*region, 1), &queue);
  call->Finish(&response, &status, nullptr);
  ASSERT_TRUE(daemon_.AwaitMetric("warpline_requests_in_flight", "", 1));
  // The kernel does this for a client that is killed.
  region->socket().Close();
  context.TryCancel();
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  ExpectNothingLeft();
  ExpectServes();
}

TEST_F(RegionAttacksTest, ASliceIsBusyUntilTheEndOfItsCallIsConfirmed) {
  const auto region = Region(product_bytes_);
  region->Write(0, std::vector<float>(static_cast<std::size_t>(side_ * side_), 1.0F));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  v1::GemmResponse response;
  grpc::Status status;
  const auto call = stub_->AsyncGemm(&context, SlowProduct(*region, 5), &queue);
  call->Finish(&response, &status, nullptr);
  ASSERT_TRUE(daemon_.AwaitMetric("warpline_requests_in_flight", "", 1));
  context.TryCancel();
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(region->socket().Withdraw(5));
  const auto reply = region->socket().Receive();
  ASSERT_TRUE(reply.has_value() && reply->has_ended());
  EXPECT_EQ(reply->ended().call(), 5);
  // From here on nothing is written: what the client puts there stays.
  const std::vector<float> mine(static_cast<std::size_t>(side_ * side_), -3.0F);
  region->Write(product_at_, mine);
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_requests_in_flight", "", 0));
  EXPECT_TRUE(region->Read<float>(product_at_, mine.size()) == mine);
  // And the number is spent.
  grpc::ClientContext again;
  EXPECT_EQ(stub_->Gemm(&again, SlowProduct(*region, 5), &response).error_code(), grpc::StatusCode::ABORTED);
}

TEST_F(RegionAttacksTest, HolesAndTruncationHarmTheirOwnerAlone) {
  const auto region = Region();
  region->Write(0, std::vector<float>{1, 2, 3, 4});
  EXPECT_NE(ftruncate(region->memory(), 0), 0);
  EXPECT_NE(fcntl(region->memory(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  ASSERT_EQ(fallocate(region->memory(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kMiB), 0);
  v1::TransposeRequest request;
  region->Fill(request.mutable_x(), v1::DATA_TYPE_F32, {2, 2}, 0);
  region->Name(request.mutable_options()->add_sinks()->mutable_region(), 4096);
  grpc::ClientContext context;
  v1::TransposeResponse response;
  const grpc::Status status = stub_->Transpose(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  ExpectServes();
}

// The last close of such a socket waits for its peer.
TEST_F(RegionAttacksTest, ADescriptorThatTakesLongToCloseHoldsUpNobody) {
  UniqueFd listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(name);
  ASSERT_EQ(bind(listening.get(), reinterpret_cast<const sockaddr*>(&name), size), 0);
  ASSERT_EQ(listen(listening.get(), 1), 0);
  ASSERT_EQ(getsockname(listening.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
  UniqueFd lingering(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(lingering.get(), reinterpret_cast<const sockaddr*>(&name), size), 0);
  const linger patience{.l_onoff = 1, .l_linger = 3600};
  ASSERT_EQ(setsockopt(lingering.get(), SOL_SOCKET, SO_LINGER, &patience, sizeof(patience)), 0);
  const std::string unsent(1 << 16, 'u');
  while (send(lingering.get(), unsent.data(), unsent.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  RegionSocket socket(socket_);
  EXPECT_TRUE(socket.HandOver(Ticket(), {lingering.get()}));
  std::thread closing([&] { lingering.Reset(); });  // whoever closes it last waits
  EXPECT_THAT(socket.ReceiveError().message(), HasSubstr("no memfd"));
  ExpectServes();
  daemon_.Signal(SIGTERM);
  EXPECT_EQ(daemon_.Wait(), 0);
  listening.Reset();  // its peer is gone
  closing.join();
}

TEST_F(RegionAttacksTest, WhoDoesNotReadItsRepliesIsCutOff) {
  const auto region = Region();
  std::int64_t call = 0;
  while (call < 1000000 && region->socket().Withdraw(++call)) {
  }
  EXPECT_LT(call, 1000000);
  ExpectServes();
}

TEST_F(RegionAttacksTest, WhoIsRefusedHearsWhyAlsoIfItSendsAtOnce) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  // An eighth of the connections may wait for their tickets: 4096 / 8 where descriptors abound.
  constexpr int kSilent = 520;
  if (limit.rlim_cur < kSilent + 100) GTEST_SKIP() << "ulimit -n is " << limit.rlim_cur;
  std::vector<std::unique_ptr<RegionSocket>> silent;
  for (int i = 0; i < kSilent; ++i) silent.push_back(std::make_unique<RegionSocket>(socket_));
  for (int i = 0; i < 20; ++i) {
    RegionSocket refused(socket_);
    refused.HandOver("no ticket", {});
    EXPECT_EQ(refused.ReceiveError().code(), static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  }
}

TEST_F(RegionAttacksTest, ADaemonThatStopsClosesTheConnections) {
  const auto region = Region();
  daemon_.Signal(SIGTERM);
  EXPECT_FALSE(region->socket().Receive().has_value());
  EXPECT_EQ(daemon_.Wait(), 0);
}

TEST(RegionSocketTest, AServerWithoutOneSaysSo) {
  Daemon tcp;
  EXPECT_EQ(OpenTicket(tcp.Channel(), 4096).status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  const std::string path = ::testing::TempDir() + "/warpline_none_" + std::to_string(getpid());
  Daemon none({"--listen=unix:" + path, "--region-bytes=0"});
  const auto channel = grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials());
  EXPECT_THAT(OpenTicket(channel, 4096).status.error_message(), HasSubstr("shares no memory"));
  EXPECT_NE(access((path + ".regions").c_str(), F_OK), 0);
}

TEST(RegionSocketTest, AnyServerMayHaveOneByItsFlag) {
  const std::string path = ::testing::TempDir() + "/warpline_flag_" + std::to_string(getpid());
  Daemon daemon({"--regions=" + path});
  SharedRegion region(daemon.Channel(), path, kMiB);
  EXPECT_FALSE(region.id().empty());
  EXPECT_EQ(daemon.Metric("warpline_region_bytes"), kMiB);
}

}  // namespace
}  // namespace warpline
