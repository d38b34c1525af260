// A part of a GPU's multiprocessors for kernels that take long, so that others find some that are free.
#ifndef WARPLINE_KERNELS_GPU_PARTITION_H_
#define WARPLINE_KERNELS_GPU_PARTITION_H_

#include <cuda.h>

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/gpu/handle.h"

namespace warpline::gpu {

// All multiprocessors of the current device but some: a "green context" of CUDA. Kernels of its streams run
// on these only; those of other streams run on all. It outlives its streams.
class Partition {
 public:
  // Leaves out `kept` or, where the device is only divisible in larger steps (8 on compute capability 9.0),
  // the next number of which it is. UNIMPLEMENTED if the driver has no green contexts, before 12.5;
  // INVALID_ARGUMENT if nothing would be left.
  static absl::StatusOr<Partition> LeavingOut(int kept);

  int multiprocessors() const { return multiprocessors_; }
  // Non-blocking.
  absl::StatusOr<Stream> CreateStream() const;

 private:
  struct Destroy {
    using pointer = CUgreenCtx;
    void operator()(CUgreenCtx context) const;
  };

  Partition() = default;

  std::unique_ptr<CUgreenCtx, Destroy> context_;
  int multiprocessors_ = 0;
};

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_PARTITION_H_
