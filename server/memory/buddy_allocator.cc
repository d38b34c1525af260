#include "server/memory/buddy_allocator.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace warpline {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

}  // namespace

BuddyAllocator::BuddyAllocator(std::size_t bytes, std::size_t unit)
    : unit_(unit),
      units_(bytes / unit),
      state_(units_, State::kInside),
      order_(units_, -1),
      next_(units_, kNone),
      previous_(units_, kNone),
      free_(std::bit_width(units_), kNone) {
  // A range of any size is divided greedily into blocks.
  for (std::size_t index = 0; index < units_;) {
    int order = static_cast<int>(std::bit_width(units_ - index)) - 1;
    if (index != 0) order = std::min(order, std::countr_zero(index));
    Link({index * unit_, order});
    index += std::size_t{1} << order;
  }
}

int BuddyAllocator::OrderFor(std::size_t bytes) const {
  return std::countr_zero(std::bit_ceil((bytes + unit_ - 1) / unit_));
}

std::size_t BuddyAllocator::LargestBlockBytes() const {
  return units_ == 0 ? 0 : BlockBytes(static_cast<int>(std::bit_width(units_)) - 1);
}

std::optional<BuddyAllocator::Block> BuddyAllocator::Take(int order) {
  auto from = static_cast<std::size_t>(order);
  while (from < free_.size() && free_[from] == kNone) ++from;
  if (from >= free_.size()) return std::nullopt;
  Block block{free_[from] * unit_, static_cast<int>(from)};
  Unlink(block);
  while (block.order > order) {
    --block.order;
    Link({block.offset + BlockBytes(block.order), block.order});
  }
  state_[Index(block)] = State::kRunning;
  order_[Index(block)] = static_cast<std::int8_t>(order);
  used_bytes_ += BlockBytes(order);
  return block;
}

void BuddyAllocator::Return(Block block) {
  used_bytes_ -= BlockBytes(block.order);
  for (Reservation& reservation : reservations_) {
    if (!Contains(reservation.block, block)) continue;
    state_[Index(block)] = State::kInside;
    reservation.parts.push_back(block);
    reservation.free_bytes += BlockBytes(block.order);
    return;
  }
  while (block.order + 1 < static_cast<int>(free_.size())) {
    const std::size_t index = Index(block);
    const std::size_t buddy = index ^ (std::size_t{1} << block.order);
    if (buddy >= units_ || state_[buddy] != State::kFree || order_[buddy] != block.order) break;
    Unlink({buddy * unit_, block.order});
    state_[index] = State::kInside;
    block = {std::min(index, buddy) * unit_, block.order + 1};
  }
  Link(block);
}

std::optional<BuddyAllocator::Block> BuddyAllocator::Reserve(int order, std::optional<Block> own) {
  std::optional<Block> best;
  std::size_t best_held = 0, best_free = 0;
  std::vector<Block> taken;
  for (const Reservation& other : reservations_) taken.push_back(other.block);
  if (own.has_value()) taken.push_back(*own);
  std::size_t reserved = 0;
  for (Block block : taken) reserved += BlockBytes(block.order);
  const bool may_wait_for_readers = reserved + BlockBytes(order) <= total_bytes() / 2;
  constexpr std::size_t kUnsuitable = std::numeric_limits<std::size_t>::max();
  const std::size_t stride = std::size_t{1} << order;
  for (std::size_t first = 0; first + stride <= units_; first += stride) {
    const Block candidate{first * unit_, order};
    if (std::any_of(taken.begin(), taken.end(),
                    [&](Block block) { return Contains(block, candidate) || Contains(candidate, block); })) {
      continue;
    }
    std::size_t held = 0, free = 0;
    for (std::size_t index = first; index < first + stride;) {
      // Skip a part of a larger block: when that block is returned, the caller can simply take from it.
      if (state_[index] == State::kInside || order_[index] > order) {
        held = kUnsuitable;
        break;
      }
      const std::size_t bytes = BlockBytes(order_[index]);
      if (state_[index] == State::kHeld) held += bytes;
      if (state_[index] == State::kFree) free += bytes;
      index += std::size_t{1} << order_[index];
    }
    if (held == kUnsuitable || (held > 0 && !may_wait_for_readers)) continue;
    if (best.has_value() && (held > best_held || (held == best_held && free <= best_free))) continue;
    best = candidate;
    best_held = held;
    best_free = free;
  }
  if (!best.has_value()) return std::nullopt;
  Reservation reservation{.block = *best, .free_bytes = best_free, .parts = {}};
  for (std::size_t index = Index(*best); index < Index(*best) + stride;) {
    const std::size_t step = std::size_t{1} << order_[index];
    if (state_[index] == State::kFree) {
      const Block part{index * unit_, order_[index]};
      Unlink(part);
      reservation.parts.push_back(part);
    }
    index += step;
  }
  reservations_.push_back(std::move(reservation));
  return best;
}

bool BuddyAllocator::TakeReserved(Block block) {
  const auto reservation = Find(block);
  if (reservation->free_bytes != BlockBytes(block.order)) return false;
  reservations_.erase(reservation);
  state_[Index(block)] = State::kRunning;
  order_[Index(block)] = static_cast<std::int8_t>(block.order);
  used_bytes_ += BlockBytes(block.order);
  return true;
}

void BuddyAllocator::Unreserve(Block block) {
  const auto reservation = Find(block);
  const std::vector<Block> parts = std::move(reservation->parts);
  reservations_.erase(reservation);
  for (Block part : parts) {
    used_bytes_ += BlockBytes(part.order);  // Return subtracts this again
    Return(part);
  }
}

std::vector<BuddyAllocator::Reservation>::iterator BuddyAllocator::Find(Block reserved) {
  return std::find_if(reservations_.begin(), reservations_.end(), [&](const Reservation& reservation) {
    return reservation.block.offset == reserved.offset && reservation.block.order == reserved.order;
  });
}

void BuddyAllocator::Link(Block block) {
  const auto index = static_cast<std::uint32_t>(Index(block));
  std::uint32_t& head = free_[static_cast<std::size_t>(block.order)];
  state_[index] = State::kFree;
  order_[index] = static_cast<std::int8_t>(block.order);
  previous_[index] = kNone;
  next_[index] = head;
  if (head != kNone) previous_[head] = index;
  head = index;
}

void BuddyAllocator::Unlink(Block block) {
  const auto index = static_cast<std::uint32_t>(Index(block));
  (previous_[index] != kNone ? next_[previous_[index]] : free_[static_cast<std::size_t>(block.order)]) =
      next_[index];
  if (next_[index] != kNone) previous_[next_[index]] = previous_[index];
  state_[index] = State::kInside;
}

}  // namespace warpline
