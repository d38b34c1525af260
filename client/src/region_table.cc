#include "client/src/region_table.h"

#include <mutex>
#include <utility>

namespace warpline::client {

void RegionTable::Add(const std::byte* data, std::size_t bytes, std::weak_ptr<SharedRegion> region) {
  const std::unique_lock lock(mutex_);
  entries_.insert_or_assign(data, Entry{bytes, std::move(region)});
  count_.store(entries_.size(), std::memory_order_release);
}

void RegionTable::Remove(const std::byte* data) {
  const std::unique_lock lock(mutex_);
  entries_.erase(data);
  count_.store(entries_.size(), std::memory_order_release);
}

std::shared_ptr<SharedRegion> RegionTable::Find(const void* data, std::size_t bytes) const {
  if (empty()) return nullptr;
  const auto* const begin = static_cast<const std::byte*>(data);
  const std::shared_lock lock(mutex_);
  auto entry = entries_.upper_bound(begin);
  if (entry == entries_.begin()) return nullptr;
  --entry;
  const auto offset = static_cast<std::size_t>(begin - entry->first);
  const std::size_t size = entry->second.bytes;
  if (offset > size || bytes > size - offset) return nullptr;
  return entry->second.region.lock();
}

std::vector<std::shared_ptr<SharedRegion>> RegionTable::All() const {
  std::vector<std::shared_ptr<SharedRegion>> all;
  const std::shared_lock lock(mutex_);
  for (const auto& [data, entry] : entries_) {
    if (auto region = entry.region.lock()) all.push_back(std::move(region));
  }
  return all;
}

}  // namespace warpline::client
