// Plans how a map of one operation is cut into packs of neighbouring elements. It is separate from the
// kernels (packs.cuh) so that host tests can check it.
//
// A pack is 16 bytes of the wider type of input and result, and the same number of elements of the other. So
// one side is accessed in whole vectors, the other in narrower ones that are coalesced across a warp.
#ifndef WARPLINE_KERNELS_MAP_PACKS_PLAN_H_
#define WARPLINE_KERNELS_MAP_PACKS_PLAN_H_

#include <cstdint>
#include <optional>

#include "kernels/axis_walk.h"
#include "kernels/map/packs/walk.h"
#include "kernels/map/pair.h"

namespace warpline {

// How the elements of a pack lie in an operand. Packs begin at multiples of their size in the dense result.
// As wide as an address, so that operands of kernels have no bytes that nobody writes
// (gpu/repointed_graph.h).
enum class PackLayout : std::int64_t {
  kDense,      // as in the result
  kVector,     // side by side, aligned as a pack
  kBroadcast,  // one element for all
  kRuns,       // side by side, or one element, up to the end of a row, and so from where the next one begins
  kScattered,  // found one by one
};

// The lookups that the operands of a launch need. kDense: none, both are kDense. kWhole: where a pack begins.
// kRuns: also where its row ends. kScattered: where each of its elements is. kFar is kWhole with offsets that
// need 64 bits.
enum class PackAccess : std::uint8_t { kDense, kWhole, kFar, kRuns, kScattered };

// A walk as kernels take it: where offsets have 31 bits, that of each operand, too.
struct PackWalk {
  PairWalk walk;
  AxisWalk x, y;
};

struct PackPlan {
  PairMap map;
  PackLayout x = PackLayout::kDense, y = PackLayout::kDense;
  PackAccess access = PackAccess::kDense;
  PackWalk packs;
};

// Nothing where packs gain nothing: if the map is none of one operation, if an address is not a multiple of
// 16 bytes, or, with one operand, if its rows are neither dense nor multiples of a pack. `y` counts only for
// operations that read it.
std::optional<PackPlan> PlanPacks(const MapProblem& map, const void* x, const void* y, const void* out);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_MAP_PACKS_PLAN_H_
