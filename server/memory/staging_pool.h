// The limited pool of pinned staging memory, divided into slots.
#ifndef WARPLINE_SERVER_MEMORY_STAGING_POOL_H_
#define WARPLINE_SERVER_MEMORY_STAGING_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "server/base/mutex.h"
#include "server/memory/buddy_allocator.h"
#include "server/observe/metrics.h"

namespace warpline {

class StagingPool;

// Owns a slot and returns it when destroyed, on any thread. Empty by default.
class StagingSlot {
 public:
  StagingSlot() = default;
  StagingSlot(StagingSlot&& other) noexcept { *this = std::move(other); }
  StagingSlot& operator=(StagingSlot&& other) noexcept;
  ~StagingSlot() { Release(); }
  // Returns the slot's memory. It has the requested size and is aligned to a page.
  std::span<std::byte> bytes() const { return bytes_; }
  // Says that from now on a client, not a running job, decides when the slot is returned.
  void MarkHeld();
  void Release();

 private:
  friend class StagingPool;
  StagingSlot(StagingPool* pool, std::span<std::byte> bytes, BuddyAllocator::Block block)
      : pool_(pool), bytes_(bytes), block_(block) {}
  StagingPool* pool_ = nullptr;
  std::span<std::byte> bytes_;
  BuddyAllocator::Block block_;
};

// The pool has two ranges: a slab for tiny slots, and the rest. So neither large jobs nor unread results
// block small requests. Slot sizes are powers of two, so a slot wastes less than half of itself. Nothing is
// allocated after construction. Thread-safe. The pool outlives its slots and claims; the memory outlives the
// pool.
class StagingPool {
 public:
  // Slots up to this size come from the slab, or from the rest if the slab is full.
  static constexpr std::size_t kTinySlotBytes = 128 << 10;
  static constexpr std::size_t kMinSlotBytes = 4096;

  // The first `tiny_bytes` of `memory` are the slab.
  StagingPool(std::span<std::byte> memory, std::size_t tiny_bytes, Metrics& metrics);
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  // Both slots or none: a job that held one while it waited for the other could block all others forever.
  struct Pair {
    StagingSlot input, output;
  };
  std::optional<Pair> TryAcquire(std::size_t input_bytes, std::size_t output_bytes);

  // A claim lets one job, the one that has waited longest, do more than TryAcquire: it may reserve memory
  // that is still in use. Blocks that are returned there are then not given to others one by one. Memory is
  // reserved only if running jobs will return it, or if others keep half of the pool (see
  // BuddyAllocator::Reserve): a client that does not read its results must not slow others down. A pool has
  // at most one claim at a time.
  class Claim {
   public:
    Claim(StagingPool& pool, std::size_t input_bytes, std::size_t output_bytes)
        : pool_(pool), input_{.bytes = input_bytes}, output_{.bytes = output_bytes} {}
    // Gives up the reserved memory.
    ~Claim();
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    // Returns both slots once they are available; only once. Each call reserves what it can. Call it again
    // when slots have been returned.
    std::optional<Pair> TryTake();

   private:
    struct Part {
      std::size_t bytes = 0;
      std::optional<BuddyAllocator::Block> reserved = std::nullopt;
      std::optional<StagingSlot> slot = std::nullopt;
    };
    void Prepare(Part& part, const Part& other) ABSL_EXCLUSIVE_LOCKS_REQUIRED(pool_.mutex_);
    void GiveUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(pool_.mutex_);

    StagingPool& pool_;
    Part input_, output_;
  };

  // Returns whether an idle pool could serve this pair.
  bool CanEverHold(std::size_t input_bytes, std::size_t output_bytes) const;

  // Counts the releases after which a refused request may succeed: those of large slots, and the first
  // release of a tiny slot after a tiny one was refused. Other releases are too frequent to report.
  std::uint64_t returns() const { return returns_.load(std::memory_order_acquire); }
  // The listener is called after every counted release, without the pool's lock. Null removes it. After
  // SetReleaseListener returns, the old listener is no longer running and will not be called again.
  void SetReleaseListener(std::function<void()> listener) {
    MutexLock lock(&listener_mutex_);
    listener_ = std::move(listener);
  }

  std::size_t total_bytes() const { return memory_.size(); }
  std::size_t used_bytes() const;

 private:
  friend class StagingSlot;

  bool IsTiny(const std::byte* address) const { return address < large_begin_; }
  bool IsTiny(std::size_t bytes) const { return bytes <= kTinySlotBytes; }
  // Returns an empty slot for 0 bytes; nothing if there is no memory.
  std::optional<StagingSlot> Take(std::size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StagingSlot SlotAt(std::byte* begin, std::size_t bytes, BuddyAllocator::Block block) {
    return StagingSlot(this, {begin + block.offset, bytes}, block);
  }
  void Return(std::byte* address, BuddyAllocator::Block block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns a slot that has not been handed out.
  void Drop(StagingSlot& slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseSlot(std::byte* address, BuddyAllocator::Block block);
  void ShowUse() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::span<std::byte> memory_;
  std::byte* const large_begin_;
  Metrics& metrics_;
  Mutex listener_mutex_;
  std::function<void()> listener_ ABSL_GUARDED_BY(listener_mutex_);
  mutable Mutex mutex_;
  BuddyAllocator tiny_ ABSL_GUARDED_BY(mutex_);
  BuddyAllocator large_ ABSL_GUARDED_BY(mutex_);
  bool tiny_refused_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<std::uint64_t> returns_ = 0;  // changes under the lock
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_MEMORY_STAGING_POOL_H_
