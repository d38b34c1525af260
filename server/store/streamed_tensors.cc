// The part of TensorStore that handles the arrays of streamed calls.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/store/tensor_entry.h"
#include "server/store/tensor_store.h"

namespace warpline {

std::string TensorStore::AddUpload(OwnerId owner, const TensorSpec& spec, Buffer memory,
                                   std::shared_ptr<StreamedCall> call) {
  auto entry = std::make_shared<Entry>();
  entry->spec = spec;
  entry->ttl = absl::Seconds(max_ttl_seconds_.load());
  entry->uses = 1;  // the call's use, until RemoveUploads: so the entry does not expire
  entry->memory = std::move(memory);
  entry->complete = spec.bytes == 0;
  entry->is_upload = true;
  entry->call = std::move(call);
  MutexLock lock(&mutex_);
  return Insert(owner, std::move(entry));
}

void TensorStore::RemoveUploads(OwnerId owner, std::span<const std::string> ids) {
  std::vector<std::shared_ptr<Entry>> removed;  // destroyed after the lock is released
  MutexLock lock(&mutex_);
  for (const std::string& id : ids) {
    const auto found = entries_.find(Key(owner, id));
    if (found != entries_.end()) removed.push_back(Remove(*found->second));
  }
}

TensorStore::Info TensorStore::AddResult(OwnerId owner, const TensorSpec& spec, absl::Duration ttl,
                                         Buffer memory, std::shared_ptr<StreamedCall> call) {
  auto entry = std::make_shared<Entry>();
  entry->spec = spec;
  entry->ttl = ttl;
  entry->memory = std::move(memory);
  entry->complete = true;
  entry->result = call->AddResult();
  entry->call = std::move(call);
  MutexLock lock(&mutex_);
  Insert(owner, entry);
  return InfoOf(*entry);
}

void TensorStore::DropIdleResults(absl::Duration idle) {
  const MonotonicTime limit = MonotonicClock::now() - absl::ToChronoNanoseconds(idle);
  std::vector<std::shared_ptr<Entry>> dropped;  // destroyed after the lock is released
  MutexLock lock(&mutex_);
  std::vector<Entry*> found;
  for (const auto& [key, entry] : entries_) {
    if (entry->IsResult() && entry->uses == 0 && entry->call->used() <= limit) {
      found.push_back(entry.get());
    }
  }
  for (Entry* entry : found) dropped.push_back(Remove(*entry));
}

}  // namespace warpline
