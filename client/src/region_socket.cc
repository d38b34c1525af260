#include "client/src/region_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

// Defined by the API.
constexpr std::size_t kMaxPacketBytes = 4096;
// connect() fails at once if the listener's queue is full, and no event tells when there is room again. So
// retry at this interval.
constexpr absl::Duration kConnectPeriod = absl::Milliseconds(5);

absl::Status Failed(const char* what) {
  return absl::UnavailableError(absl::StrCat("the region socket: ", what, ": ", std::strerror(errno)));
}

absl::Status Late(const char* what) {
  return absl::DeadlineExceededError(absl::StrCat("the deadline passed while ", what));
}

// Makes an error from errno. Call it directly after connect().
absl::Status NotConnected(const std::string& path) {
  const int error = errno;
  const std::string text =
      absl::StrCat("the region socket ", path, ": cannot connect: ", std::strerror(error));
  switch (error) {
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat(text, ": a server makes it with mode 0600, for its own user only"));
    case EPROTOTYPE:
      return absl::InvalidArgumentError(
          absl::StrCat(text, ": it is no region socket; that of a server at unix:PATH is PATH.regions"));
    default:
      return absl::UnavailableError(text);
  }
}

// Removes the scheme of "unix:/path" or "unix:///path". Returns false if the path has no such scheme.
bool ConsumeScheme(absl::string_view& path) {
  if (!absl::ConsumePrefix(&path, "unix:")) return false;
  absl::ConsumePrefix(&path, "//");
  return true;
}

// Waits until the socket can be read.
absl::Status AwaitReadable(int fd, absl::Time deadline) {
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return Late("the server was taking the region over");
    pollfd poll{.fd = fd, .events = POLLIN, .revents = 0};
    // Poll in steps, since poll() counts milliseconds in an int.
    const absl::Duration step = std::min(left + absl::Milliseconds(1), absl::Minutes(1));
    const int ready = ::poll(&poll, 1, static_cast<int>(absl::ToInt64Milliseconds(step)));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return Failed("poll");
  }
}

}  // namespace

absl::StatusOr<std::string> RegionSocketPath(const std::string& target, const std::string& given) {
  if (absl::string_view path = given; !path.empty()) {
    ConsumeScheme(path);
    return std::string(path);
  }
  absl::string_view path = target;
  if (!ConsumeScheme(path) || path.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the server is called at ", target,
                     ", which does not tell where its region socket is: call it at unix:PATH, or set "
                     "ClientOptions::region_socket to the path that its --regions has"));
  }
  return absl::StrCat(path, ".regions");
}

absl::StatusOr<RegionSocket> RegionSocket::Connect(const std::string& path, absl::Time deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the region socket ", path, " has a path of ", path.size(),
                                                   " bytes; a socket's has at most ",
                                                   sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return Failed("socket");
  RegionSocket socket(fd);
  while (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return NotConnected(path);
    if (absl::Now() + kConnectPeriod >= deadline) return Late("the region socket was being connected");
    absl::SleepFor(kConnectPeriod);
  }
  return socket;
}

RegionSocket::RegionSocket(int fd) : process_(::getpid()), fd_(fd) {}

RegionSocket::RegionSocket(RegionSocket&& other) noexcept
    : process_(other.process_), fd_(std::exchange(other.fd_, -1)) {}

RegionSocket::~RegionSocket() {
  if (fd_ < 0) return;
  Shutdown();
  ::close(fd_);
}

void RegionSocket::Shutdown() {
  if (::getpid() == process_) ::shutdown(fd_, SHUT_RDWR);
}

absl::StatusOr<std::string> RegionSocket::HandOver(const std::string& ticket, int memfd,
                                                   absl::Time deadline) {
  v1::RegionRequest request;
  request.mutable_handover()->set_ticket(ticket);
  std::string packet = request.SerializeAsString();
  iovec part{packet.data(), packet.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &memfd, sizeof(int));
  // A new connection has room for one packet, so this does not wait.
  while (::sendmsg(fd_, &message, MSG_NOSIGNAL) < 0) {
    if (errno == EPIPE) break;  // a full server has already replied
    if (errno != EINTR) return Failed("cannot hand the region over");
  }
  while (true) {
    RETURN_IF_ERROR(AwaitReadable(fd_, deadline));
    ASSIGN_OR_RETURN(const std::optional<v1::RegionReply> reply, Receive());
    if (!reply) continue;
    if (reply->has_error() && reply->error().code() != 0) {
      return absl::Status(static_cast<absl::StatusCode>(reply->error().code()), reply->error().message());
    }
    if (reply->has_ready() && !reply->ready().id().empty()) return reply->ready().id();
    return absl::InternalError("the server's reply to a region is not valid");
  }
}

absl::StatusOr<bool> RegionSocket::SendWithdrawal(std::int64_t call) {
  v1::RegionRequest request;
  request.mutable_withdrawal()->set_call(call);
  const std::string packet = request.SerializeAsString();
  while (::send(fd_, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
    if (errno == EAGAIN || errno == ENOBUFS) return false;
    if (errno != EINTR) return Failed("cannot send");
  }
  return true;
}

absl::StatusOr<std::optional<v1::RegionReply>> RegionSocket::Receive() {
  std::array<char, kMaxPacketBytes> packet;
  ssize_t got = 0;
  while ((got = ::recv(fd_, packet.data(), packet.size(), MSG_TRUNC)) < 0) {
    if (errno == EAGAIN) return std::nullopt;
    if (errno != EINTR) return Failed("cannot read");
  }
  // The API has no empty packets, so this is the end of the connection.
  if (got == 0) return absl::UnavailableError("the server closed the region's connection");
  v1::RegionReply reply;
  if (static_cast<std::size_t>(got) > packet.size() ||
      !reply.ParseFromArray(packet.data(), static_cast<int>(got))) {
    return absl::UnavailableError("the server sent an invalid packet on the region's connection");
  }
  return reply;
}

}  // namespace warpline::client
