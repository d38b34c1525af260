#include "server/memory/staging_pool.h"

#include <algorithm>
#include <utility>

namespace warpline {
namespace {

// Whole tiny slots, so that the range after the slab is aligned too.
std::size_t SlabBytes(std::size_t memory, std::size_t tiny_bytes) {
  return std::min(memory, tiny_bytes) / StagingPool::kTinySlotBytes * StagingPool::kTinySlotBytes;
}

}  // namespace

StagingSlot& StagingSlot::operator=(StagingSlot&& other) noexcept {
  if (this == &other) return *this;
  Release();
  pool_ = std::exchange(other.pool_, nullptr);
  bytes_ = std::exchange(other.bytes_, {});
  block_ = other.block_;
  return *this;
}

void StagingSlot::MarkHeld() {
  // Memory in the slab is never reserved, so it need not be marked.
  if (pool_ == nullptr || pool_->IsTiny(bytes_.data())) return;
  MutexLock lock(&pool_->mutex_);
  pool_->large_.MarkHeld(block_);
}

void StagingSlot::Release() {
  if (pool_ == nullptr) return;
  std::exchange(pool_, nullptr)->ReleaseSlot(std::exchange(bytes_, {}).data(), block_);
}

StagingPool::StagingPool(std::span<std::byte> memory, std::size_t tiny_bytes, Metrics& metrics)
    : memory_(memory.first(memory.size() / kTinySlotBytes * kTinySlotBytes)),
      large_begin_(memory.data() + SlabBytes(memory_.size(), tiny_bytes)),
      metrics_(metrics),
      tiny_(SlabBytes(memory_.size(), tiny_bytes), kMinSlotBytes),
      large_(memory_.size() - SlabBytes(memory_.size(), tiny_bytes), kTinySlotBytes) {
  MutexLock lock(&mutex_);
  ShowUse();
}

std::optional<StagingPool::Pair> StagingPool::TryAcquire(std::size_t input_bytes, std::size_t output_bytes) {
  MutexLock lock(&mutex_);
  std::optional<StagingSlot> input = Take(input_bytes);
  if (!input.has_value()) return std::nullopt;
  std::optional<StagingSlot> output = Take(output_bytes);
  if (!output.has_value()) {
    Drop(*input);
    return std::nullopt;
  }
  ShowUse();
  return Pair{*std::move(input), *std::move(output)};
}

StagingPool::Claim::~Claim() {
  MutexLock lock(&pool_.mutex_);
  GiveUp();
}

std::optional<StagingPool::Pair> StagingPool::Claim::TryTake() {
  MutexLock lock(&pool_.mutex_);
  // The larger part first, because fewer places can hold it.
  const bool input_first = input_.bytes >= output_.bytes;
  Prepare(input_first ? input_ : output_, input_first ? output_ : input_);
  Prepare(input_first ? output_ : input_, input_first ? input_ : output_);
  if (input_.slot.has_value() && output_.slot.has_value()) {
    Pair pair{*std::move(input_.slot), *std::move(output_.slot)};
    pool_.ShowUse();
    return pair;
  }
  // If one part cannot even be reserved, give up the other one too, so that others can use it.
  for (const Part* part : {&input_, &output_}) {
    if (!part->slot.has_value() && !part->reserved.has_value()) {
      GiveUp();
      break;
    }
  }
  return std::nullopt;
}

void StagingPool::Claim::Prepare(Part& part, const Part& other) {
  if (part.slot.has_value()) return;
  if (part.reserved.has_value()) {
    if (!pool_.large_.TakeReserved(*part.reserved)) return;
    part.slot = pool_.SlotAt(pool_.large_begin_, part.bytes, *part.reserved);
    part.reserved.reset();
    return;
  }
  part.slot = pool_.Take(part.bytes);
  if (part.slot.has_value()) return;
  std::optional<BuddyAllocator::Block> own;
  if (other.slot.has_value() && !other.slot->bytes().empty() && !pool_.IsTiny(other.slot->bytes().data())) {
    own = other.slot->block_;
  }
  part.reserved = pool_.large_.Reserve(pool_.large_.OrderFor(part.bytes), own);
}

void StagingPool::Claim::GiveUp() {
  for (Part* part : {&input_, &output_}) {
    if (part->slot.has_value()) pool_.Drop(*part->slot);
    if (part->reserved.has_value()) pool_.large_.Unreserve(*part->reserved);
    part->slot.reset();
    part->reserved.reset();
  }
}

bool StagingPool::CanEverHold(std::size_t input_bytes, std::size_t output_bytes) const {
  // Conservative if the size of the range is not a power of two: the second block must fit into the rest of
  // the largest one. Tiny slots fit into the slab.
  std::size_t needed = 0;
  MutexLock lock(&mutex_);
  for (const std::size_t bytes : {input_bytes, output_bytes}) {
    const bool in_slab = IsTiny(bytes) && bytes <= tiny_.LargestBlockBytes();
    if (bytes > 0 && !in_slab) needed += large_.BlockBytes(large_.OrderFor(bytes));
  }
  return needed <= large_.LargestBlockBytes();
}

std::size_t StagingPool::used_bytes() const {
  MutexLock lock(&mutex_);
  return tiny_.used_bytes() + large_.used_bytes();
}

std::optional<StagingSlot> StagingPool::Take(std::size_t bytes) {
  if (bytes == 0) return StagingSlot();
  if (IsTiny(bytes)) {
    if (const auto block = tiny_.Take(tiny_.OrderFor(bytes)); block.has_value()) {
      return SlotAt(memory_.data(), bytes, *block);
    }
  }
  const auto block = large_.Take(large_.OrderFor(bytes));
  if (!block.has_value()) {
    tiny_refused_ = tiny_refused_ || IsTiny(bytes);
    return std::nullopt;
  }
  return SlotAt(large_begin_, bytes, *block);
}

void StagingPool::Return(std::byte* address, BuddyAllocator::Block block) {
  (IsTiny(address) ? tiny_ : large_).Return(block);
}

void StagingPool::Drop(StagingSlot& slot) {
  if (std::exchange(slot.pool_, nullptr) == nullptr) return;
  Return(slot.bytes_.data(), slot.block_);
}

void StagingPool::ReleaseSlot(std::byte* address, BuddyAllocator::Block block) {
  {
    MutexLock lock(&mutex_);
    Return(address, block);
    ShowUse();
    if (IsTiny(address) && !tiny_refused_) return;
    tiny_refused_ = false;
    returns_.fetch_add(1, std::memory_order_release);
  }
  MutexLock lock(&listener_mutex_);
  if (listener_) listener_();
}

void StagingPool::ShowUse() {
  const std::size_t used = tiny_.used_bytes() + large_.used_bytes();
  metrics_.pinned_bytes_used.Set(static_cast<double>(used));
  metrics_.pinned_bytes_free.Set(static_cast<double>(memory_.size() - used));
}

}  // namespace warpline
