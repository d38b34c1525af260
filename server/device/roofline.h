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
  // By dtype, of a large product through cuBLASLt; 0 where unknown (integers, or no library).
  std::array<double, kAllDTypes.size()> flops_per_second{};
  double tf32_flops_per_second = 0;

  // Shortest time that a problem can take, in seconds: the longer of moving its bytes and doing its
  // arithmetic. 0 if unknown.
  double ShortestSeconds(const Problem& problem) const;
};

// The current device must be idle. `context` as for the kernels.
absl::StatusOr<Roofline> MeasureRoofline(const CudaContext& context);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_ROOFLINE_H_
