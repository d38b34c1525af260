#include "client/src/region_allocator.h"

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace warpline::client {
namespace {

std::size_t RoundUp(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

std::size_t AlignmentOf(std::size_t bytes) {
  return bytes >= RegionAllocator::kLargeAlignment ? RegionAllocator::kLargeAlignment
                                                   : RegionAllocator::kSmallAlignment;
}

}  // namespace

RegionAllocator::RegionAllocator(std::size_t bytes) : bytes_(bytes) { AddGap(0, bytes); }

RegionAllocator::Sizes::const_iterator RegionAllocator::FindGap(std::size_t size,
                                                                std::size_t alignment) const {
  return std::find_if(sizes_.lower_bound({size, 0}), sizes_.end(), [&](const auto& gap) {
    return RoundUp(gap.second, alignment) - gap.second <= gap.first - size;
  });
}

std::optional<std::size_t> RegionAllocator::SmallestGap(std::size_t bytes) const {
  if (bytes > bytes_) return std::nullopt;
  const auto gap = FindGap(RoundUp(std::max<std::size_t>(bytes, 1), kSmallAlignment), AlignmentOf(bytes));
  if (gap == sizes_.end()) return std::nullopt;
  return gap->first;
}

absl::StatusOr<std::size_t> RegionAllocator::Allocate(std::size_t bytes) {
  const std::size_t alignment = AlignmentOf(bytes);
  // Do not round up a size that is too large: it does not fit anyway.
  const std::size_t size = bytes > bytes_ ? bytes : RoundUp(std::max<std::size_t>(bytes, 1), kSmallAlignment);
  if (const auto gap = FindGap(size, alignment); gap != sizes_.end()) {
    const auto [gap_bytes, gap_offset] = *gap;
    const std::size_t offset = RoundUp(gap_offset, alignment);
    RemoveGap(gap_offset, gap_bytes);
    if (offset > gap_offset) AddGap(gap_offset, offset - gap_offset);
    const std::size_t end = offset + size, gap_end = gap_offset + gap_bytes;
    if (end < gap_end) AddGap(end, gap_end - end);
    blocks_[offset] = {.bytes = size};
    return offset;
  }
  const std::size_t largest = sizes_.empty() ? 0 : sizes_.rbegin()->first;
  return absl::ResourceExhaustedError(absl::StrCat(
      "the region has no room for ", bytes, " bytes: of its ", bytes_, " bytes, ", free_bytes_,
      " are free, at most ", largest, " of them in one piece",
      busy_bytes_ == 0
          ? ""
          : absl::StrCat(", and ", busy_bytes_, " become free when the calls that use them have ended")));
}

void RegionAllocator::Free(std::size_t offset) {
  const auto block = blocks_.find(offset);
  if (block->second.pins == 0) return Release(block);
  block->second.freed = true;
  busy_bytes_ += block->second.bytes;
}

std::optional<std::size_t> RegionAllocator::Pin(std::size_t offset, std::size_t bytes) {
  auto block = blocks_.upper_bound(offset);
  if (block == blocks_.begin()) return std::nullopt;
  --block;
  const std::size_t within = offset - block->first;
  if (block->second.freed || within > block->second.bytes || bytes > block->second.bytes - within) {
    return std::nullopt;
  }
  ++block->second.pins;
  return block->first;
}

void RegionAllocator::Unpin(std::size_t offset) {
  const auto block = blocks_.find(offset);
  if (--block->second.pins > 0 || !block->second.freed) return;
  busy_bytes_ -= block->second.bytes;
  Release(block);
}

void RegionAllocator::Release(Blocks::iterator block) {
  std::size_t offset = block->first, bytes = block->second.bytes;
  blocks_.erase(block);
  const auto next = gaps_.find(offset + bytes);
  if (next != gaps_.end()) {
    bytes += next->second;
    RemoveGap(next->first, next->second);
  }
  const auto after = gaps_.lower_bound(offset);
  if (after != gaps_.begin()) {
    const auto [previous_offset, previous_bytes] = *std::prev(after);
    if (previous_offset + previous_bytes == offset) {
      RemoveGap(previous_offset, previous_bytes);
      offset = previous_offset;
      bytes += previous_bytes;
    }
  }
  AddGap(offset, bytes);
}

void RegionAllocator::AddGap(std::size_t offset, std::size_t bytes) {
  gaps_.emplace(offset, bytes);
  sizes_.emplace(bytes, offset);
  free_bytes_ += bytes;
}

void RegionAllocator::RemoveGap(std::size_t offset, std::size_t bytes) {
  gaps_.erase(offset);
  sizes_.erase({bytes, offset});
  free_bytes_ -= bytes;
}

}  // namespace warpline::client
