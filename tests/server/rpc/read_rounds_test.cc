#include "server/rpc/read_rounds.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "server/base/unique_fd.h"

namespace warpline {
namespace {

constexpr std::size_t kBytes = 3 * kMaxBytesOfRound;
constexpr std::size_t kPart = 256 << 10;

// A connection over loopback; `first` has been connected to `second`.
struct Connected {
  Connected() {
    const UniqueFd listening(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listening.get(), name, size), 0);
    EXPECT_EQ(listen(listening.get(), 1), 0);
    EXPECT_EQ(getsockname(listening.get(), name, &size), 0);
    first.Reset(socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(connect(first.get(), name, size), 0);
    second.Reset(accept(listening.get(), nullptr, nullptr));
  }
  UniqueFd first, second;
};

// Reads once, and returns the bytes that were read and those that are left, as recvmsg says.
std::pair<std::size_t, int> Read(int fd, std::vector<char>& into) {
  iovec part{.iov_base = into.data(), .iov_len = into.size()};
  std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t bytes = recvmsg(fd, &message, 0);
  EXPECT_GT(bytes, 0);
  const cmsghdr* const said = CMSG_FIRSTHDR(&message);
  int left = -1;
  if (said != nullptr && said->cmsg_type == TCP_INQ) std::memcpy(&left, CMSG_DATA(said), sizeof(left));
  return {static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)), left};
}

// Reads as gRPC does: waits for an edge, and then reads until it is told that nothing is left.
TEST(ReadRoundsTest, ARoundEndsAlsoOfASenderWhoIsFasterAndNothingIsLost) {
  BoundReadRounds();
  const Connected connected;
  const int fd = connected.second.get(), on = 1;
  ASSERT_EQ(setsockopt(fd, IPPROTO_TCP, TCP_INQ, &on, sizeof(on)), 0);
  const UniqueFd epoll(epoll_create1(0));
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {}};
  ASSERT_EQ(epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event), 0);
  std::thread sender([&] {
    const std::vector<char> zeros(kPart);
    for (std::size_t sent = 0; sent < kBytes; sent += kPart) {
      ASSERT_EQ(send(connected.first.get(), zeros.data(), zeros.size(), 0), static_cast<ssize_t>(kPart));
    }
  });
  std::vector<char> into(kPart);
  std::size_t received = 0, longest = 0;
  int ended_early = 0;
  while (received < kBytes) {
    ASSERT_EQ(epoll_wait(epoll.get(), &event, 1, 60000), 1) << "no edge after " << received << " bytes";
    std::size_t round = 0;
    for (int left = 1; left != 0 && received < kBytes;) {
      absl::SleepFor(absl::Milliseconds(1));  // so that there is always more
      const auto [bytes, now_left] = Read(fd, into);
      ASSERT_GT(bytes, 0u);
      round += bytes;
      received += bytes;
      left = now_left;
    }
    longest = std::max(longest, round);
    int left = 0;
    ioctl(fd, FIONREAD, &left);
    if (left > 0) ++ended_early;
  }
  sender.join();
  EXPECT_LE(longest, kMaxBytesOfRound + kPart);
  EXPECT_GT(ended_early, 0) << "the sender was not faster: this shows nothing";
}

}  // namespace
}  // namespace warpline
