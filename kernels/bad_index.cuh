// Indices in kernels: in range, or reported.
#ifndef WARPLINE_KERNELS_BAD_INDEX_CUH_
#define WARPLINE_KERNELS_BAD_INDEX_CUH_

#include <cstdint>

#include "kernels/variant.h"

namespace warpline {

// Reports that the index at this place of a step's indices is out of range. A client may send nothing but
// such indices, so most of them are turned away before the lock.
__device__ __noinline__ inline void ReportBadIndex(const BadIndexReport& report, std::int64_t place,
                                                   std::int64_t value) {
  if (report.found == nullptr) return;
  volatile BadIndex* const found = report.found;
  const auto is_earlier = [&] {
    return report.step < found->step || (report.step == found->step && place < found->place);
  };
  bool done = false;
  while (!done) {
    if (!is_earlier()) return;
    if (atomicCAS(&report.found->locked, 0, 1) != 0) continue;
    __threadfence();
    if (is_earlier()) {
      for (volatile BadIndex* const to : {found, static_cast<volatile BadIndex*>(report.seen)}) {
        if (to == nullptr) continue;
        to->place = place;
        to->value = value;
        __threadfence();  // who sees the step sees the place
        to->step = report.step;
      }
      __threadfence_system();
    }
    atomicExch(&report.found->locked, 0);
    done = true;
  }
}

// Returns the place along an axis that an index means, or -1 for one out of range.
__device__ __forceinline__ std::int64_t PlaceAlong(std::int64_t index, std::int64_t axis_size) {
  const std::int64_t place = index < 0 ? index + axis_size : index;
  return place >= 0 && place < axis_size ? place : -1;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_BAD_INDEX_CUH_
