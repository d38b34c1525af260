// Which leases of resident tensors are to be renewed, and when. It has no clock and makes no calls.
#ifndef WARPLINE_CLIENT_SRC_LEASE_SCHEDULE_H_
#define WARPLINE_CLIENT_SRC_LEASE_SCHEDULE_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace warpline::client {

// Not thread-safe.
class LeaseSchedule {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // A lease that begins now. Whoever has the key holds the tensor; several may hold the same one. What is
  // `owned` is dropped when it is let go.
  void Add(std::uint64_t key, const std::string& id, absl::Duration ttl, bool owned, Time now);
  // Lets go. The id if the tensor is owned, and nothing if it is not, or is not here.
  std::optional<std::string> Remove(std::uint64_t key);

  // When the next renewal is due; nothing if there is no lease, or the renewals of all are on their way.
  std::optional<Time> Next() const;
  // Key and id of one lease that is to be renewed now. It is not due again before Renewed or Failed.
  std::optional<std::pair<std::uint64_t, std::string>> TakeDue(Time now);
  // The lease has begun anew, and the server may have given it another length.
  void Renewed(std::uint64_t key, absl::Duration ttl, Time now);
  // There is nothing to renew any more, or another attempt follows while the lease may still last.
  void Failed(std::uint64_t key, absl::StatusCode code, Time now);

  // The ids of all that is owned. Nothing is left.
  std::vector<std::string> End();

 private:
  struct Lease {
    std::string id;
    absl::Duration ttl;
    bool owned;
    std::optional<Time> due;  // nothing while a renewal is on its way
  };

  std::map<std::uint64_t, Lease> leases_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_LEASE_SCHEDULE_H_
