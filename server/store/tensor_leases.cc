// The part of TensorStore that ends leases.
#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "kernels/status_macros.h"
#include "server/store/tensor_entry.h"
#include "server/store/tensor_store.h"

namespace warpline {

void TensorStore::BeginLease(Entry& entry) {
  entry.lease_begin = MonotonicClock::now();
  if (entry.call != nullptr) entry.call->Use();
}

absl::StatusOr<TensorStore::Info> TensorStore::Renew(OwnerId owner, std::string_view id,
                                                     std::optional<absl::Duration> ttl) {
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const std::shared_ptr<Entry> entry, Find(owner, id));
  RenewEntry(*entry, ttl);
  return InfoOf(*entry);
}

void TensorStore::RenewEntry(Entry& entry, std::optional<absl::Duration> ttl) {
  if (entry.call != nullptr) return;  // results are kept only by sending them
  if (ttl.has_value()) entry.ttl = *ttl;
  BeginLease(entry);
  // A lease that has become shorter must be found in time.
  expiries_.erase({entry.expiry, &entry});
  entry.expiry = entry.LeaseEnd();
  expiries_.emplace(entry.expiry, &entry);
}

std::vector<absl::Duration> TensorStore::RenewEach(OwnerId owner, std::span<const std::string> ids,
                                                   std::optional<absl::Duration> ttl) {
  std::vector<absl::Duration> lengths;
  while (!ids.empty()) {
    MutexLock lock(&mutex_);
    const std::size_t count = std::min(ids.size(), kTensorsAtOnce);
    for (const std::string& id : ids.first(count)) {
      const absl::StatusOr<std::shared_ptr<Entry>> entry = Find(owner, id);
      if (entry.ok()) RenewEntry(**entry, ttl);
      lengths.push_back(entry.ok() ? (*entry)->ttl : absl::ZeroDuration());
    }
    ids = ids.subspan(count);
  }
  return lengths;
}

void TensorStore::ExpireInTurn() {
  // A lease in use is checked again after this time.
  constexpr std::chrono::seconds kAgain{1};
  for (;;) {
    std::shared_ptr<Entry> gone;  // destroyed, with its memory, after the lock is released
    MutexLock lock(&mutex_);
    const MonotonicTime next = expiries_.empty() ? kNever : expiries_.begin()->first;
    const bool news = mutex_.AwaitUntil(
        [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
          return stopping_ || (!expiries_.empty() && expiries_.begin()->first < next);
        },
        next);
    if (stopping_) return;
    if (news || expiries_.empty()) continue;
    const MonotonicTime now = MonotonicClock::now();
    const auto first = *expiries_.begin();
    if (first.first > now) continue;
    Entry& entry = *first.second;
    const MonotonicTime end = entry.IsKept() ? now + kAgain : entry.LeaseEnd();
    if (end <= now) {
      expired_.Add();
      if (entry.IsResult()) entry.call->Expire();
      gone = Remove(entry);
      continue;
    }
    expiries_.erase(expiries_.begin());
    entry.expiry = end;
    expiries_.emplace(end, &entry);
  }
}

}  // namespace warpline
