#include "server/rpc/gentle_close.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace {

std::atomic<bool> close_gently = false;

}  // namespace

// Replaces the C library's function in the whole program. gRPC 1.51 has no other way to change how its
// sockets are closed.
extern "C" int shutdown(int fd, int how) noexcept {
  if (how == SHUT_RDWR && close_gently.load(std::memory_order_relaxed)) how = SHUT_WR;
  return static_cast<int>(syscall(SYS_shutdown, fd, how));
}

namespace warpline {

void CloseGently() { close_gently.store(true, std::memory_order_relaxed); }

namespace {

// connect(2) with AF_UNSPEC dissolves the association of a TCP socket. Linux resets the connection and
// empties its queues.
bool Dissolve(int fd) {
  const sockaddr nobody{.sa_family = AF_UNSPEC, .sa_data = {}};
  return connect(fd, &nobody, sizeof(nobody)) == 0;
}

}  // namespace

void CutConnection(int fd) {
  if (!Dissolve(fd)) syscall(SYS_shutdown, fd, SHUT_RDWR);
}

void DropUnread(int fd) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  const bool is_reset =
      getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == TCP_CLOSE;
  if (is_reset) Dissolve(fd);
}

}  // namespace warpline
