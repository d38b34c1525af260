// A table that maps memory of this process to regions.
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

// The regions of one client, by address. It does not keep regions alive. Thread-safe, and nearly free while
// it is empty.
class RegionTable {
 public:
  // [data, data + bytes) must not overlap another region.
  void Add(const std::byte* data, std::size_t bytes, std::weak_ptr<SharedRegion> region);
  void Remove(const std::byte* data);

  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
  // Returns the region that contains the whole range; null if there is none.
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
