// Sockets that wait for connections.
#ifndef WARPLINE_SERVER_BASE_LISTENER_H_
#define WARPLINE_SERVER_BASE_LISTENER_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/unique_fd.h"

namespace warpline {

// One address on which the server listens: the sockets of a host and port, of which a name such as
// "localhost" has several, or of a path. The sockets are non-blocking and are closed when this is destroyed;
// then a path is removed, if it is still the socket that was made here.
class Listener {
 public:
  // `address` is host:port, where port 0 picks a free one, or unix:/path. "[::]:port" takes IPv4 too. The
  // socket of a path has mode 0600. A path where nobody listens any more is replaced. UNAVAILABLE if the
  // address is in use, also by another server on the same path; INVALID_ARGUMENT if there can be no such
  // address.
  static absl::StatusOr<Listener> Open(const std::string& address);
  // The same for a path, whose connections have the type SOCK_SEQPACKET.
  static absl::StatusOr<Listener> OpenForPackets(const std::string& path);
  ~Listener();
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;

  // The address in use, with the port that was picked.
  const std::string& address() const { return address_; }
  const std::vector<UniqueFd>& sockets() const { return sockets_; }

 private:
  Listener() = default;
  static absl::StatusOr<Listener> OpenPath(const std::string& address, const std::string& path, int type);
  static absl::StatusOr<Listener> OpenPort(const std::string& address);

  std::string address_;
  std::vector<UniqueFd> sockets_;
  // The path of a unix socket; empty for other sockets.
  std::string path_;
  dev_t path_device_ = 0;
  ino_t path_inode_ = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_LISTENER_H_
