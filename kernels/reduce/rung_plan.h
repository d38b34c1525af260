// Divides a reduction among threads, in the same way for all rungs of the ladder. It is a pure function, so
// that the requested workspace and the launch agree.
#ifndef WARPLINE_KERNELS_REDUCE_RUNG_PLAN_H_
#define WARPLINE_KERNELS_REDUCE_RUNG_PLAN_H_

#include <cstddef>
#include <cstdint>

#include "kernels/reduce/canonical.h"
#include "kernels/variant.h"

namespace warpline {

inline constexpr int kReduceThreads = 256;

// A CTA computes results_per_cta results, over `chunk` of their reduced_count elements. If split > 1, `split`
// CTAs share the elements of one result and write partial results, which are combined later.
struct RungPlan {
  // Rows: the elements of a result are contiguous; `lanes` threads (a power of two up to a warp, or the whole
  // CTA) share a result. Columns: neighbouring results are contiguous; `lanes` threads side by side each have
  // `columns` neighbouring results, and kReduceThreads / lanes such rows of threads share the elements.
  bool rows = true;
  int lanes = kReduceThreads;
  int columns = 1;
  int results_per_cta = 1;
  std::int64_t tiles = 0;  // CTAs / split
  std::int64_t chunk = 0;
  int split = 1;

  // The bytes of the partial results.
  std::size_t WorkspaceBytes(std::int64_t results) const;
  // The bytes of one 32-bit ticket per tile, if CTAs share tiles.
  std::size_t TicketBytes() const;
};

// Returns whether kernels are compiled for the element type. Other kernels load elements of any type, one at
// a time.
bool HasTypedKernel(const ReduceProblem& problem);
// Returns whether the rungs of the ladder are compiled for the element type. They support a problem if
// HasTypedKernel is also true.
bool HasRungs(DType dtype);
// Returns whether the accumulators of `op` are sums: sum, mean, norm1, norm2, sumsq.
bool IsSumLike(ReduceOp op);
// Returns how many elements one load of the problem's kernel has.
int VectorOf(const ReduceProblem& problem);

// An upper bound of what cub::DeviceReduce asks for: its own answer needs a device. A segment uses one CTA,
// which writes no partial results.
std::size_t CubWorkspaceBytes(const CanonicalReduce& reduce, const DeviceTraits& traits);

RungPlan PlanRung(const CanonicalReduce& reduce, int vector, const DeviceTraits& traits);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_RUNG_PLAN_H_
