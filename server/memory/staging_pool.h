// The bounded pool of pinned staging memory, cut into slots.
//
// A buddy allocator over one region registered at start: slot sizes are powers of two from kMinSlotBytes, so
// a slot wastes less than half of itself, and freed neighbours merge again. Nothing is allocated afterwards.
#ifndef WARPLINE_SERVER_MEMORY_STAGING_POOL_H_
#define WARPLINE_SERVER_MEMORY_STAGING_POOL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "server/base/mutex.h"
#include "server/observe/metrics.h"

namespace warpline {

class StagingPool;

// Owns a slot; gives it back when destroyed, on any thread. Empty by default.
class StagingSlot {
 public:
  StagingSlot() = default;
  StagingSlot(StagingSlot&& other) noexcept { *this = std::move(other); }
  StagingSlot& operator=(StagingSlot&& other) noexcept;
  ~StagingSlot() { Release(); }
  // As long as was asked for; the start is aligned to a page.
  std::span<std::byte> bytes() const { return bytes_; }
  void Release();

 private:
  friend class StagingPool;
  StagingSlot(StagingPool* pool, std::span<std::byte> bytes, int order)
      : pool_(pool), bytes_(bytes), order_(order) {}
  StagingPool* pool_ = nullptr;
  std::span<std::byte> bytes_;
  int order_ = 0;
};

// Thread-safe. Outlives its slots; `memory` outlives the pool.
class StagingPool {
 public:
  static constexpr std::size_t kMinSlotBytes = 4096;

  StagingPool(std::span<std::byte> memory, Metrics& metrics);
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  // Both slots or none: a job that held one while it waited for the other could block all others for ever.
  struct Pair {
    StagingSlot input, output;
  };
  std::optional<Pair> TryAcquire(std::size_t input_bytes, std::size_t output_bytes);

  // Whether an idle pool could serve this pair.
  bool CanEverHold(std::size_t input_bytes, std::size_t output_bytes) const;

  // Called after every release, outside of the pool's lock. Null: no more; not called once this has returned.
  void SetReleaseListener(std::function<void()> listener) {
    MutexLock lock(&listener_mutex_);
    listener_ = std::move(listener);
  }

  std::size_t total_bytes() const { return memory_.size(); }
  std::size_t used_bytes() const;

 private:
  friend class StagingSlot;
  struct FreeBlock {  // lies in the free block itself
    FreeBlock* previous;
    FreeBlock* next;
  };

  void* Take(int order) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Return(std::byte* block, int order) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Link(std::byte* block, int order) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlink(FreeBlock* block, int order) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseSlot(std::byte* block, int order);
  std::size_t IndexOf(const void* block) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(block) - memory_.data()) / kMinSlotBytes;
  }

  const std::span<std::byte> memory_;
  Metrics& metrics_;
  Mutex listener_mutex_;
  std::function<void()> listener_ ABSL_GUARDED_BY(listener_mutex_);
  mutable Mutex mutex_;
  std::vector<FreeBlock*> free_ ABSL_GUARDED_BY(mutex_);         // heads, by order
  std::vector<std::int8_t> free_order_ ABSL_GUARDED_BY(mutex_);  // by index of the first page; -1: not free
  std::size_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_MEMORY_STAGING_POOL_H_
