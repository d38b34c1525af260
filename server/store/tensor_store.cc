#include "server/store/tensor_store.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/align.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/store/tensor_entry.h"

namespace warpline {
namespace {

absl::Status NoSuchTensor(std::string_view id) {
  return absl::NotFoundError(absl::StrCat("there is no tensor ", Abbreviate(id),
                                          "; it may have been dropped, or its lease has ended"));
}

// With a delay, because others may drop their tensors.
absl::Status Full(const std::string& text) {
  return WithRetryAfter(absl::ResourceExhaustedError(text), absl::Seconds(1));
}

}  // namespace

// Keeps a tensor from expiring.
struct TensorStore::Use {
  Use(TensorStore& store, std::shared_ptr<Entry> entry) : store(store), entry(std::move(entry)) {}
  ~Use() { store.EndUse(entry); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  TensorStore& store;
  const std::shared_ptr<Entry> entry;
};

namespace {

std::vector<Gauge> BytesGauges(std::size_t devices, Metrics& metrics) {
  std::vector<Gauge> gauges;
  for (std::size_t i = 0; i < devices; ++i) gauges.push_back(metrics.ResidentBytes(static_cast<int>(i)));
  return gauges;
}

}  // namespace

TensorStore::TensorStore(Options options, AllocateMemory allocate, Metrics& metrics)
    : options_(std::move(options)),
      max_ttl_seconds_(absl::ToDoubleSeconds(options_.max_ttl)),
      allocate_(std::move(allocate)),
      number_({.total = static_cast<std::int64_t>(options_.max_tensors),
               .what = "resident tensors",
               .retry_after = absl::Seconds(1)}),
      tensors_(metrics.resident_tensors),
      bytes_(BytesGauges(options_.device_bytes.size(), metrics)),
      expired_(metrics.leases_expired),
      used_bytes_(options_.device_bytes.size(), 0),
      expiring_([this] { ExpireInTurn(); }) {}

TensorStore::~TensorStore() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  expiring_.join();
  std::map<Key, std::shared_ptr<Entry>> left;
  MutexLock lock(&mutex_);
  left.swap(entries_);  // destroyed after the lock is released
}

absl::StatusOr<absl::Duration> TensorStore::Ttl(double seconds) const {
  if (seconds == 0) return options_.default_ttl;
  const double most = max_ttl_seconds_;
  if (seconds > 0 && seconds <= most) return absl::Seconds(seconds);
  return absl::InvalidArgumentError(absl::StrFormat(
      "%g is outside (0, %g] seconds; the greatest is the server's --max-ttl", seconds, most));
}

int TensorStore::DeviceFor(const Caller& caller, std::size_t bytes,
                           std::span<const std::size_t> operands) const {
  std::optional<std::int64_t> quota;  // on each device
  if (options_.limits_of != nullptr) quota = options_.limits_of(caller.owner).resident_bytes;
  MutexLock lock(&mutex_);
  const auto merits = [&](std::size_t i) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    const auto device = static_cast<int>(i);
    const std::size_t left = options_.device_bytes[i] - used_bytes_[i];
    bool has_room = bytes <= left;
    if (quota.has_value()) {
      const auto used = owners_bytes_.find({caller.owner, device});
      has_room = has_room &&
                 (used == owners_bytes_.end() ? 0 : used->second) + bytes <= static_cast<std::size_t>(*quota);
    }
    const auto own = clients_bytes_.find({caller.client, device});
    return std::tuple(operands.empty() ? 0 : operands[i], has_room,
                      own == clients_bytes_.end() ? 0 : own->second, left);
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < used_bytes_.size(); ++i) {
    if (merits(i) > merits(best)) best = i;
  }
  return static_cast<int>(best);
}

absl::Status TensorStore::CheckEverFits(OwnerId owner, std::size_t bytes) const {
  const std::size_t limit = *std::max_element(options_.device_bytes.begin(), options_.device_bytes.end());
  if (limit == 0 && bytes > 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("results of ", bytes,
                     " bytes cannot be resident: the server keeps none, as its "
                     "--resident-bytes is 0"));
  }
  const auto refuse = [bytes](std::size_t most, std::string_view whose) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "results of ", bytes, " bytes together do not fit into the memory for resident tensors: ",
        std::string(whose), " has ", most));
  };
  if (bytes > limit) return refuse(limit, "a device of the server (--resident-bytes)");
  if (options_.limits_of == nullptr) return absl::OkStatus();
  const std::optional<std::int64_t> quota = options_.limits_of(owner).resident_bytes;
  if (!quota.has_value() || bytes <= static_cast<std::size_t>(*quota)) return absl::OkStatus();
  return refuse(static_cast<std::size_t>(*quota), "this owner's quota");
}

absl::Status TensorStore::CheckQuota(OwnerId owner, int device, std::size_t bytes) const {
  if (options_.limits_of == nullptr) return absl::OkStatus();
  const std::optional<std::int64_t> quota = options_.limits_of(owner).resident_bytes;
  if (!quota.has_value()) return absl::OkStatus();
  const auto limit = static_cast<std::size_t>(*quota);
  const auto found = owners_bytes_.find({owner, device});
  const std::size_t used = found == owners_bytes_.end() ? 0 : found->second;
  // The quota may have been reduced below what is in use.
  if (used <= limit && bytes <= limit - used) return absl::OkStatus();
  const std::string text =
      absl::StrCat("a resident tensor of ", bytes, " bytes does not fit: this owner's on device ", device,
                   " take ", used, " bytes, its quota is ", limit);
  return bytes <= limit ? Full(text) : absl::ResourceExhaustedError(text);
}

double TensorStore::QuotaRatio(OwnerId owner) const {
  if (options_.limits_of == nullptr) return 0;
  const std::optional<std::int64_t> quota = options_.limits_of(owner).resident_bytes;
  if (!quota.has_value()) return 0;
  std::size_t most = 0;
  for (int device = 0; device < static_cast<int>(used_bytes_.size()); ++device) {
    if (const auto found = owners_bytes_.find({owner, device}); found != owners_bytes_.end()) {
      most = std::max(most, found->second);
    }
  }
  return static_cast<double>(most) / std::max(static_cast<double>(*quota), 1.0);
}

void TensorStore::Charge(const Caller& caller, int device, std::size_t bytes, int tensors) {
  const OwnerId owner = caller.owner;
  const auto count = [&](auto& map, const auto& key) {
    std::size_t& held = map[key];
    held += bytes * static_cast<std::size_t>(tensors);
    if (held == 0) map.erase(key);
  };
  count(owners_bytes_, std::pair(owner, device));
  count(clients_bytes_, std::pair(caller.client, device));
  used_bytes_[static_cast<std::size_t>(device)] += bytes * static_cast<std::size_t>(tensors);
  tensors_.Add(tensors);
  if (options_.owner_metrics != nullptr) {
    const OwnerSeries& series = options_.owner_metrics->Of(owner);
    series.resident_bytes.Add(tensors * static_cast<double>(bytes));
    if (series.label != OwnerMetrics::kOthers) series.resident_quota_ratio.Set(QuotaRatio(owner));
  }
  bytes_[static_cast<std::size_t>(device)].Add(tensors * static_cast<double>(bytes));
}

absl::StatusOr<Buffer> TensorStore::Allocate(const Caller& caller, int device, std::size_t bytes) {
  const std::size_t limit = device_bytes(device);
  const std::size_t charged = AlignUp(std::min(bytes, limit + 1), kTensorAlignment);
  FairBudget::Part part;
  {
    MutexLock lock(&mutex_);
    const std::size_t used = used_bytes_[static_cast<std::size_t>(device)];
    if (limit == 0 && charged > 0) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a resident tensor of ", bytes, " bytes does not fit: the server keeps none on device ", device,
          ", as its --resident-bytes is 0 there"));
    }
    if (charged > limit - used) {
      const std::string text =
          absl::StrCat("a resident tensor of ", bytes, " bytes does not fit: those on device ", device,
                       " take ", used, " of ", limit, " bytes (the server's --resident-bytes)");
      return charged <= limit ? Full(text) : absl::ResourceExhaustedError(text);
    }
    RETURN_IF_ERROR(CheckQuota(caller.owner, device, charged));
    ASSIGN_OR_RETURN(part, number_.Take(caller.claimant));
    Charge(caller, device, charged, 1);
  }
  const auto give_back = [this, caller, device, charged](void*) {
    MutexLock lock(&mutex_);
    Charge(caller, device, charged, -1);
  };
  // The charge must end after the memory is freed.
  std::shared_ptr<void> charge(this, give_back);
  absl::StatusOr<Buffer> allocated = allocate_(device, bytes);
  if (absl::IsResourceExhausted(allocated.status())) {
    return Full(absl::StrCat("a resident tensor of ", bytes, " bytes does not fit: device ", device,
                             " has no such block left: ", allocated.status().message()));
  }
  RETURN_IF_ERROR(allocated.status());
  Buffer memory = *std::move(allocated);
  struct Charged {
    FairBudget::Part part;
    std::shared_ptr<void> charge;
    Buffer memory;
  };
  const Place place = memory.place();
  const std::span<std::byte> all = memory.bytes();
  return Buffer(all, place,
                std::make_shared<Charged>(Charged{std::move(part), std::move(charge), std::move(memory)}));
}

std::string TensorStore::Insert(OwnerId owner, std::shared_ptr<Entry> entry) {
  entry->key = {owner, ids_.New()};
  BeginLease(*entry);
  entry->expiry = entry->LeaseEnd();
  expiries_.emplace(entry->expiry, entry.get());
  const Key key = entry->key;
  entries_.emplace(key, std::move(entry));
  return key.second;
}

TensorStore::Info TensorStore::Add(OwnerId owner, const TensorSpec& spec, absl::Duration ttl, Buffer memory) {
  auto entry = std::make_shared<Entry>();
  entry->spec = spec;
  entry->ttl = ttl;
  entry->memory = std::move(memory);
  entry->complete = true;
  MutexLock lock(&mutex_);
  Insert(owner, entry);
  return InfoOf(*entry);
}

absl::StatusOr<TensorStore::Info> TensorStore::Create(const Caller& caller, const TensorSpec& spec,
                                                      absl::Duration ttl, int device) {
  ASSIGN_OR_RETURN(Buffer memory, Allocate(caller, device, spec.bytes));
  auto entry = std::make_shared<Entry>();
  entry->spec = spec;
  entry->ttl = ttl;
  entry->memory = std::move(memory);
  entry->complete = spec.bytes == 0;
  MutexLock lock(&mutex_);
  Insert(caller.owner, entry);
  return InfoOf(*entry);
}

TensorStore::Info TensorStore::InfoOf(const Entry& entry) const {
  const auto left = entry.IsKept() ? entry.ttl : absl::FromChrono(entry.LeaseEnd() - MonotonicClock::now());
  return {.id = entry.key.second,
          .spec = entry.spec,
          .device = entry.memory.place().device,
          .ttl = std::max(left, absl::ZeroDuration()),
          .missing_bytes = entry.complete ? 0 : entry.spec.bytes - entry.written.bytes(),
          .replicas = {}};
}

absl::StatusOr<std::shared_ptr<TensorStore::Entry>> TensorStore::Find(OwnerId owner, std::string_view id,
                                                                      bool writes) {
  RETURN_IF_ERROR(ids_.Check(id));
  const auto found = entries_.find(Key(owner, id));
  if (found == entries_.end() || (found->second->is_upload && !writes)) return NoSuchTensor(id);
  // The thread that ends leases may be late, so check here too.
  const Entry& entry = *found->second;
  if (!entry.IsKept() && entry.LeaseEnd() <= MonotonicClock::now()) return NoSuchTensor(id);
  return found->second;
}

absl::StatusOr<TensorStore::Reading> TensorStore::Read(OwnerId owner, std::string_view id) {
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Find(owner, id));
  if (!entry->complete) {
    const std::optional<ByteRange> missing = entry->written.FirstMissing(entry->spec.bytes);
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", Abbreviate(id), " is not complete: of ", entry->spec.bytes, " bytes ",
                     entry->spec.bytes - entry->written.bytes(), " are missing, the first of them ",
                     ToString(missing.value_or(ByteRange()))));
  }
  ++entry->uses;
  const Buffer& memory = entry->memory;
  return Reading{InfoOf(*entry), Buffer(memory.bytes(), memory.place(), std::make_shared<Use>(*this, entry)),
                 entry->call, entry->result};
}

absl::StatusOr<TensorStore::Writing> TensorStore::Write(OwnerId owner, std::string_view id,
                                                        std::size_t offset) {
  std::shared_ptr<Entry> entry;
  {
    MutexLock lock(&mutex_);
    ASSIGN_OR_RETURN(entry, Find(owner, id, /*writes=*/true));
    if (offset > entry->spec.bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(offset, " is beyond the end of the tensor, which has ", entry->spec.bytes, " bytes"));
    }
    ++entry->uses;
  }
  Writing writing;  // moved without the lock, because moving takes the lock
  writing.memory_ = entry->memory;
  writing.range_ = {offset, offset};
  writing.store_ = this;
  writing.call_ = entry->call;
  writing.entry_ = std::move(entry);
  return writing;
}

void TensorStore::EndUse(const std::shared_ptr<Entry>& entry) {
  MutexLock lock(&mutex_);
  --entry->uses;
  BeginLease(*entry);
}

std::shared_ptr<TensorStore::Entry> TensorStore::Remove(Entry& entry) {
  expiries_.erase({entry.expiry, &entry});
  entry.removed = true;
  auto node = entries_.extract(entry.key);
  return std::move(node.mapped());
}

bool TensorStore::IsStreamedResult(OwnerId owner, std::string_view id) {
  MutexLock lock(&mutex_);
  const absl::StatusOr<std::shared_ptr<Entry>> entry = Find(owner, id);
  return entry.ok() && (*entry)->call != nullptr;
}

absl::StatusOr<Buffer> TensorStore::Drop(OwnerId owner, std::string_view id) {
  std::shared_ptr<Entry> dropped;  // destroyed after the lock is released
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(dropped, Find(owner, id));
  Remove(*dropped);
  return dropped->memory;
}

std::vector<Buffer> TensorStore::DropEach(OwnerId owner, std::span<const std::string> ids) {
  std::vector<Buffer> memory;
  while (!ids.empty()) {
    std::vector<std::shared_ptr<Entry>> dropped;  // destroyed after the lock is released
    MutexLock lock(&mutex_);
    const std::size_t count = std::min(ids.size(), kTensorsAtOnce);
    for (const std::string& id : ids.first(count)) {
      const absl::StatusOr<std::shared_ptr<Entry>> entry = Find(owner, id);
      if (!entry.ok()) continue;
      dropped.push_back(Remove(**entry));
      memory.push_back(dropped.back()->memory);
    }
    ids = ids.subspan(count);
  }
  return memory;
}

std::vector<TensorStore::Info> TensorStore::List(OwnerId owner, std::string_view after,
                                                 std::size_t count) const {
  std::vector<Info> infos;
  MutexLock lock(&mutex_);
  for (auto entry = entries_.upper_bound(Key(owner, after));
       entry != entries_.end() && entry->first.first == owner && infos.size() < count; ++entry) {
    if (entry->second->call != nullptr) continue;
    infos.push_back(InfoOf(*entry->second));
    if (options_.replicas != nullptr)
      infos.back().replicas = options_.replicas->DevicesOf(entry->second->memory);
  }
  return infos;
}

std::size_t TensorStore::size() const {
  MutexLock lock(&mutex_);
  return entries_.size();
}

}  // namespace warpline
