#include "kernels/map/packs/plan.h"

#include <algorithm>
#include <utility>

#include "kernels/fast_divisor.h"

namespace warpline {
namespace {

constexpr std::int64_t kPackBytes = 16;

bool IsAligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % kPackBytes == 0; }

PackAccess AccessOf(PackLayout x, PackLayout y) {
  const auto either = [&](PackLayout layout) { return x == layout || y == layout; };
  if (either(PackLayout::kScattered)) return PackAccess::kScattered;
  if (either(PackLayout::kRuns)) return PackAccess::kRuns;
  return x == PackLayout::kDense && y == PackLayout::kDense ? PackAccess::kDense : PackAccess::kWhole;
}

// Returns the number of elements that an operand with these strides spans, including gaps.
std::int64_t ExtentOf(const PairWalk& walk, const std::int64_t* strides) {
  std::int64_t extent = 1;
  for (int axis = 0; axis < walk.rank; ++axis) extent += (walk.dims[axis] - 1) * strides[axis];
  return extent;
}

bool IsBackward(const PairWalk& walk, const std::int64_t* strides) {
  return std::any_of(strides, strides + walk.rank, [](std::int64_t stride) { return stride < 0; });
}

// The operands of a product may be in either order.
std::optional<PairMap> PairFor(const MapProblem& map) {
  const bool may_swap = map.inputs.size() == 1 && map.nodes.size() == 2 &&
                        map.nodes[1].op == MapOp::kMultiply && map.nodes[1].operands[0] == 1;
  if (!may_swap) return PairOf(map);
  MapProblem swapped = map;
  std::swap(swapped.nodes[1].operands[0], swapped.nodes[1].operands[1]);
  return PairOf(swapped);
}

PackWalk MakePackWalk(const PairWalk& walk) {
  PackWalk packs{.walk = walk, .x = {}, .y = {}};
  for (int axis = walk.rank - 1; axis >= 0; --axis) {
    packs.x.Append(walk.dims[axis], walk.x[axis]);
    packs.y.Append(walk.dims[axis], walk.y[axis]);
  }
  return packs;
}

// `strides`: the operand's strides in the walk, walk.x or walk.y.
PackLayout LayoutOf(const PairWalk& walk, const std::int64_t* strides, std::int64_t pack) {
  const int inner = walk.rank - 1;
  if (walk.rank == 0 || (walk.rank == 1 && strides[0] == 1)) return PackLayout::kDense;
  std::int64_t dense = 1;
  bool is_dense = true, is_aligned = true;
  for (int axis = inner; axis >= 0; --axis) {
    is_dense = is_dense && strides[axis] == dense;
    dense *= walk.dims[axis];
    if (axis != inner) is_aligned = is_aligned && strides[axis] % pack == 0;
  }
  if (is_dense) return PackLayout::kDense;
  if (strides[inner] > 1) return PackLayout::kScattered;
  // In these layouts a pack does not extend beyond the innermost axis.
  if (walk.dims[inner] % pack == 0) {
    if (strides[inner] == 0) return PackLayout::kBroadcast;
    if (is_aligned) return PackLayout::kVector;
  }
  return walk.dims[inner] >= pack ? PackLayout::kRuns : PackLayout::kScattered;
}

}  // namespace

std::optional<PackPlan> PlanPacks(const MapProblem& map, const void* x, const void* y, const void* out) {
  const std::optional<PairMap> pair = PairFor(map);
  if (!pair.has_value() || !IsReal(pair->dtype) || !IsReal(pair->out_dtype)) return std::nullopt;
  const bool has_second = ReadsY(pair->op);
  if (!IsAligned(x) || !IsAligned(out) || (has_second && !IsAligned(y))) return std::nullopt;
  const PairWalk walk = PairWalk::Of(*pair);
  if (IsBackward(walk, walk.x) || IsBackward(walk, walk.y)) return std::nullopt;
  const std::int64_t pack =
      kPackBytes / static_cast<std::int64_t>(std::max(SizeOf(pair->dtype), SizeOf(pair->out_dtype)));
  PackPlan plan{.map = *pair,
                .x = LayoutOf(walk, walk.x, pack),
                .y = has_second ? LayoutOf(walk, walk.y, pack) : PackLayout::kDense,
                .access = PackAccess::kDense,
                .packs = {.walk = walk, .x = {}, .y = {}}};
  plan.access = AccessOf(plan.x, plan.y);
  const bool is_small =
      std::max({walk.count, ExtentOf(walk, walk.x), ExtentOf(walk, walk.y)}) < FastDivisor::kMax;
  if (!is_small && plan.access == PackAccess::kWhole) plan.access = PackAccess::kFar;
  if (!is_small && plan.access == PackAccess::kRuns) plan.access = PackAccess::kScattered;
  const bool needs_second = plan.access == PackAccess::kRuns || plan.access == PackAccess::kScattered;
  if (needs_second && !has_second) return std::nullopt;
  if (is_small && walk.count > 0) plan.packs = MakePackWalk(walk);
  return plan;
}

}  // namespace warpline
