// How the rungs of the ladder divide a reduction among threads, all alike: a pure function, so that the
// workspace they ask for and the launch agree.
#ifndef WARPLINE_KERNELS_REDUCE_RUNG_PLAN_H_
#define WARPLINE_KERNELS_REDUCE_RUNG_PLAN_H_

#include <cstddef>
#include <cstdint>

#include "kernels/reduce/canonical.h"
#include "kernels/variant.h"

namespace warpline {

inline constexpr int kReduceThreads = 256;

// A CTA computes results_per_cta results, over `chunk` of their reduced_count elements; `split` CTAs share
// the elements of one result and leave partial results, which are combined later, if split > 1.
struct RungPlan {
  // Rows: the elements of a result are neighbours; `lanes` threads (a power of two up to a warp, or the whole
  // CTA) share a result. Columns: neighbouring results are neighbours in memory; `lanes` threads stand side
  // by side, each with `columns` neighbouring results, and kReduceThreads / lanes such rows share the
  // elements.
  bool rows = true;
  int lanes = kReduceThreads;
  int columns = 1;
  int results_per_cta = 1;
  std::int64_t tiles = 0;  // CTAs / split
  std::int64_t chunk = 0;
  int split = 1;

  // For the partial results.
  std::size_t WorkspaceBytes(std::int64_t results) const;
  // For one 32-bit ticket a tile, if CTAs share tiles.
  std::size_t TicketBytes() const;
};

// Returns whether kernels are compiled for the element type. The other kernels load elements of any type, one
// at a time.
bool HasTypedKernel(const ReduceProblem& problem);
// Returns whether the rungs of the ladder are compiled for the element type. They run a problem if
// HasTypedKernel.
bool HasRungs(DType dtype);
// Returns whether the accumulators of `op` are sums: sum, mean, norm1, norm2, sumsq.
bool IsSumLike(ReduceOp op);
// Elements that one load of the problem's kernel takes.
int VectorOf(const ReduceProblem& problem);

// A bound on what cub::DeviceReduce asks for: its own answer needs a device. A segment takes a CTA, which
// leaves no partial results.
std::size_t CubWorkspaceBytes(const CanonicalReduce& reduce, const DeviceTraits& traits);

RungPlan PlanRung(const CanonicalReduce& reduce, int vector, const DeviceTraits& traits);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_RUNG_PLAN_H_
