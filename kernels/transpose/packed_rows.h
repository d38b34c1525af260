// How the threads of a CTA share the rows of a box in shared memory: the part of planning that looks at banks
// and instructions, where packed_box.cc looks at sectors of global memory.
#ifndef WARPLINE_KERNELS_TRANSPOSE_PACKED_ROWS_H_
#define WARPLINE_KERNELS_TRANSPOSE_PACKED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/transpose/packed_box.h"

namespace warpline {

// An axis of a box; strides in bytes.
struct BoxAxis {
  int axis = 0;  // of the input
  std::int64_t size = 1;
  std::int64_t in_stride = 0, out_stride = 0, tile_stride = 0;
};

struct PlannedRows {
  BoxRows rows;
  double cost = 0;    // issue slots of a CTA
  int conflicts = 1;  // of a warp's first gathering access: how many words one bank has to deliver
};

// Rows of the input: the first `dense` axes make one, the others walk over them.
PlannedRows PlanLoads(const std::vector<BoxAxis>& axes, std::size_t dense, int element_bytes);

// Rows of the output, which are runs along `order`, axes of the input; `table` says how they are gathered.
PlannedRows PlanStores(const std::vector<BoxAxis>& axes, const std::vector<int>& order, int element_bytes,
                       GatherTable& table);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_PACKED_ROWS_H_
