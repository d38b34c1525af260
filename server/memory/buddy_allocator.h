// A buddy allocator for a range of bytes that it never accesses.
#ifndef WARPLINE_SERVER_MEMORY_BUDDY_ALLOCATOR_H_
#define WARPLINE_SERVER_MEMORY_BUDDY_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace warpline {

// Allocates blocks of `unit << order` bytes, each aligned to its size relative to the start of the range, and
// merges freed neighbours. All of its data is in its own vectors. So writing past the end of a block damages
// data but not the allocator, and the range may be memory that the host cannot read. Not thread-safe.
//
// A block can be marked as held: its return is unpredictable, because a client has yet to read it. A waiting
// caller can reserve a block that is still partly in use: parts of it that are freed are kept together until
// all of it is free. Offsets and sizes are in bytes.
class BuddyAllocator {
 public:
  // `unit` is a power of two. A rest of `bytes` that is smaller than a unit is not used.
  BuddyAllocator(std::size_t bytes, std::size_t unit);

  struct Block {
    std::size_t offset = 0;
    int order = 0;
  };

  int OrderFor(std::size_t bytes) const;
  std::size_t BlockBytes(int order) const { return unit_ << order; }
  std::size_t total_bytes() const { return units_ * unit_; }
  std::size_t used_bytes() const { return used_bytes_; }
  // Returns the size of the largest block of an empty range.
  std::size_t LargestBlockBytes() const;

  // Returns nothing if no block of that order is free outside the reservations.
  std::optional<Block> Take(int order);
  void Return(Block block);
  // From now until Return it is unknown when the block will be returned.
  void MarkHeld(Block block) { state_[Index(block)] = State::kHeld; }

  // Reserves and returns a block of that order: the one with the fewest held bytes, and among equal ones the
  // one with the most free bytes. Returns nothing if no block qualifies. A block with held parts qualifies
  // only if at least half of the range is left for others; then the held parts only make the caller wait
  // longer. `own` is a block that the caller has already taken: it will not be returned, and counts as kept
  // from others too.
  std::optional<Block> Reserve(int order, std::optional<Block> own = std::nullopt);
  // Returns whether a reserved block is completely free. If so, the block is then taken, as by Take, and no
  // longer reserved.
  bool TakeReserved(Block block);
  // Gives up a reserved block.
  void Unreserve(Block block);

 private:
  enum class State : std::uint8_t { kInside, kFree, kRunning, kHeld };  // of a unit
  struct Reservation {
    Block block;
    std::size_t free_bytes = 0;
    std::vector<Block> parts;  // free parts, which are in no free list
  };

  std::size_t Index(Block block) const { return block.offset / unit_; }
  bool Contains(Block outer, Block inner) const {
    return inner.offset >= outer.offset && inner.offset < outer.offset + BlockBytes(outer.order);
  }
  void Link(Block block);
  void Unlink(Block block);
  std::vector<Reservation>::iterator Find(Block reserved);

  const std::size_t unit_;
  const std::size_t units_;
  std::size_t used_bytes_ = 0;
  // These four are indexed by the unit at which a block starts.
  std::vector<State> state_;
  std::vector<std::int8_t> order_;
  std::vector<std::uint32_t> next_, previous_;  // of free blocks of the same order
  std::vector<std::uint32_t> free_;             // heads, by order
  std::vector<Reservation> reservations_;       // at most two: an input and an output
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_MEMORY_BUDDY_ALLOCATOR_H_
