// Sockets that wait for connections.
#ifndef WARPLINE_SERVER_BASE_LISTENER_H_
#define WARPLINE_SERVER_BASE_LISTENER_H_

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/unique_fd.h"

namespace warpline {

// One address of the server: the sockets of a host and port, or of a path. A name such as "localhost" may
// have several sockets. The sockets are non-blocking. The destructor closes them, and removes the path if it
// is still the socket that was created here.
class Listener {
 public:
  // Takes the address; connections are refused until Listen. `address` is host:port, where port 0 chooses a
  // free one, or unix:/path. "[::]:port" accepts IPv4 too. The socket of a path has mode 0600. A path on
  // which nobody listens is replaced. UNAVAILABLE if the address is in use, for example by another server on
  // the same path; INVALID_ARGUMENT if the address is not valid. Errors begin with `flag`, where it was set.
  static absl::StatusOr<Listener> Bind(const std::string& address, std::string_view flag);
  // The same for a path, whose connections have the type SOCK_SEQPACKET.
  static absl::StatusOr<Listener> BindForPackets(const std::string& path, std::string_view flag);
  ~Listener();
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;

  // Clients may connect from now on. UNAVAILABLE if another process has taken the address since Bind.
  absl::Status Listen();

  // The address in use, with the port that the system chose.
  const std::string& address() const { return address_; }
  const std::vector<UniqueFd>& sockets() const { return sockets_; }

 private:
  Listener() = default;
  static absl::StatusOr<Listener> BindPath(const std::string& address, const std::string& path, int type);
  static absl::StatusOr<Listener> BindPort(const std::string& address);
  bool HasPath() const;

  std::string flag_;
  std::string address_;
  std::vector<UniqueFd> sockets_;
  // The path of a unix socket; empty for other sockets.
  std::string path_;
  dev_t path_device_ = 0;
  ino_t path_inode_ = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_LISTENER_H_
