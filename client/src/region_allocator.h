// Tracks which parts of a region are in use: blocks, which calls can pin.
#ifndef WARPLINE_CLIENT_SRC_REGION_ALLOCATOR_H_
#define WARPLINE_CLIENT_SRC_REGION_ALLOCATOR_H_

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"

namespace warpline::client {

// Allocates blocks in a range of `bytes` bytes. It knows only offsets; its own data lies outside the range.
// It takes the smallest gap that is large enough, and merges neighbouring gaps. A block that is freed while a
// call pins it becomes a gap when the last pin is gone. Not thread-safe.
class RegionAllocator {
 public:
  // The alignment of blocks in bytes. Rows of a matrix are read fastest if they begin on a cache line and on
  // a page. Small blocks use a smaller alignment, because each would waste a page.
  static constexpr std::size_t kLargeAlignment = 4096;
  static constexpr std::size_t kSmallAlignment = 256;

  explicit RegionAllocator(std::size_t bytes);

  // Returns the offset of a new block, which has at least one byte. ResourceExhausted, with the sizes, if no
  // gap is large enough.
  absl::StatusOr<std::size_t> Allocate(std::size_t bytes);
  // Returns the size of the gap that Allocate would use; nothing if no gap is large enough.
  std::optional<std::size_t> SmallestGap(std::size_t bytes) const;
  // `offset` must be that of a block which was not freed yet.
  void Free(std::size_t offset);

  // Pins the block that contains all of [offset, offset + bytes), and returns the offset of the block.
  // Returns nothing if no block contains the whole range.
  std::optional<std::size_t> Pin(std::size_t offset, std::size_t bytes);
  // `block` is what Pin returned. One Unpin for each Pin.
  void Unpin(std::size_t block);

  std::size_t bytes() const { return bytes_; }
  // The bytes in gaps.
  std::size_t free_bytes() const { return free_bytes_; }
  // The bytes in blocks that were freed but are still pinned.
  std::size_t busy_bytes() const { return busy_bytes_; }

 private:
  struct Block {
    std::size_t bytes = 0;
    int pins = 0;
    bool freed = false;
  };
  using Blocks = std::map<std::size_t, Block>;
  using Sizes = std::set<std::pair<std::size_t, std::size_t>>;

  // Returns the smallest gap with room for a block of `size` bytes, at this alignment.
  Sizes::const_iterator FindGap(std::size_t size, std::size_t alignment) const;

  void AddGap(std::size_t offset, std::size_t bytes);
  void RemoveGap(std::size_t offset, std::size_t bytes);
  void Release(Blocks::iterator block);

  const std::size_t bytes_;
  std::size_t free_bytes_ = 0, busy_bytes_ = 0;
  Blocks blocks_;                            // by offset
  std::map<std::size_t, std::size_t> gaps_;  // bytes, by offset
  Sizes sizes_;                              // bytes and offset of each gap
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_REGION_ALLOCATOR_H_
