#include "server/rpc/uploads.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "server/base/unique_fd.h"

namespace warpline {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const MonotonicTime kStart = MonotonicTime() + std::chrono::hours(1000);
constexpr Uploads::Progress kProgress{.window = absl::Seconds(30), .bytes = 100};

class FakeUpload final : public Upload {
 public:
  void GiveUp() override { given_up = true; }
  void OnSlow() override { slow = true; }
  bool given_up = false, slow = false;
};

struct Pair {
  Pair() {
    BoundReadRounds();
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) return;
    server.Reset(fds[0]);
    client.Reset(fds[1]);
  }
  UniqueFd server, client;
};

class UploadsTest : public ::testing::Test {
 protected:
  // Receives as gRPC does.
  void Receive(std::size_t bytes) {
    std::string data(bytes, 'x');
    ASSERT_EQ(send(pair_.client.get(), data.data(), data.size(), 0), static_cast<ssize_t>(bytes));
    iovec part{.iov_base = data.data(), .iov_len = data.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    ASSERT_EQ(recvmsg(pair_.server.get(), &message, MSG_WAITALL), static_cast<ssize_t>(bytes));
  }
  int Look(MonotonicTime now) { return uploads_.Look(kProgress, absl::Milliseconds(100), now); }

  const Pair pair_;
  Connection connection_{1, pair_.server.get(), Peer(), ""};
  Uploads uploads_;
};

TEST_F(UploadsTest, OneThatStandsStillIsGivenUpOnce) {
  FakeUpload upload;
  uploads_.Add(upload, connection_, kStart);
  EXPECT_EQ(Look(kStart + seconds(29)), 0);
  EXPECT_EQ(Look(kStart + seconds(30)), 1);
  EXPECT_TRUE(upload.given_up);
  EXPECT_EQ(Look(kStart + seconds(90)), 0);
  uploads_.Remove(upload);
  EXPECT_EQ(connection_.uploads(), 0);
}

TEST_F(UploadsTest, OneThatReceivesEnoughGoesOn) {
  FakeUpload upload;
  uploads_.Add(upload, connection_, kStart);
  for (int i = 1; i <= 5; ++i) {
    Receive(100);
    EXPECT_EQ(Look(kStart + seconds(30 * i)), 0);
  }
  Receive(99);
  EXPECT_EQ(Look(kStart + seconds(180)), 1);
  uploads_.Remove(upload);
}

TEST_F(UploadsTest, TheBytesOfAConnectionKeepAsManyUploadsAliveAsTheyPayFor) {
  std::vector<FakeUpload> uploads(10);
  for (FakeUpload& upload : uploads) uploads_.Add(upload, connection_, kStart);
  Receive(350);
  EXPECT_EQ(Look(kStart + seconds(30)), 7);
  Receive(300);
  EXPECT_EQ(Look(kStart + seconds(60)), 0);
  for (FakeUpload& upload : uploads) uploads_.Remove(upload);
  EXPECT_EQ(connection_.uploads(), 0);
}

TEST_F(UploadsTest, OneThatTakesLongSaysSoOnce) {
  FakeUpload upload, other;
  uploads_.Add(upload, connection_, kStart);
  uploads_.Add(other, connection_, kStart + milliseconds(50));
  Look(kStart + milliseconds(100));
  EXPECT_TRUE(upload.slow);
  EXPECT_FALSE(other.slow);
  uploads_.Remove(upload);
  uploads_.Remove(other);
}

TEST_F(UploadsTest, AnyOneMayLeave) {
  std::vector<FakeUpload> uploads(4);
  for (FakeUpload& upload : uploads) uploads_.Add(upload, connection_, kStart);
  for (const std::size_t leaves : {1, 3, 0}) uploads_.Remove(uploads[leaves]);
  EXPECT_EQ(Look(kStart + seconds(30)), 1);
  EXPECT_TRUE(uploads[2].given_up);
  uploads_.Remove(uploads[2]);
  EXPECT_EQ(Look(kStart + seconds(60)), 0);
}

}  // namespace
}  // namespace warpline
