// The connection of a region beside gRPC. It hands over the descriptor, and reports when calls have ended.
#ifndef WARPLINE_CLIENT_SRC_REGION_SOCKET_H_
#define WARPLINE_CLIENT_SRC_REGION_SOCKET_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// Returns the path of a server's region socket. If `given` is not empty, it is that path, which may start
// with "unix:". Otherwise, for a target "unix:/path", it is that path plus ".regions". FailedPrecondition for
// other targets.
absl::StatusOr<std::string> RegionSocketPath(const std::string& target, const std::string& given);

// One connection. Not thread-safe, except that one thread may read while another writes.
class RegionSocket {
 public:
  // Returns Unavailable, with the path, if nobody listens there; PermissionDenied if this user may not
  // connect; DeadlineExceeded; InvalidArgument if the path is too long for a socket, or the socket has
  // another type.
  static absl::StatusOr<RegionSocket> Connect(const std::string& path, absl::Time deadline);
  ~RegionSocket();
  RegionSocket(RegionSocket&& other) noexcept;
  RegionSocket& operator=(RegionSocket&&) = delete;

  // Sends the ticket with the descriptor, and returns the id of the region. Errors are the server's or those
  // of Connect. After an error the connection is unusable.
  absl::StatusOr<std::string> HandOver(const std::string& ticket, int memfd, absl::Time deadline);

  // Returns false if the packet cannot be sent without waiting. Then send it again later.
  absl::StatusOr<bool> SendWithdrawal(std::int64_t call);
  // Returns the next available packet; nothing if there is none. Unavailable if the server has closed the
  // connection or sent an invalid packet.
  absl::StatusOr<std::optional<v1::RegionReply>> Receive();

  // Ends the connection, even if a child that was forked in the meantime shares it. The child itself cannot
  // end it. Any thread may call this.
  void Shutdown();

  int fd() const { return fd_; }

 private:
  explicit RegionSocket(int fd);

  pid_t process_;
  int fd_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_REGION_SOCKET_H_
