#include "kernels/reduce/canonical.h"

#include <algorithm>

namespace warpline {

CanonicalReduce Canonicalize(const ReduceProblem& problem) {
  CanonicalReduce canonical;
  AxisList* open = nullptr;  // the list that the axis just inside this one went to
  std::int64_t stride = 1;
  for (int axis = problem.shape.rank - 1; axis >= 0; --axis) {  // appends innermost first, turned below
    const std::int64_t dim = problem.shape[axis];
    if (dim == 1) continue;
    AxisList* list = problem.IsReduced(axis) ? &canonical.reduced : &canonical.kept;
    if (list == open) {
      list->dims[list->rank - 1] *= dim;
    } else {
      list->dims[list->rank] = dim;
      list->strides[list->rank++] = stride;
      open = list;
    }
    stride *= dim;
  }
  for (AxisList* list : {&canonical.kept, &canonical.reduced}) {
    std::reverse(list->dims, list->dims + list->rank);
    std::reverse(list->strides, list->strides + list->rank);
  }
  canonical.results = canonical.kept.Count();
  canonical.reduced_count = canonical.reduced.Count();
  return canonical;
}

}  // namespace warpline
