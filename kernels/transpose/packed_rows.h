// Plans how the threads of a CTA share the rows of a box in shared memory. This part of planning considers
// banks and instructions; packed_box.cc considers sectors of global memory.
#ifndef WARPLINE_KERNELS_TRANSPOSE_PACKED_ROWS_H_
#define WARPLINE_KERNELS_TRANSPOSE_PACKED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/transpose/packed_box.h"

namespace warpline {

// An axis of a box. Strides are in bytes.
struct BoxAxis {
  int axis = 0;  // index of the input axis
  std::int64_t size = 1;
  std::int64_t in_stride = 0, out_stride = 0, tile_stride = 0;
};

struct PlannedRows {
  BoxRows rows;
  double cost = 0;    // issue slots of a CTA
  int conflicts = 1;  // of a warp's first gathering access: words that one bank must deliver
};

// Plans rows of the input: the first `dense` axes form a row, the others walk over rows.
PlannedRows PlanLoads(const std::vector<BoxAxis>& axes, std::size_t dense, int element_bytes);

// Plans rows of the output, which are runs along `order` (input axes). Sets `table` to the way they are
// gathered.
PlannedRows PlanStores(const std::vector<BoxAxis>& axes, const std::vector<int>& order, int element_bytes,
                       GatherTable& table);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_PACKED_ROWS_H_
