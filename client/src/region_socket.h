// The connection that a region has beside gRPC: it hands the descriptor over, and tells of the ends of calls.
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

// The path of a server's region socket: the one given, which may be written "unix:/path" too, or else, of a
// target "unix:/path", that path with ".regions" behind it. FailedPrecondition for other targets.
absl::StatusOr<std::string> RegionSocketPath(const std::string& target, const std::string& given);

// One connection. Not thread-safe, but that one thread may read while another writes.
class RegionSocket {
 public:
  // Unavailable, with the path, if nobody listens there; PermissionDenied if this user may not connect;
  // DeadlineExceeded; InvalidArgument for a path that is too long for a socket, and for a socket of another
  // kind.
  static absl::StatusOr<RegionSocket> Connect(const std::string& path, absl::Time deadline);
  ~RegionSocket();
  RegionSocket(RegionSocket&& other) noexcept;
  RegionSocket& operator=(RegionSocket&&) = delete;

  // Sends the ticket with the descriptor, and returns the id of the region. Errors are the server's, or as of
  // Connect; the connection is of no use after one.
  absl::StatusOr<std::string> HandOver(const std::string& ticket, int memfd, absl::Time deadline);

  // False if the packet cannot be sent without waiting, and has to be sent again.
  absl::StatusOr<bool> SendWithdrawal(std::int64_t call);
  // The next packet that is here; nothing if there is none. Unavailable if the server has closed the
  // connection or sent what is no packet of the API.
  absl::StatusOr<std::optional<v1::RegionReply>> Receive();

  // Ends the connection, also for a child that was forked in the meantime and shares it. Such a child itself
  // cannot end it. Any thread may call this.
  void Shutdown();

  int fd() const { return fd_; }

 private:
  explicit RegionSocket(int fd);

  pid_t process_;
  int fd_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_REGION_SOCKET_H_
