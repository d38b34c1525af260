#include "kernels/transpose/plans.h"

#include <optional>

#include "kernels/transpose/swizzle.h"

namespace warpline {
namespace {

std::int64_t RemainderOf(const void* address) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address) % kChunkBytes);
}

}  // namespace

std::shared_ptr<const TransposePlan> TransposePlans::Get(const TransposeProblem& problem,
                                                         const DeviceTraits& traits, const void* in,
                                                         const void* out) {
  decltype(plans_)::Key key{};
  const int rank = problem.shape.rank;
  for (int axis = 0; axis < rank; ++axis) {
    key[static_cast<std::size_t>(axis)] = problem.shape[axis];
    key[kMaxRank] = key[kMaxRank] << 8 | problem.perm[static_cast<std::size_t>(axis)];
  }
  key[kMaxRank + 1] = problem.row_stride;
  key[kMaxRank + 2] = std::int64_t{traits.multiprocessors} << 32 | rank << 24 |
                      static_cast<int>(problem.dtype) << 16 | RemainderOf(in) << 8 | RemainderOf(out);
  return plans_.Get(key, [&] { return std::optional(PlanTranspose(problem, traits, in, out)); });
}

}  // namespace warpline
