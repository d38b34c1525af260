// The pool of a client: regions that are opened on demand and reused.
#ifndef WARPLINE_CLIENT_SRC_REGION_POOL_H_
#define WARPLINE_CLIENT_SRC_REGION_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/connection.h"
#include "client/src/region_client.h"
#include "client/src/region_opener.h"
#include "client/src/shared_region.h"
#include "warpline/array.h"
#include "warpline/options.h"

namespace warpline::client {

// Counts the bytes of one region that the caller uses. Arrays may outlive the pool.
struct PoolCounts {
  std::atomic<std::int64_t> kept = 0;   // used by results
  std::atomic<std::int64_t> extra = 0;  // used by arrays of Client::Empty
};

// A block of a pool. It is free again when its last owner is gone and no call uses it.
struct PoolBlock {
  std::shared_ptr<SharedRegion> region;
  std::shared_ptr<PoolCounts> counts;
  std::shared_ptr<void> memory;
  std::size_t bytes = 0;
};

// Thread-safe. Blocks, and arrays in them, may outlive the pool.
class RegionPool {
 public:
  // `regions` and `connection` must outlive this.
  RegionPool(RegionClient& regions, Connection& connection, const ClientOptions& options,
             const PoolTuning& tuning = {});

  // True if large arrays must never travel in messages.
  bool always() const { return always_; }
  std::size_t share_from_bytes() const { return share_from_bytes_; }
  const RegionTable& table() const { return regions_client_.table(); }

  // Takes a block of at least `bytes`, above 0. Opens a region if there is no room. Returns
  // ResourceExhausted, with the figures, if the limits do not allow that, or DeadlineExceeded. Other errors
  // are those of RegionOpener.
  absl::StatusOr<PoolBlock> Take(std::size_t bytes, absl::Time deadline);
  // Implements Client::Empty.
  absl::StatusOr<Array> Empty(DType dtype, const Shape& shape, absl::Time deadline);
  // Returns an owner of the block's memory, for an array that the caller gets. Null if results already use
  // too much of the pool.
  std::shared_ptr<void> Lend(const PoolBlock& block);

  std::string TakeWarning() { return opener_.TakeWarning(); }

 private:
  struct Pooled {
    std::shared_ptr<SharedRegion> region;
    std::shared_ptr<PoolCounts> counts;
  };

  absl::StatusOr<PoolBlock> Take(std::size_t bytes, absl::Time deadline, bool extra);
  // Takes a block from the open regions; nothing if there is no room. Called without mutex_.
  std::optional<PoolBlock> TakeFree(std::size_t bytes, bool extra);
  // Opens a region, and takes a block from it. Called with opening_ held.
  absl::StatusOr<PoolBlock> Grow(std::size_t bytes, absl::Time deadline, bool extra);
  // Size of the next region, at least `bytes`. Called with opening_ held.
  absl::StatusOr<std::size_t> SizeOfNext(std::size_t bytes, bool extra);

  // The following are called with mutex_ held.
  static absl::StatusOr<PoolBlock> BlockOf(const Pooled& pooled, std::size_t bytes, bool extra);
  // Drops lost regions, and unused regions above the limit.
  void Clean();
  std::int64_t Total() const;  // bytes of all regions
  std::int64_t Max() const;    // limit of Total, excluding the extra bytes
  std::int64_t Kept() const;
  std::int64_t Extra() const;

  RegionClient& regions_client_;
  const PoolTuning tuning_;
  const std::int64_t max_bytes_;
  const std::size_t share_from_bytes_;
  const bool always_;

  std::mutex mutex_;  // held only briefly
  std::vector<Pooled> regions_;
  std::timed_mutex opening_;  // one thread at a time opens a region
  RegionOpener opener_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_REGION_POOL_H_
