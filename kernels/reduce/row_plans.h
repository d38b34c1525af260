// Plans for reductions whose elements are contiguous: kRows, kRuns and kPackedRows of vector_plan.h.
#ifndef WARPLINE_KERNELS_REDUCE_ROW_PLANS_H_
#define WARPLINE_KERNELS_REDUCE_ROW_PLANS_H_

#include <cstdint>

#include "kernels/reduce/canonical.h"
#include "kernels/reduce/vector_plan.h"

namespace warpline {

// True for short rows. If a warp took them directly from global memory, it would have only a few vectors per
// lane. Waiting for those and combining the lanes would take longer than copying the rows.
bool IsPacked(const CanonicalReduce& reduce, std::int64_t row_bytes, bool aligned_base);
// Plans for kPackedRows, of rows that IsPacked accepts.
void PlanPackedRows(const CanonicalReduce& reduce, std::int64_t row_bytes, int multiprocessors,
                    VectorPlan* plan);

// Plans for kRows, or for kRuns if rows consist of unaligned runs.
void PlanRows(const ReduceProblem& problem, const CanonicalReduce& reduce, bool aligned_base,
              int multiprocessors, VectorPlan* plan);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_ROW_PLANS_H_
