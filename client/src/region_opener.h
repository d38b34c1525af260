// Opens regions for a pool, as large as the server allows.
#ifndef WARPLINE_CLIENT_SRC_REGION_OPENER_H_
#define WARPLINE_CLIENT_SRC_REGION_OPENER_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/connection.h"
#include "client/src/region_client.h"
#include "warpline/options.h"

namespace warpline::client {

// Sizes and times of a pool. Tests use smaller ones.
struct PoolTuning {
  // Sizes of regions are rounded up to multiples of this, in bytes.
  std::size_t region_bytes = std::size_t{64} << 20;
  // A new region is as large as all regions of the pool together, but at most this large. So there are few
  // regions, and at most about twice the memory that is needed.
  std::size_t large_region_bytes = std::size_t{256} << 20;
  // Pauses before the server is asked again: `pause` after a refusal for lack of room, `long_pause` if it
  // shares no memory.
  absl::Duration pause = absl::Seconds(1);
  absl::Duration long_pause = absl::Seconds(10);
};

// Opens regions. After a refusal, it waits before it asks the server again. Only one thread at a time may
// call Check and Open. Any thread may call the other functions.
class RegionOpener {
 public:
  // `regions` and `connection` must outlive this.
  RegionOpener(RegionClient& regions, Connection& connection, const ClientOptions& options,
               const PoolTuning& tuning);

  // Makes sure that limit() is known. Returns the error of a recent refusal that covers regions of `bytes`.
  // FailedPrecondition if the target has no region socket; Unimplemented if the server shares no memory.
  absl::Status Check(std::size_t bytes, absl::Time deadline);
  // Opens a region of `wanted` bytes. If the server has less memory, opens a smaller region of at least
  // `least` bytes. Both are multiples of 4096. FailedPrecondition or PermissionDenied if the server answers
  // but the region socket cannot be used. Unavailable if the server does not answer.
  absl::StatusOr<std::shared_ptr<SharedRegion>> Open(std::size_t wanted, std::size_t least,
                                                     absl::Time deadline);

  // The server's limit for all regions of this client together, in bytes; 0 if the server must be asked.
  std::size_t limit() const { return limit_.load(std::memory_order_relaxed); }
  // Forgets the limit: another server, with another limit, may be running now.
  void ForgetLimit() { limit_.store(0, std::memory_order_relaxed); }
  // True if the server had less room than the last request wanted.
  bool crowded() const { return crowded_.load(std::memory_order_relaxed); }

  // Warns that the server shares memory, but has none left for this client.
  void WarnOfNoRoom(const absl::Status& error);
  // Implements Client::TakeWarning.
  std::string TakeWarning();

 private:
  // Asks for a ticket until the server has room. The server releases the memory of a client a little after
  // the client has closed. Therefore a client without a region waits once, for the server's retry delay.
  absl::StatusOr<RegionTicket> Reserve(std::size_t wanted, std::size_t least, absl::Time deadline);
  // Asks for `wanted` bytes, then for half as much, and so on down to `least`.
  absl::StatusOr<RegionTicket> ReserveLargest(std::size_t wanted, std::size_t least, absl::Time deadline);
  absl::StatusOr<std::size_t> AskLimit(absl::Time deadline);
  absl::StatusOr<std::shared_ptr<SharedRegion>> HandOver(RegionTicket ticket, absl::Time deadline);
  // Remembers an error, so that the server is not asked again for `pause`, or longer if it has no memory now.
  // In the latter case the error applies to regions of at least `refused_bytes`. Forgets the last error if
  // `answer` is OK.
  void Remember(const absl::Status& answer, absl::Duration pause, std::size_t refused_bytes);
  // Warns about the region socket if its path was given, or if this user lacks the permission.
  void WarnOfPath(const absl::Status& error);
  void Warn(std::string text);

  RegionClient& regions_;
  Connection& connection_;
  const PoolTuning tuning_;
  const absl::StatusOr<std::string> path_;
  const bool path_was_given_;

  std::atomic<std::size_t> limit_ = 0;
  std::atomic<bool> crowded_ = false;
  bool patient_ = true;  // may still wait for the room of a client that has just closed
  // The last refusal. It applies to regions of at least refused_bytes_, until not_before_.
  absl::Status refusal_;
  std::size_t refused_bytes_ = 0;
  absl::Time not_before_ = absl::InfinitePast();

  std::mutex warning_mutex_;
  bool may_warn_;
  std::string warning_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_REGION_OPENER_H_
