// A part of a GPU's multiprocessors for long kernels, so that other kernels find free multiprocessors.
#ifndef WARPLINE_KERNELS_GPU_PARTITION_H_
#define WARPLINE_KERNELS_GPU_PARTITION_H_

#include <cuda.h>

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/gpu/handle.h"

namespace warpline::gpu {

// All but some multiprocessors of the current device: a "green context" of CUDA. Kernels of its streams run
// only on these; kernels of other streams run on all. It must outlive its streams.
class Partition {
 public:
  // Leaves out `kept` multiprocessors. If the device can only be divided in larger steps (8 on compute
  // capability 9.0), `kept` is rounded up. UNIMPLEMENTED if the driver is older than 12.5 and has no green
  // contexts; INVALID_ARGUMENT if nothing would be left.
  static absl::StatusOr<Partition> LeavingOut(int kept);

  int multiprocessors() const { return multiprocessors_; }
  // Creates a non-blocking stream.
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
