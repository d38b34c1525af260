#include "server/memory/staging_pool.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace warpline {
namespace {

// The smallest order whose blocks hold this many bytes; a block of order n is kMinSlotBytes << n.
int OrderFor(std::size_t bytes) {
  const std::size_t pages = (bytes + StagingPool::kMinSlotBytes - 1) / StagingPool::kMinSlotBytes;
  return std::countr_zero(std::bit_ceil(pages));
}

std::size_t BlockBytes(int order) { return StagingPool::kMinSlotBytes << order; }

}  // namespace

StagingSlot& StagingSlot::operator=(StagingSlot&& other) noexcept {
  if (this == &other) return *this;
  Release();
  pool_ = std::exchange(other.pool_, nullptr);
  bytes_ = std::exchange(other.bytes_, {});
  order_ = other.order_;
  return *this;
}

void StagingSlot::Release() {
  if (pool_ == nullptr) return;
  std::exchange(pool_, nullptr)->ReleaseSlot(std::exchange(bytes_, {}).data(), order_);
}

StagingPool::StagingPool(std::span<std::byte> memory, Metrics& metrics)
    : memory_(memory.first(memory.size() / kMinSlotBytes * kMinSlotBytes)), metrics_(metrics) {
  MutexLock lock(&mutex_);
  const std::size_t pages = memory_.size() / kMinSlotBytes;
  free_.resize(std::bit_width(pages), nullptr);
  free_order_.resize(pages, -1);
  // Blocks are aligned to their size relative to the start, so a region of any size is cut greedily.
  for (std::size_t page = 0; page < pages;) {
    int order = static_cast<int>(std::bit_width(pages - page)) - 1;
    if (page != 0) order = std::min(order, std::countr_zero(page));
    Link(memory_.data() + page * kMinSlotBytes, order);
    page += std::size_t{1} << order;
  }
  metrics_.pinned_bytes_free.Set(static_cast<double>(memory_.size()));
}

std::optional<StagingPool::Pair> StagingPool::TryAcquire(std::size_t input_bytes, std::size_t output_bytes) {
  const int input_order = OrderFor(input_bytes);
  const int output_order = OrderFor(output_bytes);
  MutexLock lock(&mutex_);
  auto* input = input_bytes > 0 ? static_cast<std::byte*>(Take(input_order)) : nullptr;
  if (input_bytes > 0 && input == nullptr) return std::nullopt;
  auto* output = output_bytes > 0 ? static_cast<std::byte*>(Take(output_order)) : nullptr;
  if (output_bytes > 0 && output == nullptr) {
    if (input != nullptr) Return(input, input_order);
    return std::nullopt;
  }
  Pair pair;
  if (input != nullptr) pair.input = StagingSlot(this, {input, input_bytes}, input_order);
  if (output != nullptr) pair.output = StagingSlot(this, {output, output_bytes}, output_order);
  return pair;
}

bool StagingPool::CanEverHold(std::size_t input_bytes, std::size_t output_bytes) const {
  // Conservative for regions that are no power of two: the second block is looked for in what remains of
  // the largest.
  const std::size_t pages = memory_.size() / kMinSlotBytes;
  if (pages == 0) return input_bytes == 0 && output_bytes == 0;
  const std::size_t largest = BlockBytes(static_cast<int>(std::bit_width(pages)) - 1);
  const std::size_t input = input_bytes > 0 ? BlockBytes(OrderFor(input_bytes)) : 0;
  const std::size_t output = output_bytes > 0 ? BlockBytes(OrderFor(output_bytes)) : 0;
  return input + output <= largest;
}

std::size_t StagingPool::used_bytes() const {
  MutexLock lock(&mutex_);
  return used_bytes_;
}

void* StagingPool::Take(int order) {
  std::size_t from = static_cast<std::size_t>(order);
  while (from < free_.size() && free_[from] == nullptr) ++from;
  if (from >= free_.size()) return nullptr;
  auto* block = reinterpret_cast<std::byte*>(free_[from]);
  Unlink(free_[from], static_cast<int>(from));
  while (static_cast<int>(from) > order) {
    --from;
    Link(block + BlockBytes(static_cast<int>(from)), static_cast<int>(from));
  }
  used_bytes_ += BlockBytes(order);
  metrics_.pinned_bytes_used.Set(static_cast<double>(used_bytes_));
  metrics_.pinned_bytes_free.Set(static_cast<double>(memory_.size() - used_bytes_));
  return block;
}

void StagingPool::Return(std::byte* block, int order) {
  used_bytes_ -= BlockBytes(order);
  metrics_.pinned_bytes_used.Set(static_cast<double>(used_bytes_));
  metrics_.pinned_bytes_free.Set(static_cast<double>(memory_.size() - used_bytes_));
  for (; order + 1 < static_cast<int>(free_.size()); ++order) {
    const std::size_t index = IndexOf(block);
    const std::size_t buddy = index ^ (std::size_t{1} << order);
    if (buddy >= free_order_.size() || free_order_[buddy] != order) break;
    Unlink(reinterpret_cast<FreeBlock*>(memory_.data() + buddy * kMinSlotBytes), order);
    block = memory_.data() + std::min(index, buddy) * kMinSlotBytes;
  }
  Link(block, order);
}

void StagingPool::Link(std::byte* block, int order) {
  auto* head = new (block) FreeBlock{nullptr, free_[order]};
  if (head->next != nullptr) head->next->previous = head;
  free_[order] = head;
  free_order_[IndexOf(block)] = static_cast<std::int8_t>(order);
}

void StagingPool::Unlink(FreeBlock* block, int order) {
  (block->previous != nullptr ? block->previous->next : free_[order]) = block->next;
  if (block->next != nullptr) block->next->previous = block->previous;
  free_order_[IndexOf(block)] = -1;
}

void StagingPool::ReleaseSlot(std::byte* block, int order) {
  {
    MutexLock lock(&mutex_);
    Return(block, order);
  }
  MutexLock lock(&listener_mutex_);
  if (listener_) listener_();
}

}  // namespace warpline
