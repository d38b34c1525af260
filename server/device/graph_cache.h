// A bounded map from programs to what was built for them.
#ifndef WARPLINE_SERVER_DEVICE_GRAPH_CACHE_H_
#define WARPLINE_SERVER_DEVICE_GRAPH_CACHE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "server/base/owner.h"
#include "server/observe/metrics.h"

namespace warpline {

// When room is needed, the owner that holds the most (values or bytes, whichever is short) loses its least
// recently used value. So an owner who uses many programs does not evict the values of everybody else. A
// value belongs to the owner that inserted it, even if others use it too.
//
// Belongs to one lane; not thread-safe. Counts evictions, entries and bytes. A program that is compiled
// again, for example because its plan was evicted, has a new key. Its old value stays until it is evicted.
template <typename Value>
class GraphCache {
 public:
  // The limits of the cache. The newest value stays even if it alone has more than `bytes`.
  // `entries` is at least 1.
  struct Limits {
    std::size_t entries = 1;
    std::size_t bytes = 0;
  };
  // `bytes` is a gauge of the bytes of all values, as they were given to Insert.
  GraphCache(const Limits& limits, const GraphCacheSeries& series, const Gauge& bytes)
      : limits_(limits), series_(series), bytes_gauge_(bytes) {}
  ~GraphCache() {
    series_.entries.Add(-static_cast<double>(entries_.size()));
    bytes_gauge_.Add(-static_cast<double>(bytes_));
  }
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // Returns what Find would return. The value does not become the most recently used one.
  const Value* Peek(std::uint64_t key) const {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &found->second->value;
  }

  // Returns the value, which becomes the most recently used one, or null if there is none. The pointer is
  // valid until the next Insert.
  Value* Find(std::uint64_t key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->value;
  }

  // Adds a value for a key that Find did not know. Evicts values until the limits are met.
  Value* Insert(std::uint64_t key, Value value, std::size_t bytes, OwnerId owner) {
    while (!entries_.empty() && entries_.size() >= limits_.entries) Evict(&Owned::values);
    while (!entries_.empty() && bytes_ + bytes > limits_.bytes) Evict(&Owned::bytes);
    entries_.push_front({key, std::move(value), bytes, owner});
    Owned& owned = owned_[owner];
    ++owned.values;
    owned.bytes += bytes;
    index_[key] = entries_.begin();
    series_.entries.Add(1);
    bytes_ += bytes;
    bytes_gauge_.Add(static_cast<double>(bytes));
    return &entries_.front().value;
  }

  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    std::uint64_t key = 0;
    Value value;
    std::size_t bytes = 0;
    OwnerId owner = 0;
  };
  using Entries = std::list<Entry>;

  // The values that one owner has, and their bytes.
  struct Owned {
    std::size_t values = 0, bytes = 0;
  };

  // Evicts the least recently used value of the owner that has the most of `what`, which is short.
  void Evict(std::size_t Owned::*what) {
    const OwnerId largest =
        std::max_element(owned_.begin(), owned_.end(), [what](const auto& a, const auto& b) {
          return a.second.*what < b.second.*what;
        })->first;
    auto oldest = std::prev(entries_.end());
    while (oldest->owner != largest) --oldest;
    Remove(oldest);
    series_.evictions.Add();
  }

  void Remove(typename Entries::iterator entry) {
    bytes_ -= entry->bytes;
    bytes_gauge_.Add(-static_cast<double>(entry->bytes));
    series_.entries.Add(-1);
    const auto owned = owned_.find(entry->owner);
    owned->second.bytes -= entry->bytes;
    if (--owned->second.values == 0) owned_.erase(owned);
    index_.erase(entry->key);
    entries_.erase(entry);
  }

  const Limits limits_;
  GraphCacheSeries series_;
  Gauge bytes_gauge_;
  std::size_t bytes_ = 0;
  Entries entries_;  // most recently used first
  absl::flat_hash_map<std::uint64_t, typename Entries::iterator> index_;
  absl::flat_hash_map<OwnerId, Owned> owned_;  // only owners that have values
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_GRAPH_CACHE_H_
