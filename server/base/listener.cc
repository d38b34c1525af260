#include "server/base/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"

namespace warpline {
namespace {

constexpr std::string_view kUnix = "unix:";
// The kernel reduces it to net.core.somaxconn.
constexpr int kBacklog = 4096;

absl::Status CannotListen(const std::string& address, std::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", std::string(why)));
}

absl::Status CannotListen(const std::string& address, const char* call, int error) {
  return CannotListen(address, absl::StrCat(call, ": ", std::strerror(error),
                                            error == EADDRINUSE ? "; is another warplined running?" : ""));
}

absl::Status BadAddress(const std::string& address, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot listen on ", address, ": ", std::string(why)));
}

UniqueFd NewSocket(int family, int type) {
  return UniqueFd(socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Returns whether a process may be listening on the path. A refused connection shows that there is none. For
// a socket of another user the answer is unknown.
bool MayBeLive(const sockaddr_un& name, int type) {
  const UniqueFd probe = NewSocket(AF_UNIX, type);
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0 ||
         errno != ECONNREFUSED;
}

int PortOf(int socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof(name);
  getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size);
  sockaddr_in6 v6;
  sockaddr_in v4;
  if (name.ss_family == AF_INET6) {
    std::memcpy(&v6, &name, sizeof(v6));
    return ntohs(v6.sin6_port);
  }
  std::memcpy(&v4, &name, sizeof(v4));
  return ntohs(v4.sin_port);
}

void SetPort(addrinfo& info, int port) {
  // The port is at the same place in the addresses of both families.
  reinterpret_cast<sockaddr_in*>(info.ai_addr)->sin_port = htons(static_cast<std::uint16_t>(port));
}

// Returns a bound socket, or none, with errno set.
UniqueFd BindTo(const addrinfo& info) {
  UniqueFd fd = NewSocket(info.ai_family, SOCK_STREAM);
  if (!fd.ok()) return fd;
  const int on = 1, off = 0;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (info.ai_family == AF_INET6) {
    const auto& address = reinterpret_cast<const sockaddr_in6*>(info.ai_addr)->sin6_addr;
    const int* only = IN6_IS_ADDR_UNSPECIFIED(&address) ? &off : &on;
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, only, sizeof(*only));
  }
  if (bind(fd.get(), info.ai_addr, info.ai_addrlen) != 0) {
    const int error = errno;
    fd.Reset();
    errno = error;
  }
  return fd;
}

}  // namespace

absl::StatusOr<Listener> Listener::Bind(const std::string& address, std::string_view flag) {
  absl::StatusOr<Listener> listener = address.rfind(kUnix, 0) == 0
                                          ? BindPath(address, address.substr(kUnix.size()), SOCK_STREAM)
                                          : BindPort(address);
  RETURN_IF_ERROR(InField(flag, listener.status()));
  listener->flag_ = flag;
  return listener;
}

absl::StatusOr<Listener> Listener::BindForPackets(const std::string& path, std::string_view flag) {
  absl::StatusOr<Listener> listener = BindPath(absl::StrCat(std::string(kUnix), path), path, SOCK_SEQPACKET);
  RETURN_IF_ERROR(InField(flag, listener.status()));
  listener->flag_ = flag;
  return listener;
}

absl::Status Listener::Listen() {
  // Another server that started at the same time may have replaced the path.
  if (!path_.empty() && !HasPath()) {
    return InField(flag_, CannotListen(address_, "another server has replaced the socket"));
  }
  for (const UniqueFd& socket : sockets_) {
    if (listen(socket.get(), kBacklog) != 0) return InField(flag_, CannotListen(address_, "listen", errno));
  }
  return absl::OkStatus();
}

absl::StatusOr<Listener> Listener::BindPath(const std::string& address, const std::string& path, int type) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.empty()) return BadAddress(address, "must be unix:/path");
  if (path.size() >= sizeof(name.sun_path)) {
    return BadAddress(
        address, absl::StrCat("the path has ", path.size(), " bytes, limit ", sizeof(name.sun_path) - 1));
  }
  std::memcpy(name.sun_path, path.data(), path.size());

  struct stat found {};
  if (lstat(path.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode)) return CannotListen(address, "the path exists and is no socket");
    if (MayBeLive(name, type)) return CannotListen(address, "another server is listening there");
    unlink(path.c_str());
  }
  Listener listener;
  listener.sockets_.push_back(NewSocket(AF_UNIX, type));
  const int fd = listener.sockets_.back().get();
  if (bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) {
    return CannotListen(address, "bind", errno);
  }
  // Nobody can connect before listen(2), so this mode always applies.
  if (chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0 || lstat(path.c_str(), &found) != 0) {
    return CannotListen(address, "chmod", errno);
  }
  listener.address_ = address;
  listener.path_ = path;
  listener.path_device_ = found.st_dev;
  listener.path_inode_ = found.st_ino;
  return listener;
}

absl::StatusOr<Listener> Listener::BindPort(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port)) {
    return BadAddress(address, "must be host:port");
  }
  std::string host = address.substr(0, colon);
  const std::string printed_host = host;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* first = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &first); error != 0) {
    return BadAddress(address, gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> infos(first, freeaddrinfo);
  Listener listener;
  int error = 0;
  for (addrinfo* info = first; info != nullptr; info = info->ai_next) {
    if (info->ai_family != AF_INET && info->ai_family != AF_INET6) continue;
    SetPort(*info, port);
    UniqueFd fd = BindTo(*info);
    if (fd.ok()) {
      port = PortOf(fd.get());  // the other sockets of this name use the same port
      listener.sockets_.push_back(std::move(fd));
    } else if (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT) {
      error = errno;  // a name may have addresses of a family that this machine does not support
    } else {
      return CannotListen(address, "bind", errno);
    }
  }
  if (listener.sockets_.empty()) return CannotListen(address, "bind", error);
  listener.address_ = absl::StrCat(printed_host, ":", port);
  return listener;
}

Listener::Listener(Listener&& other) noexcept
    : flag_(std::move(other.flag_)),
      address_(std::move(other.address_)),
      sockets_(std::move(other.sockets_)),
      path_(std::exchange(other.path_, std::string())),
      path_device_(other.path_device_),
      path_inode_(other.path_inode_) {}

Listener::~Listener() {
  if (!path_.empty() && HasPath()) unlink(path_.c_str());
}

bool Listener::HasPath() const {
  struct stat found {};
  return lstat(path_.c_str(), &found) == 0 && found.st_dev == path_device_ && found.st_ino == path_inode_;
}

}  // namespace warpline
