// A buddy allocator over a range of bytes that it never touches.
#ifndef WARPLINE_SERVER_MEMORY_BUDDY_ALLOCATOR_H_
#define WARPLINE_SERVER_MEMORY_BUDDY_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace warpline {

// Hands out blocks of `unit << order` bytes, each aligned to its size relative to the start of the range, and
// merges freed neighbours. All of its bookkeeping lies in vectors of its own, so that whoever writes past the
// end of a block damages data but not the allocator, and so that the range may be memory that the host cannot
// read. Not thread-safe.
//
// A block can be marked as held: its owner no longer knows when it will come back, because a client has yet
// to read it. A waiting caller can reserve a block that is still partly in use: what is freed inside is kept
// together until all of it is free. Offsets and sizes are in bytes.
class BuddyAllocator {
 public:
  // `unit` is a power of two. What does not fill a unit at the end of `bytes` is left out.
  BuddyAllocator(std::size_t bytes, std::size_t unit);

  struct Block {
    std::size_t offset = 0;
    int order = 0;
  };

  int OrderFor(std::size_t bytes) const;
  std::size_t BlockBytes(int order) const { return unit_ << order; }
  std::size_t total_bytes() const { return units_ * unit_; }
  std::size_t used_bytes() const { return used_bytes_; }
  // Returns the size of the largest block that an empty range has.
  std::size_t LargestBlockBytes() const;

  // Nothing if no block of that order is free outside of the reservations.
  std::optional<Block> Take(int order);
  void Return(Block block);
  // From now until Return nobody knows when the block comes back.
  void MarkHeld(Block block) { state_[Index(block)] = State::kHeld; }

  // Sets the block of that order aside that loses the least held memory and has the most free already, and
  // returns it. Nothing if no block qualifies: it must have no held part, unless what remains for others is
  // at least half of the range; then a held part only makes the caller wait longer. `own` is what the caller
  // has taken already: it will not come back, and is kept from others too.
  std::optional<Block> Reserve(int order, std::optional<Block> own = std::nullopt);
  // Returns whether all of a reserved block is free. If so, the block is taken, as by Take, and is no longer
  // reserved.
  bool TakeReserved(Block block);
  // Gives a reserved block up.
  void Unreserve(Block block);

 private:
  enum class State : std::uint8_t { kInside, kFree, kRunning, kHeld };  // of the unit where a block starts
  struct Reservation {
    Block block;
    std::size_t free_bytes = 0;
    std::vector<Block> parts;  // that are free; in no free list
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
  std::vector<Reservation> reservations_;       // two at most: an input and an output
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_MEMORY_BUDDY_ALLOCATOR_H_
