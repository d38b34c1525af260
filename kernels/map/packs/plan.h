// Plans how a map of one operation is cut into packs of neighbouring elements. Separate from the kernels
// (packs.cuh), so that host tests can check it.
//
// A pack has 16 bytes of the wider of the input and result types, and the same number of elements of the
// other type. So one side is accessed in whole vectors, the other in narrower ones that are coalesced across
// a warp.
#ifndef WARPLINE_KERNELS_MAP_PACKS_PLAN_H_
#define WARPLINE_KERNELS_MAP_PACKS_PLAN_H_

#include <cstdint>
#include <optional>

#include "kernels/axis_walk.h"
#include "kernels/map/packs/walk.h"
#include "kernels/map/pair.h"

namespace warpline {

// The layout of a pack's elements in an operand. Packs begin at multiples of their size in the dense result.
// The enumeration is as wide as an address, so that kernel arguments have no uninitialised bytes
// (gpu/repointed_graph.h).
enum class PackLayout : std::int64_t {
  kDense,      // same as in the result
  kVector,     // contiguous, aligned to a pack
  kBroadcast,  // one element for all
  kRuns,  // contiguous, or one element, up to the end of a row; then the same from the start of the next row
  kScattered,  // located one by one
};

// The lookups that the operands of a launch need. kDense: none, both operands are kDense. kWhole: the
// position where a pack begins. kRuns: also the end of its row. kScattered: the position of each element.
// kFar is kWhole with 64-bit offsets.
enum class PackAccess : std::uint8_t { kDense, kWhole, kFar, kRuns, kScattered };

// A walk in the form that kernels use. If offsets fit into 31 bits, it also has the walk of each operand.
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

// Returns nothing if packs have no advantage: if the map does not have one operation, if an address is not a
// multiple of 16 bytes, or, with one operand, if its rows are neither dense nor multiples of a pack. `y` is
// used only for operations that read it.
std::optional<PackPlan> PlanPacks(const MapProblem& map, const void* x, const void* y, const void* out);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_MAP_PACKS_PLAN_H_
