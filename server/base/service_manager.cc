#include "server/base/service_manager.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace warpline {

absl::Status NotifyServiceManager(const std::string& state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr) return absl::OkStatus();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(path);
  if ((path[0] != '/' && path[0] != '@') || length >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("$NOTIFY_SOCKET=", path, ": must be a path or @name"));
  }
  std::memcpy(address.sun_path, path, length);
  // An abstract name begins with a zero byte, and its length marks its end.
  if (path[0] == '@') address.sun_path[0] = '\0';
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto address_length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  // Waits for a manager that is busy, because it would end a service from which it hears nothing. The wait
  // has a limit.
  constexpr timeval kPatience = {.tv_sec = 5, .tv_usec = 0};
  if (socket >= 0) ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
  const bool sent = socket >= 0 && ::sendto(socket, state.data(), state.size(), MSG_NOSIGNAL,
                                            reinterpret_cast<const sockaddr*>(&address), address_length) >= 0;
  const int error = errno;
  if (socket >= 0) ::close(socket);
  if (sent) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat("$NOTIFY_SOCKET=", path));
}

}  // namespace warpline
