// Decides which leases of resident tensors to renew, and when. It has no clock and makes no calls.
#ifndef WARPLINE_CLIENT_SRC_LEASE_SCHEDULE_H_
#define WARPLINE_CLIENT_SRC_LEASE_SCHEDULE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace warpline::client {

// A tensor for which at least one handle exists.
struct HeldTensor {
  std::string id;
  absl::Duration ttl{};
  bool owned = false;  // the tensor is dropped when the handle is let go
  std::size_t bytes = 0;
};

// Not thread-safe.
class LeaseSchedule {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Adds a lease that begins now. The owner of the key holds the tensor. Several keys may hold the same
  // tensor.
  void Add(std::uint64_t key, HeldTensor tensor, Time now);
  // Lets go of the tensor. Returns nothing if the key is unknown.
  std::optional<HeldTensor> Remove(std::uint64_t key);
  // Lets go of a tensor that no longer exists, for all keys that hold it.
  void Forget(std::string_view id);
  // Restarts the lease of the tensor now, with this length, for all keys that hold it.
  void Restart(std::string_view id, absl::Duration ttl, Time now);
  // Returns the shortest lease recorded here for the tensor; nothing if no key holds it.
  std::optional<absl::Duration> LengthOf(std::string_view id) const;

  // When the next renewal is due; nothing if there is no lease, or if all renewals are in flight.
  std::optional<Time> Next() const;
  // Returns keys and ids of at most `count` leases to renew now. If one is due, also returns leases that are
  // due soon. They are not due again before Renewed or Failed.
  std::vector<std::pair<std::uint64_t, std::string>> TakeDue(Time now, std::size_t count);
  // The lease has been renewed, and the server may have changed its length. A Restart that came after the
  // renewal was taken keeps its effect.
  void Renewed(std::uint64_t key, absl::Duration ttl, Time now);
  // Either the tensor can no longer be renewed, or another attempt is scheduled while the lease may still be
  // valid.
  void Failed(std::uint64_t key, absl::StatusCode code, Time now);

  // Returns all owned tensors, and removes everything from the schedule.
  std::vector<HeldTensor> End();

 private:
  struct Lease {
    HeldTensor tensor;
    std::optional<Time> due;  // nothing while a renewal is in flight
  };

  void SetDue(std::uint64_t key, Lease& lease, std::optional<Time> due);
  std::vector<std::uint64_t> KeysOf(std::string_view id) const;

  std::map<std::uint64_t, Lease> leases_;
  std::multimap<std::string, std::uint64_t, std::less<>> keys_;  // by id
  std::set<std::pair<Time, std::uint64_t>> due_;                 // the leases that have a due time
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_LEASE_SCHEDULE_H_
