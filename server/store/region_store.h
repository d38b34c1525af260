// Shared regions: memory of clients on this host. Requests name slices of it.
#ifndef WARPLINE_SERVER_STORE_REGION_STORE_H_
#define WARPLINE_SERVER_STORE_REGION_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/base/owner.h"
#include "server/base/owner_limits.h"
#include "server/memory/buffer.h"
#include "server/observe/metrics.h"
#include "server/observe/owner_metrics.h"
#include "server/schedule/fair_budget.h"
#include "server/store/secret_id.h"

namespace warpline {

// Open gives a ticket for a region, which counts from then on. Redeem turns the ticket into a reservation,
// and Add turns the reservation's memory into a region. The region lives until Remove. Its memory lives until
// the last job that still uses it has ended. Errors show only the last digits of an id.
//
// Thread-safe. Outlives its regions and reservations.
class RegionStore {
 public:
  struct Options {
    // The limit of all regions together, which clients share by the rules of FairBudget. 0 bytes: regions are
    // turned off.
    std::size_t max_bytes = 0;
    std::size_t max_regions = 0, max_regions_per_owner = 0;
    absl::Duration ticket_ttl = absl::Seconds(30);
    LimitsOf limits_of = nullptr;
    OwnerMetrics* owner_metrics = nullptr;  // null if there are no identities
  };

  // A part of the limits. It is returned when this is destroyed. Can be moved.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept { *this = std::move(other); }
    Reservation& operator=(Reservation&& other) noexcept;
    ~Reservation() { Return(); }

    OwnerId owner() const { return owner_; }
    std::size_t bytes() const { return bytes_; }

   private:
    friend class RegionStore;
    Reservation(RegionStore* store, OwnerId owner, std::size_t bytes, FairBudget::Part number_part,
                FairBudget::Part bytes_part)
        : store_(store),
          owner_(owner),
          bytes_(bytes),
          number_part_(std::move(number_part)),
          bytes_part_(std::move(bytes_part)) {}
    void Return();
    RegionStore* store_ = nullptr;
    OwnerId owner_ = 0;
    std::size_t bytes_ = 0;
    FairBudget::Part number_part_, bytes_part_;
  };

  RegionStore(const Options& options, Metrics& metrics);
  RegionStore(const RegionStore&) = delete;
  RegionStore& operator=(const RegionStore&) = delete;

  const Options& options() const { return options_; }
  // Returns the bytes that all regions of the caller may have if no other client has any.
  std::size_t MaxBytesOf(const Caller& caller) const;

  // Returns a ticket for a region of `bytes` bytes. INVALID_ARGUMENT, about "size_bytes", if no such region
  // is possible. RESOURCE_EXHAUSTED, with the figures, if a limit is reached; with a delay if other clients
  // use the room.
  absl::StatusOr<std::string> Open(const Caller& caller, std::size_t bytes);
  // NOT_FOUND if the ticket is unknown, used or expired.
  absl::StatusOr<Reservation> Redeem(std::string_view ticket);
  // Returns the parts of the limits that expired tickets hold.
  void DropExpiredTickets();
  // Adds a region and returns its id. `memory` must return its reservation when it is destroyed, not earlier.
  std::string Add(OwnerId owner, Buffer memory);
  // Removes the region. Only jobs that already use it may go on using it.
  void Remove(std::string_view id);

  // Returns a slice. It counts as used by `call` for as long as the buffer exists. NOT_FOUND, or
  // FAILED_PRECONDITION for another server's id; OUT_OF_RANGE if the slice does not lie in the region;
  // ABORTED if the call was withdrawn; INVALID_ARGUMENT if the call number is negative.
  absl::StatusOr<Buffer> Use(OwnerId owner, std::string_view id, std::int64_t offset, std::size_t bytes,
                             std::int64_t call);
  // Withdraws a call, whose number must be above 0: from now on it may not use the region. `ended` is called
  // once, when no job of the call uses the region any more: before this returns, or later, on any thread,
  // where it must not block. It is never called if the region has been removed.
  void Withdraw(std::string_view id, std::int64_t call, std::function<void()> ended);

  std::size_t size() const;

 private:
  class Region;
  struct InUse;
  struct Totals {
    std::size_t bytes = 0, regions = 0;
  };
  struct Ticket {
    Reservation reservation;
    MonotonicTime expiry;
  };

  // Returns the limit by the flag and the owner's quota.
  std::size_t LimitOf(OwnerId owner) const;
  absl::Status CheckRoom(const Caller& caller, std::size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Charge(OwnerId owner, std::size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Return(OwnerId owner, std::size_t bytes);
  // Updates the metrics: the totals, and the owner's bytes by `bytes`, which may be negative.
  void Show(OwnerId owner, double bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Region> Find(std::string_view id) const;

  const Options options_;
  const SecretIds ids_{"region", "open"};
  FairBudget number_;        // of regions
  FairBudget shared_bytes_;  // bytes of regions, if there is no per-owner limit
  Gauge regions_gauge_, bytes_gauge_;
  mutable Mutex mutex_;
  Totals all_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<OwnerId, Totals> owners_ ABSL_GUARDED_BY(mutex_);  // only owners with regions
  absl::flat_hash_map<std::string, std::shared_ptr<Region>> regions_ ABSL_GUARDED_BY(mutex_);
  // Last, because the destructor of a reservation uses the other members.
  std::map<std::string, Ticket, std::less<>> tickets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_STORE_REGION_STORE_H_
