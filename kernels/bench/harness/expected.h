// The expected result of a problem, and the check of a result against it.
#ifndef WARPLINE_KERNELS_BENCH_HARNESS_EXPECTED_H_
#define WARPLINE_KERNELS_BENCH_HARNESS_EXPECTED_H_

#include <cuda_runtime_api.h>

#include <string>

#include "kernels/bench/suites/cases.h"
#include "kernels/gpu/handle.h"
#include "kernels/variant.h"

namespace warpline::bench {

class Expected {
 public:
  // Computes the expected result from the inputs in `operands`, with the reference kernels.
  Expected(const Problem& problem, const Operands& operands, cudaStream_t stream);

  // Empty if the result at `got`, in device memory, is right; otherwise how many elements are not. Moved
  // elements must agree bit for bit, sums and products within a bound on the rounding.
  std::string FindError(const void* got, cudaStream_t stream) const;

  // Bytes of device memory that it takes.
  static std::size_t Bytes(const Problem& problem);

 private:
  Problem problem_;
  double absolute_ = 0, relative_ = 0;
  gpu::DeviceBytes want_, differences_;
};

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_HARNESS_EXPECTED_H_
