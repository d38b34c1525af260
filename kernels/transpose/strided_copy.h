// The axes that a copy between two layouts walks over. They are plain C arrays, because device code cannot
// index a std::array.
#ifndef WARPLINE_KERNELS_TRANSPOSE_STRIDED_COPY_H_
#define WARPLINE_KERNELS_TRANSPOSE_STRIDED_COPY_H_

#include <cstdint>

#include "kernels/shape.h"

namespace warpline {

// A walk over up to kMaxRank axes, the last one fastest. Strides are in elements.
struct StridedCopy {
  int rank = 0;
  std::int64_t dims[kMaxRank] = {};
  std::int64_t in_strides[kMaxRank] = {};
  std::int64_t out_strides[kMaxRank] = {};

  void Append(std::int64_t dim, std::int64_t in_stride, std::int64_t out_stride) {
    dims[rank] = dim;
    in_strides[rank] = in_stride;
    out_strides[rank] = out_stride;
    ++rank;
  }

  std::int64_t Count() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= dims[i];
    return count;
  }
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_TRANSPOSE_STRIDED_COPY_H_
