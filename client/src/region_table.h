// The table that tells where memory of this process lies in a region.
#ifndef WARPLINE_CLIENT_SRC_REGION_TABLE_H_
#define WARPLINE_CLIENT_SRC_REGION_TABLE_H_

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

namespace warpline::client {

class SharedRegion;

// The regions of one client, by their addresses. It keeps none of them. Thread-safe, and nearly free while
// there are none.
class RegionTable {
 public:
  // `data` to `data + bytes` overlaps no other.
  void Add(const std::byte* data, std::size_t bytes, std::weak_ptr<SharedRegion> region);
  void Remove(const std::byte* data);

  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
  // The region in which all of it lies; null if there is none.
  std::shared_ptr<SharedRegion> Find(const void* data, std::size_t bytes) const;
  std::vector<std::shared_ptr<SharedRegion>> All() const;

 private:
  struct Entry {
    std::size_t bytes;
    std::weak_ptr<SharedRegion> region;
  };

  std::atomic<std::size_t> count_ = 0;
  mutable std::shared_mutex mutex_;
  std::map<const std::byte*, Entry> entries_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_REGION_TABLE_H_
