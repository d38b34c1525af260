#include "kernels/transpose/plans.h"

#include <mutex>
#include <utility>

#include "kernels/transpose/swizzle.h"

namespace warpline {
namespace {

std::uint8_t RemainderOf(const void* address) {
  return static_cast<std::uint8_t>(reinterpret_cast<std::uintptr_t>(address) % kChunkBytes);
}

}  // namespace

std::size_t TransposePlans::Hash::operator()(const Key& key) const {
  std::uint64_t hash = 0;
  const auto add = [&hash](std::int64_t value) {
    // The multiplier of SplitMix64 (Steele, Lea, Flood 2014).
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  };
  for (int axis = 0; axis < key.rank; ++axis) {
    add(key.dims[axis]);
    add(key.perm[axis]);
  }
  add(key.row_stride);
  add(key.multiprocessors);
  add(key.rank << 16 | key.dtype << 8 | key.in << 4 | key.out);
  return hash;
}

std::shared_ptr<const TransposePlan> TransposePlans::Get(const TransposeProblem& problem,
                                                         const DeviceTraits& traits, const void* in,
                                                         const void* out) {
  Key key{.perm = problem.perm,
          .row_stride = problem.row_stride,
          .rank = problem.shape.rank,
          .multiprocessors = traits.multiprocessors,
          .dtype = static_cast<std::uint8_t>(problem.dtype),
          .in = RemainderOf(in),
          .out = RemainderOf(out)};
  for (int axis = 0; axis < key.rank; ++axis) key.dims[axis] = problem.shape[axis];
  for (int axis = key.rank; axis < kMaxRank; ++axis) key.perm[axis] = 0;
  {
    std::shared_lock lock(mutex_);
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second;
  }
  auto plan = std::make_shared<const TransposePlan>(PlanTranspose(problem, traits, in, out));
  std::unique_lock lock(mutex_);
  ++made_;
  if (plans_.size() >= max_plans_) plans_.clear();
  return plans_.try_emplace(key, std::move(plan)).first->second;
}

std::int64_t TransposePlans::made() const {
  std::shared_lock lock(mutex_);
  return made_;
}

std::size_t TransposePlans::size() const {
  std::shared_lock lock(mutex_);
  return plans_.size();
}

}  // namespace warpline
