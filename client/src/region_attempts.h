// The attempts of one blocking call, and what they have in shared memory.
#ifndef WARPLINE_CLIENT_SRC_REGION_ATTEMPTS_H_
#define WARPLINE_CLIENT_SRC_REGION_ATTEMPTS_H_

#include <functional>
#include <future>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/connection.h"
#include "client/src/message_writer.h"
#include "client/src/placement.h"
#include "client/src/region_call.h"
#include "client/src/region_client.h"

namespace warpline::client {

// Not thread-safe.
class RegionAttempts {
 public:
  // All must outlive this.
  RegionAttempts(RegionClient& regions, Connection& connection, Placement& placement, absl::Time deadline)
      : regions_(regions), connection_(connection), placement_(placement), deadline_(deadline) {}

  // Places the arrays of the next attempt, and makes its message. Waits first until the server no longer uses
  // the memory of the previous attempt. If that lasts beyond the deadline, returns the error of the previous
  // attempt. Other errors are those of Placement::Place and `encode`.
  absl::StatusOr<OutgoingMessage> Encode(
      const std::function<absl::StatusOr<OutgoingMessage>(RegionCall&)>& encode);
  // To be called after an attempt that was sent and failed. Returns true if the call should be sent again at
  // once, because a region was lost. The caller's memory is not used any more when this returns.
  bool Failed(const absl::Status& status);
  // The part that regions have in the last attempt.
  RegionCall& last() { return *attempt_; }

 private:
  absl::Status Place();

  RegionClient& regions_;
  Connection& connection_;
  Placement& placement_;
  const absl::Time deadline_;
  std::shared_ptr<RegionCall> attempt_;
  std::future<void> ended_;  // of the last attempt, if it failed
  absl::Status error_;       // of the last attempt
  bool was_resent_ = false;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_REGION_ATTEMPTS_H_
