#include "kernels/reduce/canonical.h"

#include <algorithm>
#include <utility>

namespace warpline {
namespace {

// Columns are processed in runs of the innermost axis. This avoids waits only if runs are long.
void PutLongestLast(AxisList& axes) {
  int longest = axes.rank - 1;
  for (int axis = 0; axis < axes.rank; ++axis) {
    if (axes.dims[axis] > axes.dims[longest]) longest = axis;
  }
  for (int axis = longest; axis + 1 < axes.rank; ++axis) {
    std::swap(axes.dims[axis], axes.dims[axis + 1]);
    std::swap(axes.strides[axis], axes.strides[axis + 1]);
  }
}

}  // namespace

CanonicalReduce Canonicalize(const ReduceProblem& problem) {
  CanonicalReduce canonical;
  AxisList* open = nullptr;  // the list of the previous, inner axis
  const Strides strides = RowMajorStrides(problem.shape, problem.row_stride);
  for (int axis = problem.shape.rank - 1; axis >= 0; --axis) {  // appends innermost first; reversed below
    const std::int64_t dim = problem.shape[axis];
    if (dim == 1) continue;
    AxisList* list = problem.IsReduced(axis) ? &canonical.reduced : &canonical.kept;
    const int last = list->rank - 1;
    if (list == open && strides[axis] == list->dims[last] * list->strides[last]) {
      list->dims[last] *= dim;
    } else {
      list->dims[list->rank] = dim;
      list->strides[list->rank++] = strides[axis];
      open = list;
    }
  }
  for (AxisList* list : {&canonical.kept, &canonical.reduced}) {
    std::reverse(list->dims, list->dims + list->rank);
    std::reverse(list->strides, list->strides + list->rank);
  }
  if (!IsArg(problem.op) && !canonical.InnermostReduced()) PutLongestLast(canonical.reduced);
  canonical.results = canonical.kept.Count();
  canonical.reduced_count = canonical.reduced.Count();
  return canonical;
}

}  // namespace warpline
