// Which leases of resident tensors are to be renewed, and when. It has no clock and makes no calls.
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

// A tensor that somebody has a handle of.
struct HeldTensor {
  std::string id;
  absl::Duration ttl{};
  bool owned = false;  // it is dropped when it is let go
  std::size_t bytes = 0;
};

// Not thread-safe.
class LeaseSchedule {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // A lease that begins now. Whoever has the key holds the tensor; several may hold the same one.
  void Add(std::uint64_t key, HeldTensor tensor, Time now);
  // Lets go. Nothing if the tensor is not here.
  std::optional<HeldTensor> Remove(std::uint64_t key);
  // Lets go of a tensor that is no longer there, whoever holds it.
  void Forget(std::string_view id);
  // The lease of the tensor begins now, with this length, whoever holds it.
  void Restart(std::string_view id, absl::Duration ttl, Time now);
  // The least length that a lease of the tensor has here; nothing if nobody holds it.
  std::optional<absl::Duration> LengthOf(std::string_view id) const;

  // When the next renewal is due; nothing if there is no lease, or the renewals of all are on their way.
  std::optional<Time> Next() const;
  // Keys and ids of at most `count` leases to renew now. If there is one, others go with it that would follow
  // soon. They are not due again before Renewed or Failed.
  std::vector<std::pair<std::uint64_t, std::string>> TakeDue(Time now, std::size_t count);
  // The lease has begun anew, and the server may have given it another length. What Restart has said since
  // the renewal was taken remains.
  void Renewed(std::uint64_t key, absl::Duration ttl, Time now);
  // There is nothing to renew any more, or another attempt follows while the lease may still last.
  void Failed(std::uint64_t key, absl::StatusCode code, Time now);

  // All that are owned. Nothing is left.
  std::vector<HeldTensor> End();

 private:
  struct Lease {
    HeldTensor tensor;
    std::optional<Time> due;  // nothing while a renewal is on its way
  };

  void SetDue(std::uint64_t key, Lease& lease, std::optional<Time> due);
  std::vector<std::uint64_t> KeysOf(std::string_view id) const;

  std::map<std::uint64_t, Lease> leases_;
  std::multimap<std::string, std::uint64_t, std::less<>> keys_;  // by id
  std::set<std::pair<Time, std::uint64_t>> due_;                 // the leases that have a time
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_LEASE_SCHEDULE_H_
