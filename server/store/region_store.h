// Shared regions: memory of clients on this host, of which their requests name slices.
#ifndef WARPLINE_SERVER_STORE_REGION_STORE_H_
#define WARPLINE_SERVER_STORE_REGION_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
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

// A region is asked for with Open, whose ticket counts from then on; the ticket is redeemed for a
// reservation, and the reservation's memory becomes a region with Add. It lives until it is removed, and its
// memory until the last job that uses it then has let go of it. Errors say of an id no more than its last
// digits.
//
// Thread-safe. Outlives what it gives out.
class RegionStore {
 public:
  struct Options {
    // The limit of all regions together. 0 bytes: there are no regions.
    std::size_t max_bytes = 0;
    // The limit of the regions of one owner. By default clients share max_bytes as FairBudget has it.
    std::optional<std::size_t> max_bytes_per_owner;
    std::size_t max_regions = 0, max_regions_per_owner = 0;
    absl::Duration ticket_ttl = absl::Seconds(30);
    LimitsOf limits_of = nullptr;
    OwnerMetrics* owner_metrics = nullptr;  // null where there are no identities
  };

  // A share of the limits, which goes back when this is destroyed. Can be moved.
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
  // Returns the bytes that the caller's regions may have together when nobody else has any.
  std::size_t MaxBytesOf(const Caller& caller) const;

  // A ticket for a region of so many bytes. INVALID_ARGUMENT, about "size_bytes", if there can be no such
  // region; RESOURCE_EXHAUSTED with the figures if the limits are reached, with a delay if there would be
  // room without the others.
  absl::StatusOr<std::string> Open(const Caller& caller, std::size_t bytes);
  // NOT_FOUND if the ticket is unknown, used or expired.
  absl::StatusOr<Reservation> Redeem(std::string_view ticket);
  // Gives back the shares of tickets that can no longer be presented.
  void DropExpiredTickets();
  // `memory` is to give its reservation back when it goes, not before. Returns the id.
  std::string Add(OwnerId owner, Buffer memory);
  // No job uses it from now on, but for those that do already.
  void Remove(std::string_view id);

  // A slice in use by a call, for as long as there is the buffer. NOT_FOUND, or FAILED_PRECONDITION for
  // another server's id; OUT_OF_RANGE if the slice does not lie in the region; ABORTED if the call was
  // withdrawn; INVALID_ARGUMENT if its number is negative.
  absl::StatusOr<Buffer> Use(OwnerId owner, std::string_view id, std::int64_t offset, std::size_t bytes,
                             std::int64_t call);
  // From now on the region is not used by this call, whose number is above 0. `ended` is called once when no
  // job of the call uses it any more: before this returns, or later, on any thread, where it must not block;
  // or never, if the region has been removed.
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

  // Returns what the flag and the owner's quota allow.
  std::size_t LimitOf(OwnerId owner) const;
  absl::Status CheckRoom(const Caller& caller, std::size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Charge(OwnerId owner, std::size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Return(OwnerId owner, std::size_t bytes);
  // The totals, and that the owner has so much more, or less.
  void Show(OwnerId owner, double bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Region> Find(std::string_view id) const;

  const Options options_;
  const SecretIds ids_{"region", "open"};
  FairBudget number_;        // of regions
  FairBudget shared_bytes_;  // of regions, where there is no limit for each owner
  Gauge regions_gauge_, bytes_gauge_;
  mutable Mutex mutex_;
  Totals all_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<OwnerId, Totals> owners_ ABSL_GUARDED_BY(mutex_);  // that have any
  absl::flat_hash_map<std::string, std::shared_ptr<Region>> regions_ ABSL_GUARDED_BY(mutex_);
  // Last, as reservations that are destroyed look at the rest.
  std::map<std::string, Ticket, std::less<>> tickets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_STORE_REGION_STORE_H_
