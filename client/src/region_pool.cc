#include "client/src/region_pool.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

constexpr std::int64_t kPageBytes = 4096;
// Live results may use at most a quarter of the pool.
constexpr std::int64_t kKeptPart = 4;
// Larger sizes would overflow when they are rounded up, and no machine has so much memory.
constexpr std::size_t kMaxBytes = std::size_t{1} << 60;

std::int64_t RoundUp(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

std::int64_t SizeOfBlock(std::size_t bytes) {
  return RoundUp(static_cast<std::int64_t>(bytes), RegionAllocator::kSmallAlignment);
}

// Returns an owner of `memory` that subtracts `bytes` from the count when it is destroyed.
std::shared_ptr<void> Counted(std::shared_ptr<void> memory, std::shared_ptr<PoolCounts> counts,
                              std::atomic<std::int64_t> PoolCounts::*count, std::size_t bytes) {
  ((*counts).*count) += static_cast<std::int64_t>(bytes);
  void* const data = memory.get();
  return std::shared_ptr<void>(data, [memory = std::move(memory), counts = std::move(counts), count, bytes](
                                         void*) { ((*counts).*count) -= static_cast<std::int64_t>(bytes); });
}

}  // namespace

RegionPool::RegionPool(RegionClient& regions, Connection& connection, const ClientOptions& options,
                       const PoolTuning& tuning)
    : regions_client_(regions),
      tuning_(tuning),
      max_bytes_(static_cast<std::int64_t>(std::min(options.pool_bytes, kMaxBytes))),
      share_from_bytes_(options.share_from_bytes),
      always_(options.shared_memory == SharedMemory::kAlways),
      opener_(regions, connection, options, tuning) {}

absl::StatusOr<PoolBlock> RegionPool::Take(std::size_t bytes, absl::Time deadline) {
  return Take(bytes, deadline, /*extra=*/false);
}

absl::StatusOr<Array> RegionPool::Empty(DType dtype, const Shape& shape, absl::Time deadline) {
  ASSIGN_OR_RETURN(const std::size_t bytes, ByteSize({.dtype = dtype, .shape = shape}));
  if (bytes == 0) return Array::Allocate(dtype, shape, bytes);
  absl::StatusOr<PoolBlock> block = Take(bytes, deadline, /*extra=*/true);
  if (block.ok()) {
    void* const data = block->memory.get();
    return Array::Over(dtype, shape, data, bytes, std::move(block->memory));
  }
  const absl::Status& error = block.status();
  const bool has_none = absl::IsResourceExhausted(error) || absl::IsUnimplemented(error) ||
                        absl::IsPermissionDenied(error) || absl::IsFailedPrecondition(error);
  if (always_ || !has_none) return error;
  return Array::Allocate(dtype, shape, bytes);
}

std::shared_ptr<void> RegionPool::Lend(const PoolBlock& block) {
  const std::lock_guard lock(mutex_);
  Clean();
  // A lost region is ordinary memory, and no longer part of the pool.
  if (!block.region->status().ok()) return block.memory;
  // If the server has no more memory for this client, the pool cannot grow beyond the open regions.
  const std::int64_t max = opener_.crowded() ? Total() : Max();
  if (Kept() + static_cast<std::int64_t>(block.bytes) > max / kKeptPart) return nullptr;
  return Counted(block.memory, block.counts, &PoolCounts::kept, block.bytes);
}

absl::StatusOr<PoolBlock> RegionPool::Take(std::size_t bytes, absl::Time deadline, bool extra) {
  if (bytes > kMaxBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", bytes, " bytes"));
  }
  if (std::optional<PoolBlock> block = TakeFree(bytes, extra)) return *std::move(block);
  const std::unique_lock opening(opening_, absl::ToChronoTime(deadline));
  if (!opening.owns_lock()) return absl::DeadlineExceededError("a region is still being opened");
  // Another thread may have opened a region meanwhile.
  if (std::optional<PoolBlock> block = TakeFree(bytes, extra)) return *std::move(block);
  return Grow(bytes, deadline, extra);
}

std::optional<PoolBlock> RegionPool::TakeFree(std::size_t bytes, bool extra) {
  const std::lock_guard lock(mutex_);
  Clean();
  const Pooled* best = nullptr;
  std::size_t smallest = std::numeric_limits<std::size_t>::max();
  for (const Pooled& pooled : regions_) {
    const std::size_t gap = pooled.region->SmallestGap(bytes).value_or(smallest);
    if (gap >= smallest) continue;
    smallest = gap;
    best = &pooled;
  }
  if (best == nullptr) return std::nullopt;
  absl::StatusOr<PoolBlock> block = BlockOf(*best, bytes, extra);
  if (!block.ok()) return std::nullopt;  // the region was lost meanwhile
  return *std::move(block);
}

absl::StatusOr<PoolBlock> RegionPool::Grow(std::size_t bytes, absl::Time deadline, bool extra) {
  RETURN_IF_ERROR(opener_.Check(bytes, deadline));
  ASSIGN_OR_RETURN(const std::size_t wanted, SizeOfNext(bytes, extra));
  const auto least = static_cast<std::size_t>(RoundUp(static_cast<std::int64_t>(bytes), kPageBytes));
  ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> region, opener_.Open(wanted, least, deadline));
  const std::lock_guard lock(mutex_);
  regions_.push_back({std::move(region), std::make_shared<PoolCounts>()});
  return BlockOf(regions_.back(), bytes, extra);
}

absl::StatusOr<std::size_t> RegionPool::SizeOfNext(std::size_t bytes, bool extra) {
  const std::int64_t size = SizeOfBlock(bytes);
  const auto unit = static_cast<std::int64_t>(tuning_.region_bytes);
  std::int64_t total = 0, max = 0, room = 0;
  {
    const std::lock_guard lock(mutex_);
    Clean();
    total = Total();
    max = Max();
    room = max + Extra() - total;
  }
  const std::int64_t small = RoundUp(size, unit);
  if (extra) {
    // A request above the server's limit is sent anyway: the server's error gives the reason.
    const std::int64_t left = static_cast<std::int64_t>(opener_.limit()) - total;
    room = std::max({room, RoundUp(size, kPageBytes), std::min(small, left)});
  }
  const std::int64_t like_all =
      std::min(RoundUp(total, unit), static_cast<std::int64_t>(tuning_.large_region_bytes));
  for (const std::int64_t wanted : {std::max(small, like_all), small, room / kPageBytes * kPageBytes}) {
    if (size <= wanted && wanted <= room) return static_cast<std::size_t>(wanted);
  }
  const absl::Status error = absl::ResourceExhaustedError(absl::StrCat(
      size, " bytes of shared memory are needed; of ", max, " bytes (pool_bytes, or the server's limit) ",
      std::max<std::int64_t>(room, 0), " are left for new regions"));
  if (max < max_bytes_) opener_.WarnOfNoRoom(error);
  return error;
}

absl::StatusOr<PoolBlock> RegionPool::BlockOf(const Pooled& pooled, std::size_t bytes, bool extra) {
  const auto size = static_cast<std::size_t>(SizeOfBlock(bytes));
  ASSIGN_OR_RETURN(std::shared_ptr<void> memory, pooled.region->Allocate(size));
  if (extra) memory = Counted(std::move(memory), pooled.counts, &PoolCounts::extra, size);
  return PoolBlock{pooled.region, pooled.counts, std::move(memory), size};
}

void RegionPool::Clean() {
  const auto is_lost = [](const Pooled& pooled) { return !pooled.region->status().ok(); };
  if (std::erase_if(regions_, is_lost) > 0) opener_.ForgetLimit();
  const auto is_unused = [](const Pooled& pooled) {
    return pooled.region->free_bytes() == pooled.region->bytes();
  };
  while (Total() > Max() + Extra()) {
    const auto unused = std::find_if(regions_.begin(), regions_.end(), is_unused);
    if (unused == regions_.end()) return;
    regions_.erase(unused);
  }
}

std::int64_t RegionPool::Total() const {
  std::int64_t total = 0;
  for (const Pooled& pooled : regions_) total += static_cast<std::int64_t>(pooled.region->bytes());
  return total;
}

std::int64_t RegionPool::Max() const {
  const auto limit = static_cast<std::int64_t>(opener_.limit());
  return limit == 0 ? max_bytes_ : std::min(max_bytes_, limit);
}

std::int64_t RegionPool::Kept() const {
  std::int64_t kept = 0;
  for (const Pooled& pooled : regions_) kept += pooled.counts->kept;
  return kept;
}

std::int64_t RegionPool::Extra() const {
  std::int64_t extra = 0;
  for (const Pooled& pooled : regions_) extra += pooled.counts->extra;
  return extra;
}

}  // namespace warpline::client
