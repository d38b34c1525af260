// A bounded least-recently-used map from program signatures to what was built for them.
#ifndef WARPLINE_SERVER_DEVICE_GRAPH_CACHE_H_
#define WARPLINE_SERVER_DEVICE_GRAPH_CACHE_H_

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/observe/metrics.h"

namespace warpline {

// Belongs to one lane; not thread-safe. Counts hits, misses, evictions and entries.
template <typename Value>
class GraphCache {
 public:
  // `capacity` >= 1.
  GraphCache(std::size_t capacity, const GraphCacheSeries& series) : capacity_(capacity), series_(series) {}
  ~GraphCache() { series_.entries.Add(-static_cast<double>(entries_.size())); }
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // Without counting, and without making it the most recently used.
  bool Contains(std::string_view signature) const {
    return index_.contains(absl::string_view(signature.data(), signature.size()));
  }

  // The value, now the most recently used, or null. Valid until the next Insert.
  Value* Find(std::string_view signature) {
    const auto found = index_.find(absl::string_view(signature.data(), signature.size()));
    if (found == index_.end()) {
      series_.misses.Add();
      return nullptr;
    }
    series_.hits.Add();
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }

  // Adds a value that Find did not have, in place of the least recently used one if need be.
  Value* Insert(std::string_view signature, Value value) {
    if (entries_.size() == capacity_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
      series_.evictions.Add();
      series_.entries.Add(-1);
    }
    entries_.emplace_front(std::string(signature), std::move(value));
    // The key views the string in the list node, which never moves.
    index_[entries_.front().first] = entries_.begin();
    series_.entries.Add(1);
    return &entries_.front().second;
  }

  std::size_t size() const { return entries_.size(); }

 private:
  using Entries = std::list<std::pair<const std::string, Value>>;
  const std::size_t capacity_;
  GraphCacheSeries series_;
  Entries entries_;  // most recently used first
  absl::flat_hash_map<absl::string_view, typename Entries::iterator> index_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_GRAPH_CACHE_H_
