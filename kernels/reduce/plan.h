// How `warp_shuffle` divides a reduction among threads: a pure function, so that the workspace it asks for
// and the launch agree.
#ifndef WARPLINE_KERNELS_REDUCE_PLAN_H_
#define WARPLINE_KERNELS_REDUCE_PLAN_H_

#include <cstddef>
#include <cstdint>

#include "kernels/reduce/canonical.h"
#include "kernels/variant.h"

namespace warpline {

inline constexpr int kReduceThreads = 256;

// A CTA computes results_per_cta results, over `chunk` of their reduced_count elements; `split` CTAs share
// the elements of one result and leave partial results, which a second kernel combines, if split > 1.
struct ReducePlan {
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

  std::size_t WorkspaceBytes(std::int64_t results) const;
};

// Whether kernels are compiled for the element type. The others load elements of any type, one at a time.
bool HasTypedKernel(const ReduceProblem& problem);
// Elements that one load of the problem's kernel takes.
int VectorOf(const ReduceProblem& problem);

ReducePlan PlanReduce(const CanonicalReduce& reduce, int vector, const DeviceTraits& traits);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_PLAN_H_
