#include "server/rpc/read_rounds.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstring>

namespace warpline {
namespace {

// <linux/tcp.h> has it too, but cannot be included together with <netinet/tcp.h>.
#ifndef TCP_CM_INQ
constexpr int TCP_CM_INQ = 36;
#endif

std::atomic<bool> bounds_rounds = false;

// The bytes received, for each descriptor. Descriptors that share an entry have shorter rounds, and their
// bytes are counted together.
struct Received {
  std::atomic<std::size_t> bytes_of_round = 0;
  std::atomic<std::uint64_t> bytes = 0;
};
std::array<Received, 1 << 16> received;

Received& ReceivedBy(int fd) { return received[static_cast<std::size_t>(fd) % received.size()]; }

// Returns where the kernel has written how many bytes are left to read, or null. gRPC requests this number
// with TCP_INQ on TCP connections.
unsigned char* BytesLeft(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == IPPROTO_TCP && part->cmsg_type == TCP_CM_INQ) return CMSG_DATA(part);
  }
  return nullptr;
}

void Bound(int fd, std::size_t bytes, msghdr& message) {
  unsigned char* const left = BytesLeft(message);
  if (left == nullptr) return;
  std::atomic<std::size_t>& round = ReceivedBy(fd).bytes_of_round;
  int value = 0;
  std::memcpy(&value, left, sizeof(value));
  if (value == 0) return round.store(0, std::memory_order_relaxed);
  if (round.fetch_add(bytes, std::memory_order_relaxed) + bytes < kMaxBytesOfRound) return;
  // Linux (tcp_set_rcvlowat, since 4.18) reports EPOLLIN again when the low-water mark is set and that many
  // bytes are there. 1 is the value that it had. Without this, gRPC would wait forever.
  const int low_water = 1;
  if (setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low_water, sizeof(low_water)) != 0) return;
  round.store(0, std::memory_order_relaxed);
  std::memset(left, 0, sizeof(value));
}

}  // namespace

void BoundReadRounds() { bounds_rounds.store(true, std::memory_order_relaxed); }

std::uint64_t BytesReceived(int fd) {
  return fd < 0 ? 0 : ReceivedBy(fd).bytes.load(std::memory_order_relaxed);
}

}  // namespace warpline

// Replaces the C library's function in the whole program, even if gRPC is a shared library. gRPC 1.51 has no
// effective setting for its buffers. dlsym finds a sanitizer's own function next, so the sanitizer sees what
// is received.
extern "C" __attribute__((visibility("default"))) ssize_t recvmsg(int fd, msghdr* message, int flags) {
  using Function = ssize_t (*)(int, msghdr*, int);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "recvmsg"));
  const ssize_t bytes = next(fd, message, flags);
  if (bytes > 0 && warpline::bounds_rounds.load(std::memory_order_relaxed)) {
    const auto count = static_cast<std::size_t>(bytes);
    warpline::ReceivedBy(fd).bytes.fetch_add(count, std::memory_order_relaxed);
    if (message->msg_controllen > 0) warpline::Bound(fd, count, *message);
  }
  return bytes;
}
