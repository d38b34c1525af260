#include "server/store/region_store.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"

namespace warpline {
namespace {

// Other clients may remove regions meanwhile.
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

constexpr std::size_t kPageBytes = 4096;

absl::Status NoSuchRegion(std::string_view id) {
  return absl::NotFoundError(
      absl::StrCat("there is no region ", Abbreviate(id), "; its connection may have been closed"));
}

}  // namespace

// One region, and the calls of its client that use it.
class RegionStore::Region {
 public:
  Region(OwnerId owner, Buffer memory) : owner_(owner), memory_(std::move(memory)) {}

  OwnerId owner() const { return owner_; }
  std::span<std::byte> bytes() const { return memory_.bytes(); }
  const Place& place() const { return memory_.place(); }

  // Begins a use by `call`. ABORTED if the call was withdrawn.
  absl::Status Begin(std::int64_t call) {
    if (call == 0) return absl::OkStatus();
    MutexLock lock(&mutex_);
    if (call <= floor_ || withdrawn_.count(call) > 0) {
      return absl::AbortedError(absl::StrCat("call ", call, " was withdrawn"));
    }
    ++running_[call].uses;
    return absl::OkStatus();
  }

  void End(std::int64_t call) {
    if (call == 0) return;
    std::vector<std::function<void()>> waiting;
    {
      MutexLock lock(&mutex_);
      const auto found = running_.find(call);
      if (--found->second.uses > 0) return;
      waiting = std::move(found->second.waiting);
      running_.erase(found);
    }
    for (const auto& ended : waiting) ended();
  }

  void Withdraw(std::int64_t call, std::function<void()> ended) {
    {
      MutexLock lock(&mutex_);
      if (call > floor_) withdrawn_.insert(call);
      if (withdrawn_.size() > kMaxWithdrawn) {
        floor_ = *withdrawn_.begin();
        withdrawn_.erase(withdrawn_.begin());
      }
      if (const auto found = running_.find(call); found != running_.end()) {
        // a client that asks several times gets one answer
        if (found->second.waiting.empty()) found->second.waiting.push_back(std::move(ended));
        return;
      }
    }
    ended();
  }

 private:
  // The limit that the API documents.
  static constexpr std::size_t kMaxWithdrawn = 1024;
  struct Running {
    int uses = 0;
    std::vector<std::function<void()>> waiting;
  };

  const OwnerId owner_;
  const Buffer memory_;
  Mutex mutex_;
  // The calls that use the region now, by call number.
  absl::flat_hash_map<std::int64_t, Running> running_ ABSL_GUARDED_BY(mutex_);
  std::set<std::int64_t> withdrawn_ ABSL_GUARDED_BY(mutex_);
  std::int64_t floor_ ABSL_GUARDED_BY(mutex_) = 0;  // all numbers up to here were withdrawn
};

// Keeps a region's memory. Its destructor ends the use.
struct RegionStore::InUse {
  InUse(std::shared_ptr<Region> region, std::int64_t call) : region(std::move(region)), call(call) {}
  ~InUse() { region->End(call); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

  const std::shared_ptr<Region> region;
  const std::int64_t call;
};

RegionStore::Reservation& RegionStore::Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  Return();
  store_ = std::exchange(other.store_, nullptr);
  owner_ = other.owner_;
  bytes_ = other.bytes_;
  number_part_ = std::move(other.number_part_);
  bytes_part_ = std::move(other.bytes_part_);
  return *this;
}

void RegionStore::Reservation::Return() {
  // The shares first: a client that sees the metrics drop must find room.
  number_part_.Return();
  bytes_part_.Return();
  if (RegionStore* const store = std::exchange(store_, nullptr); store != nullptr) {
    store->Return(owner_, bytes_);
  }
}

RegionStore::RegionStore(const Options& options, Metrics& metrics)
    : options_(options),
      number_({.total = static_cast<std::int64_t>(options.max_regions),
               .what = "shared regions",
               .retry_after = kRetryAfter}),
      shared_bytes_({.total = static_cast<std::int64_t>(options.max_bytes),
                     .what = "bytes of shared regions",
                     .retry_after = kRetryAfter,
                     .first_is_granted = false}),
      regions_gauge_(metrics.regions),
      bytes_gauge_(metrics.region_bytes) {}

std::size_t RegionStore::MaxBytesOf(const Caller& caller) const {
  return std::min(LimitOf(caller.owner), static_cast<std::size_t>(shared_bytes_.Largest(caller.claimant)));
}

std::size_t RegionStore::LimitOf(OwnerId owner) const {
  const OwnerLimits limits = options_.limits_of != nullptr ? options_.limits_of(owner) : OwnerLimits();
  const auto quota =
      static_cast<std::size_t>(limits.region_bytes.value_or(std::numeric_limits<std::int64_t>::max()));
  return std::min(options_.max_bytes, quota);
}

absl::Status RegionStore::CheckRoom(const Caller& caller, std::size_t bytes) const {
  const OwnerId owner = caller.owner;
  const std::size_t most = LimitOf(owner);
  const auto found = owners_.find(owner);
  // Without identities all peers are one owner. The number of regions, which is easily used up, is still
  // counted for each peer.
  const Totals own = {.bytes = found == owners_.end() ? 0 : found->second.bytes,
                      .regions = static_cast<std::size_t>(number_.held(caller.claimant.share))};
  const auto full = [bytes](const char* whose, const Totals& used, std::size_t max_bytes,
                            std::size_t max_regions, const char* flags) {
    return WithRetryAfter(absl::ResourceExhaustedError(absl::StrCat(
                              "a region of ", bytes, " bytes does not fit: ", whose, " ", used.regions,
                              " regions take ", used.bytes, " bytes; the limits are ", max_regions, " and ",
                              max_bytes, " (the server's ", flags, ")")),
                          kRetryAfter);
  };
  // Other owners are limited by their fair share, which Open takes after this check.
  const bool is_limited = most < options_.max_bytes;
  // The quota may have been reduced below what is in use.
  const bool is_full = own.bytes > most || bytes > most - own.bytes;
  if ((is_limited && is_full) || own.regions >= options_.max_regions_per_owner) {
    return full("the owner's", own, most, options_.max_regions_per_owner,
                "regions of one owner, or the owner's quota");
  }
  if (bytes > options_.max_bytes - all_.bytes) {
    return full("all", all_, options_.max_bytes, options_.max_regions, "--region-bytes");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> RegionStore::Open(const Caller& caller, std::size_t bytes) {
  const OwnerId owner = caller.owner;
  if (options_.max_bytes == 0) {
    return absl::UnimplementedError("this server shares no memory (--region-bytes=0)");
  }
  if (bytes == 0 || bytes % kPageBytes != 0) {
    return FieldError("size_bytes", absl::StrCat(bytes, " is not above 0 and a multiple of ", kPageBytes));
  }
  if (const std::size_t most = MaxBytesOf(caller); bytes > most) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a region of ", bytes, " bytes can never be had: the limit of this owner is ", most,
                     " bytes (its share of --region-bytes, or its quota)"));
  }
  DropExpiredTickets();
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckRoom(caller, bytes));
  ASSIGN_OR_RETURN(FairBudget::Part bytes_part,
                   shared_bytes_.Take(caller.claimant, static_cast<std::int64_t>(bytes)));
  ASSIGN_OR_RETURN(FairBudget::Part number_part, number_.Take(caller.claimant));
  Charge(owner, bytes);
  std::string id = ids_.New();
  tickets_.emplace(id, Ticket{Reservation(this, owner, bytes, std::move(number_part), std::move(bytes_part)),
                              MonotonicClock::now() + absl::ToChronoNanoseconds(options_.ticket_ttl)});
  return id;
}

void RegionStore::DropExpiredTickets() {
  const MonotonicTime now = MonotonicClock::now();
  std::vector<Ticket> expired;  // destroyed after the lock is released, because this returns their shares
  MutexLock lock(&mutex_);
  for (auto ticket = tickets_.begin(); ticket != tickets_.end();) {
    if (ticket->second.expiry > now) {
      ++ticket;
    } else {
      expired.push_back(std::move(ticket->second));
      ticket = tickets_.erase(ticket);
    }
  }
}

absl::StatusOr<RegionStore::Reservation> RegionStore::Redeem(std::string_view ticket) {
  DropExpiredTickets();
  MutexLock lock(&mutex_);
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return absl::NotFoundError("the ticket is unknown, used or expired");
  Reservation reservation = std::move(found->second.reservation);
  tickets_.erase(found);
  return reservation;
}

std::string RegionStore::Add(OwnerId owner, Buffer memory) {
  auto region = std::make_shared<Region>(owner, std::move(memory));
  std::string id = ids_.New();
  MutexLock lock(&mutex_);
  regions_.emplace(id, std::move(region));
  return id;
}

void RegionStore::Remove(std::string_view id) {
  std::shared_ptr<Region> removed;  // destroyed after the lock is released
  MutexLock lock(&mutex_);
  const auto found = regions_.find(std::string(id));
  if (found == regions_.end()) return;
  removed = std::move(found->second);
  regions_.erase(found);
}

std::shared_ptr<RegionStore::Region> RegionStore::Find(std::string_view id) const {
  MutexLock lock(&mutex_);
  const auto found = regions_.find(absl::string_view(id.data(), id.size()));
  return found == regions_.end() ? nullptr : found->second;
}

absl::StatusOr<Buffer> RegionStore::Use(OwnerId owner, std::string_view id, std::int64_t offset,
                                        std::size_t bytes, std::int64_t call) {
  const std::shared_ptr<Region> region = Find(id);
  if (region == nullptr || region->owner() != owner) {
    RETURN_IF_ERROR(ids_.Check(id));
    return NoSuchRegion(id);
  }
  const std::size_t size = region->bytes().size();
  // In this order no operation can overflow.
  if (offset < 0 || static_cast<std::uint64_t>(offset) > size ||
      bytes > size - static_cast<std::size_t>(offset)) {
    return absl::OutOfRangeError(absl::StrCat("a slice of ", bytes, " bytes at ", offset,
                                              " does not lie in the region, which has ", size, " bytes"));
  }
  if (call < 0) return absl::InvalidArgumentError(absl::StrCat(call, "; the least is 0"));
  RETURN_IF_ERROR(region->Begin(call));
  auto use = std::make_shared<InUse>(region, call);
  return Buffer(region->bytes().subspan(static_cast<std::size_t>(offset), bytes), region->place(),
                std::move(use));
}

void RegionStore::Withdraw(std::string_view id, std::int64_t call, std::function<void()> ended) {
  if (const std::shared_ptr<Region> region = Find(id); region != nullptr) {
    region->Withdraw(call, std::move(ended));
  }
}

std::size_t RegionStore::size() const {
  MutexLock lock(&mutex_);
  return regions_.size();
}

void RegionStore::Charge(OwnerId owner, std::size_t bytes) {
  for (Totals* totals : {&all_, &owners_[owner]}) {
    totals->bytes += bytes;
    ++totals->regions;
  }
  Show(owner, static_cast<double>(bytes));
}

void RegionStore::Return(OwnerId owner, std::size_t bytes) {
  MutexLock lock(&mutex_);
  const auto own = owners_.find(owner);
  for (Totals* totals : {&all_, &own->second}) {
    totals->bytes -= bytes;
    --totals->regions;
  }
  if (own->second.regions == 0) owners_.erase(own);
  Show(owner, -static_cast<double>(bytes));
}

void RegionStore::Show(OwnerId owner, double bytes) const {
  regions_gauge_.Set(static_cast<double>(all_.regions));
  bytes_gauge_.Set(static_cast<double>(all_.bytes));
  if (options_.owner_metrics == nullptr) return;
  const OwnerSeries& series = options_.owner_metrics->Of(owner);
  series.region_bytes.Add(bytes);
  if (series.label == OwnerMetrics::kOthers || options_.limits_of == nullptr) return;
  const auto own = owners_.find(owner);
  const double used = own == owners_.end() ? 0 : static_cast<double>(own->second.bytes);
  const auto quota = options_.limits_of(owner).region_bytes;
  series.region_quota_ratio.Set(quota.has_value() ? used / std::max(static_cast<double>(*quota), 1.0) : 0);
}

}  // namespace warpline
