// The measured ceilings of a device, against which kernels are judged.
#ifndef WARPLINE_SERVER_DEVICE_ROOFLINE_H_
#define WARPLINE_SERVER_DEVICE_ROOFLINE_H_

#include <array>

#include "absl/status/statusor.h"
#include "kernels/cuda_variants.h"
#include "kernels/problem.h"

namespace warpline {

struct Roofline {
  double copy_bytes_per_second = 0;
  // The rate that a large product by cuBLASLt reaches, by dtype of its operands. The rate is 0 where it is
  // not known: for integers, and without the library.
  std::array<double, kAllDTypes.size()> flops_per_second{};
  double tf32_flops_per_second = 0;

  // The shortest time in which the device could solve a problem, in seconds: the time to move its bytes or
  // that of its arithmetic, whichever is longer. 0 if it is not known.
  double ShortestSeconds(const Problem& problem) const;
};

// Measures the current device, which must be idle. `context` is the one that kernels are launched with.
absl::StatusOr<Roofline> MeasureRoofline(const CudaContext& context);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_ROOFLINE_H_
