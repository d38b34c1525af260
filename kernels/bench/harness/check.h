// Errors of the benchmark are exceptions: it has one reaction to all of them, to say what it was doing and
// end, and no caller to hand a status to.
#ifndef WARPLINE_KERNELS_BENCH_HARNESS_CHECK_H_
#define WARPLINE_KERNELS_BENCH_HARNESS_CHECK_H_

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/gpu/status.h"

namespace warpline::bench {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void Check(cudaError_t error, const char* doing) {
  if (error != cudaSuccess) throw Failure(gpu::ErrorStatus(error, doing).ToString());
}

template <typename T>
T Value(absl::StatusOr<T> value) {
  if (!value.ok()) throw Failure(value.status().ToString());
  return std::move(value).value();
}

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_HARNESS_CHECK_H_
