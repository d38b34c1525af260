// The largest relative error of rounding to nearest.
#ifndef WARPLINE_KERNELS_UNIT_ROUNDOFF_H_
#define WARPLINE_KERNELS_UNIT_ROUNDOFF_H_

#include "kernels/dtype.h"

namespace warpline {

// Returns 0 for types that are not floats of at least 16 bits: integers are exact.
constexpr double UnitRoundoff(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0x1p-11;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF32:
      return 0x1p-24;
    case DType::kF64:
      return 0x1p-53;
    default:
      return 0;
  }
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_UNIT_ROUNDOFF_H_
