// Keeps memory blocks that were returned, for the next request of the same size.
#ifndef WARPLINE_SERVER_DEVICE_KEPT_BLOCKS_H_
#define WARPLINE_SERVER_DEVICE_KEPT_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "server/base/mutex.h"

namespace warpline {

// Clients that send a program again and again want blocks of the same few sizes. Asking the runtime for one
// takes 3 us, as long as a small kernel.
//
// Thread-safe. Never frees a block itself.
class KeptBlocks {
 public:
  struct Block {
    void* address = nullptr;
    std::size_t bytes = 0;
  };

  KeptBlocks(std::size_t max_blocks, std::size_t max_bytes)
      : max_blocks_(max_blocks), max_bytes_(max_bytes) {}

  // Returns whether a block of exactly this size is kept.
  bool Has(std::size_t bytes) const {
    MutexLock lock(&mutex_);
    return Find(bytes) != blocks_.end();
  }

  // Takes out the block of exactly this size that was returned last.
  std::optional<Block> Take(std::size_t bytes) {
    MutexLock lock(&mutex_);
    const auto found = Find(bytes);
    if (found == blocks_.end()) return std::nullopt;
    const Block block = *found;
    blocks_.erase(found);
    bytes_ -= bytes;
    return block;
  }

  // Keeps the block. Returns the blocks that there is no room for any more: the oldest, or the block itself.
  std::vector<Block> Keep(Block block) {
    if (block.bytes > max_bytes_) return {block};
    MutexLock lock(&mutex_);
    blocks_.push_front(block);
    bytes_ += block.bytes;
    std::vector<Block> dropped;
    while (blocks_.size() > max_blocks_ || bytes_ > max_bytes_) {
      dropped.push_back(blocks_.back());
      bytes_ -= blocks_.back().bytes;
      blocks_.pop_back();
    }
    return dropped;
  }

  // Takes out all blocks.
  std::vector<Block> TakeAll() {
    MutexLock lock(&mutex_);
    bytes_ = 0;
    const std::deque<Block> all = std::exchange(blocks_, {});
    return {all.begin(), all.end()};
  }

 private:
  std::deque<Block>::const_iterator Find(std::size_t bytes) const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return std::find_if(blocks_.begin(), blocks_.end(),
                        [bytes](const Block& block) { return block.bytes == bytes; });
  }

  const std::size_t max_blocks_, max_bytes_;
  mutable Mutex mutex_;
  std::deque<Block> blocks_ ABSL_GUARDED_BY(mutex_);  // most recently returned first
  std::size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_KEPT_BLOCKS_H_
